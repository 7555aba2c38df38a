"""One thread a test process; Hypothesis tries new examples on every run, but in CI the same ones each time."""

from __future__ import annotations

import os

# Two workers, the notebooks' kernels and the commands that tests start share two cores: threads would fight for them.
# Set before NumPy and torch are imported; what the tests start inherits it.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from hypothesis import settings  # noqa: E402

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
