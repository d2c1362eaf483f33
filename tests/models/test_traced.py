"""Networks as graphs, for ``torch.export`` and ``torch.compile``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from traced import SPECS


@pytest.mark.parametrize("name", SPECS)
def test_a_network_is_exported_for_any_number_of_windows_and_compiled_in_one_piece(name):
    """In a process without checks of shapes, which the tracer cannot see through."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).parent / "traced.py"), name]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
