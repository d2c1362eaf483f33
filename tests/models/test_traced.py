"""Networks as graphs, for ``torch.export`` and ``torch.compile``."""

import os
import subprocess
import sys
from pathlib import Path


def test_networks_are_exported_for_any_number_of_windows_and_compiled_in_one_piece():
    """In a process without checks of shapes, which the tracer cannot see through."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).parent / "traced.py")]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
