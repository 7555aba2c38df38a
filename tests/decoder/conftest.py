from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # names that are no folder are refused at once, not after retries over the network

import pytest
import torch

from fakes import random_target
from gumiho_decoder.target import Target

torch.set_num_threads(1)  # the models are tiny: threads only get in each other's way


@pytest.fixture(scope="session")
def target() -> Target:
    return random_target()


@pytest.fixture
def prompt() -> list[int]:
    return [5, 17, 3, 44, 20, 8, 8, 31]
