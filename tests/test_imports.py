"""What imports load, measured in fresh interpreters."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys

import pytest

import taylorformer_forecast
import taylorformer_forecast.core
import taylorformer_forecast.models

IMPORT_AND_REPORT = """
import importlib, json, sys, time
start = time.process_time()
for name in {names!r}:
    importlib.import_module(name)
seconds = time.process_time() - start
print(json.dumps([seconds, sorted({{name.partition(".")[0] for name in sys.modules}})]))
"""


def import_in_fresh_interpreter(*names):
    """Return the processor seconds that imports took and the top-level modules that are loaded afterwards."""
    code = IMPORT_AND_REPORT.format(names=names)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, loaded = json.loads(run.stdout)
    return seconds, set(loaded)


def test_importing_the_package_is_quick_and_loads_no_library():
    runs = [import_in_fresh_interpreter("taylorformer_forecast") for _ in range(3)]
    assert min(seconds for seconds, _ in runs) < 0.2
    heavy = {
        "torch",
        "numpy",
        "pandas",
        "scipy",
        "sktime",
        "skpro",
        "darts",
        "pytorch_lightning",
        "jaxtyping",
    }
    assert not heavy & runs[0][1]


def modules_of(package):
    return [info.name for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]


def test_core_and_models_know_neither_pandas_nor_lightning_nor_a_host():
    names = modules_of(taylorformer_forecast.core) + modules_of(taylorformer_forecast.models)
    _, loaded = import_in_fresh_interpreter(*names)
    assert "torch" in loaded
    assert not {"pandas", "sktime", "skpro", "darts", "pytorch_lightning", "lightning"} & loaded


def test_public_names_are_listed_and_found_on_first_use():
    assert set(taylorformer_forecast.__all__) <= set(dir(taylorformer_forecast))
    assert taylorformer_forecast.Taylorformer.__name__ == "Taylorformer"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Transformer'"):
        taylorformer_forecast.Transformer  # noqa: B018
