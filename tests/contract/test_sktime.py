"""sktime's own conformance suite, every check an item of its own."""

from __future__ import annotations

import pytest
from all_models import forecasters
from outside_hosts import LevelForecaster
from sktime.base import BaseEstimator
from sktime.utils.estimator_checks import check_estimator, parametrize_with_checks

import taylorformer_forecast.sktime as ours
from taylorformer_forecast.sktime import ContiFormerClassifier, ContiFormerImputer, TaylorformerImputer

ESTIMATORS = [
    *forecasters(),
    TaylorformerImputer,
    ContiFormerImputer,
    ContiFormerClassifier,
    LevelForecaster,  # made for a network from outside
]
pytestmark = pytest.mark.filterwarnings("ignore:Sorting by default:DeprecationWarning")  # sktime on pandas 3


@parametrize_with_checks(ESTIMATORS, obj_varname="estimator")
def test_estimator_passes_the_check(estimator, test_name):
    check_estimator(estimator, tests_to_run=test_name, raise_exceptions=True)


def test_every_estimator_of_the_package_is_checked():
    exported = [value for value in vars(ours).values() if isinstance(value, type)]
    assert {value for value in exported if issubclass(value, BaseEstimator)} <= set(ESTIMATORS)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_check_is_skipped(estimator):
    assert not estimator.get_class_tag("tests:skip_all", False)
    assert not estimator.get_class_tag("tests:skip_by_name", None)
