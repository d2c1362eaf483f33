"""What imports load, measured in fresh interpreters."""

from __future__ import annotations

import ast
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import taylorformer_forecast
import taylorformer_forecast.core
import taylorformer_forecast.models

COMPILER = "torch._dynamo"  # takes a second to load, and is of no use here

IMPORT_AND_REPORT = """
import importlib, json, sys, time
start = time.process_time()
for name in {names!r}:
    importlib.import_module(name)
seconds = time.process_time() - start
print(json.dumps([seconds, sorted(sys.modules)]))
"""


def import_in_fresh_interpreter(*names):
    """Return the processor seconds that imports took and the modules that are loaded afterwards."""
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
    assert not {"pandas", "sktime", "skpro", "darts", "pytorch_lightning", "lightning", COMPILER} & loaded


def test_a_default_fit_of_a_short_series_loads_neither_lightning_nor_the_compiler():
    code = """
import json, sys
import pandas, scipy.stats, sktime.classification.base, sktime.forecasting.base, sktime.transformations.base
import skpro.distributions.base
import torch, einops, jaxtyping
before = set(sys.modules)
from taylorformer_forecast.sktime import TaylorformerForecaster
added = {name.partition(".")[0] for name in set(sys.modules) - before}
y = pandas.Series([float(i % 5) for i in range(30)], pandas.date_range("2020", periods=30))
forecast = TaylorformerForecaster(num_samples=3).fit(y, fh=[1, 2, 3]).predict_interval()
print(json.dumps([sorted(added), sorted(sys.modules)]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    added, loaded = json.loads(run.stdout)
    assert added == ["taylorformer_forecast"]
    assert not {"pytorch_lightning", COMPILER} & set(loaded)


def test_public_names_are_listed_and_found_on_first_use():
    assert set(taylorformer_forecast.__all__) <= set(dir(taylorformer_forecast))
    assert taylorformer_forecast.Taylorformer.__name__ == "Taylorformer"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Transformer'"):
        taylorformer_forecast.Transformer  # noqa: B018


WITHOUT_HOSTS = """
import sys
for name in ("sktime", "skpro", "sklearn", "darts"):
    sys.modules[name] = None  # as if it were not installed
import taylorformer_forecast
"""


def test_the_package_can_be_looked_at_without_a_host():
    look = """
assert not hasattr(taylorformer_forecast, "TaylorformerModel")
import inspect, pydoc
assert "UNN" in dict(inspect.getmembers(taylorformer_forecast))
assert "Taylorformer" in pydoc.render_doc(taylorformer_forecast)
from taylorformer_forecast import *
assert Taylorformer and "LAMModel" not in dir()
"""
    subprocess.run([sys.executable, "-c", WITHOUT_HOSTS + look], check=True)


@pytest.mark.parametrize(
    "line",
    [
        "taylorformer_forecast.{name}",
        "from taylorformer_forecast import {name}",
        "from taylorformer_forecast.{host} import {name}",
        "import taylorformer_forecast.{host}",
    ],
)
@pytest.mark.parametrize(
    ("host", "name"), [("sktime", "TaylorformerForecaster"), ("darts", "TaylorformerModel")]
)
def test_a_missing_host_is_named_with_the_line_that_installs_it(host, name, line):
    code = WITHOUT_HOSTS + line.format(host=host, name=name)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert f'pip install "taylorformer-forecast[{host}]"' in run.stderr.splitlines()[-1]


PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
# Where the name of a package on the index is not that of its module.
MODULES = {"pytorch-lightning": "pytorch_lightning", "scikit-learn": "sklearn"}
EXTRAS = {
    "sktime": "sktime",
    "darts": "darts",
    "plot.py": "plot",
}  # what is imported by parts of the package alone


def declared(requirements):
    names = [re.match(r"[\w-]+", line)[0] for line in requirements]
    return {MODULES.get(name, name) for name in names}


@pytest.mark.parametrize("part", ["", *EXTRAS])
def test_what_is_imported_is_declared(part):
    root = Path(taylorformer_forecast.__file__).parent
    tops = [root / part] if part else [path for path in root.iterdir() if path.name not in EXTRAS]
    needs = PROJECT["dependencies"] + (PROJECT["optional-dependencies"][EXTRAS[part]] if part else [])
    known = declared(needs) | {taylorformer_forecast.__name__, *sys.stdlib_module_names}
    for path in (path for top in tops for path in [top, *top.rglob("*.py")] if path.suffix == ".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= known, f"{path}: {names}"
