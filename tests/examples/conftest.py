"""Scripts of examples/benchmark as modules."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "examples" / "benchmark"


@pytest.fixture
def script(monkeypatch):
    """Import a script by its name; no later test finds it, or what it imported, under that name."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARK))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) == str(BENCHMARK / f"{name}.py"):
            del sys.modules[name]
