"""Scripts of examples and its folders as modules."""

import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# Of two scripts with the same name, that of the later folder is found.
FOLDERS = tuple(
    EXAMPLES / folder
    for folder in ("benchmark/arena", "", "benchmark", "benchmark/neural_processes", "pretrain")
)


@pytest.fixture
def script(monkeypatch):
    """Import a script by its name; no later test finds it, or what it imported, under that name."""
    before = set(sys.modules)
    for folder in FOLDERS:
        monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) in [str(f / f"{name}.py") for f in FOLDERS]:
            del sys.modules[name]
