"""Figures are drawn without a screen and closed behind each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")
