"""Scripts of examples and its folders as modules."""

import contextlib
import importlib
import io
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"
# Of two scripts with the same name, that of the later folder is found.
FOLDERS = tuple(
    EXAMPLES / folder
    for folder in ("benchmark/arena", "", "benchmark", "benchmark/neural_processes", "pretrain")
)


@contextlib.contextmanager
def importable(*folders):
    """Let scripts be imported by their names; what was imported under them is forgotten afterwards."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        for folder in folders:
            patch.syspath_prepend(str(folder))
        yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) in [str(f / f"{name}.py") for f in FOLDERS]:
            del sys.modules[name]


@pytest.fixture
def script():
    """Import a script by its name; no later test finds it, or what it imported, under that name."""
    with importable(*FOLDERS) as imported:
        yield imported


@pytest.fixture(scope="session")
def run_script():
    """Run a script as from a shell, but in this process, and return what it printed."""

    def run(path, *arguments):
        threads, out = torch.get_num_threads(), io.StringIO()
        with importable(path.parent) as imported, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [path.name, *map(str, arguments)])
            with contextlib.redirect_stdout(out):
                imported(path.stem).main()
        torch.set_num_threads(threads)
        return out.getvalue()

    return run
