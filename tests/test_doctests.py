"""The examples in docstrings run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
from sktime.base import BaseEstimator

import taylorformer_forecast
import taylorformer_forecast.sktime as ours


def examples():
    """Find every documented object of the package that shows an example."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    name = taylorformer_forecast.__name__
    for info in pkgutil.walk_packages(taylorformer_forecast.__path__, f"{name}."):
        module = importlib.import_module(info.name)
        for one, value in vars(module).items():
            if getattr(value, "__module__", None) == module.__name__ and callable(value):
                for test in finder.find(value, f"{module.__name__}.{one}", module=False, globs={}):
                    if test.examples and not test.name.endswith(".kind"):  # a class of torch's
                        yield pytest.param(test, id=test.name.removeprefix(f"{name}."))


# Classes whose example is a check of sktime's suite, which tests/contract runs on all of them.
ESTIMATORS = [
    value for value in vars(ours).values() if isinstance(value, type) and issubclass(value, BaseEstimator)
]
RUN_BY_SKTIME = {f"{value.__module__}.{value.__name__}" for value in ESTIMATORS}


@pytest.mark.parametrize("test", [one for one in examples() if one.values[0].name not in RUN_BY_SKTIME])
def test_the_example_prints_what_it_says(test, capsys):
    report = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(report)


def test_the_pieces_that_users_build_with_show_examples():
    shown = {parameter.id for parameter in examples()}
    assert {
        "core.window.Window",
        "core.window.shuffle_targets",
        "core.scaling.scale_window",
        "core.sampling.sample_paths",
        "models.taylorformer.Taylorformer",
        "sktime.taylorformer.TaylorformerForecaster",
        "darts.taylorformer.TaylorformerModel",
    } <= shown


@pytest.mark.parametrize("module", ["sktime", "darts", "plot"])
def test_everything_that_users_import_shows_an_example(module):
    exported = importlib.import_module(f"taylorformer_forecast.{module}")
    assert [name for name in exported.__all__ if ">>>" not in (getattr(exported, name).__doc__ or "")] == []
