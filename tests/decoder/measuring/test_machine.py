"""A busy machine is told from a quiet one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumiho_decoder.measuring import machine
from gumiho_decoder.measuring.machine import busy


def test_a_busy_machine_is_told_from_a_quiet_one(monkeypatch):
    for running, wanted in ((0.0, False), (0.4, False), (0.6, True), (3.0, True)):
        monkeypatch.setattr(machine, "_running", lambda running=running: running)
        assert (busy() is not None) == wanted


@pytest.mark.skipif(not Path("/proc/loadavg").exists(), reason="Linux says how many threads run")
def test_threads_that_run_beside_this_one_are_counted():
    import subprocess
    import sys

    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for _ in range(50):
            if machine._running() >= 0.5:
                break
        else:
            raise AssertionError("a spinning process was never seen")
    finally:
        spinning.kill()
        spinning.wait()
