"""Heads trained from a frozen target: settings, losses, the resumable training of every method."""

from gumiho_decoder.training.config import TrainConfig
from gumiho_decoder.training.folder import Result
from gumiho_decoder.training.job import Trained, train_drafter
from gumiho_decoder.training.trainer import train

__all__ = ["Result", "TrainConfig", "Trained", "train", "train_drafter"]
