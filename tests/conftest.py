"""Hypothesis explores anew on every run, but in CI, where a change is judged, it takes the same examples each time."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
