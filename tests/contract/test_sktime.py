"""sktime's own conformance suite, every check an item of its own."""

from __future__ import annotations

import pytest
from sktime.utils.estimator_checks import check_estimator, parametrize_with_checks

from taylorformer_forecast.sktime import LAMForecaster, TaylorformerForecaster

FORECASTERS = [TaylorformerForecaster, LAMForecaster]
pytestmark = pytest.mark.filterwarnings("ignore:Sorting by default:DeprecationWarning")  # sktime on pandas 3


@parametrize_with_checks(FORECASTERS, obj_varname="forecaster")
def test_forecaster_passes_the_check(forecaster, test_name):
    check_estimator(forecaster, tests_to_run=test_name, raise_exceptions=True)


@pytest.mark.parametrize("forecaster", FORECASTERS)
def test_no_check_is_skipped(forecaster):
    assert not forecaster.get_class_tag("tests:skip_all", False)
    assert not forecaster.get_class_tag("tests:skip_by_name", None)
