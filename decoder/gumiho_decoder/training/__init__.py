"""Heads trained from a frozen target: settings, losses, the resumable training of every method."""

from gumiho_decoder.training.config import TrainConfig
from gumiho_decoder.training.job import train_command
from gumiho_decoder.training.trainer import train

__all__ = ["TrainConfig", "train", "train_command"]
