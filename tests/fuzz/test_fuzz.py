"""Random cases with a fixed seed: nothing is wrong, and no error is raw. ``make fuzz`` tries others."""

import json
import random

import numpy as np
import pandas as pd
import pytest
import torch
from fuzz_cases import cases
from fuzz_oracle import LEVELS, WrongError, check_forecast, kind_of_error, untouched
from fuzz_run import WALKS, explore, quiet, random_case
from hypothesis import HealthCheck, given, settings

from taylorformer_forecast.calendar.steps import on_steps
from taylorformer_forecast.sktime import TaylorformerForecaster

N_CASES = 120


@pytest.mark.parametrize("part", range(4))
def test_random_cases_are_answered_or_refused(part):
    with quiet():
        report = explore(part * N_CASES // 4, N_CASES // 4)
    assert not report.failures, "\n".join(report.failures)
    assert sum(report.counts[host, "ok"] for host in WALKS) > N_CASES // 16, report.table()


def test_a_case_follows_from_its_number_and_is_json():
    found = [random_case(number) for number in range(5)]
    assert found == [random_case(number) for number in range(5)]
    assert json.loads(json.dumps(found)) == found
    assert len({json.dumps(case) for case in found}) == 5


@settings(max_examples=100, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_every_case_has_a_walk(case):
    assert case["host"] in WALKS


# ---- the oracle ---------------------------------------------------------------------------------------

Y = np.sin(np.arange(20.0)) + 5
MEAN = np.full(3, 5.0)
QUANTILES = MEAN[:, None] + np.linspace(-1, 1, len(LEVELS))


def replaced(values, place, value):
    values = values.copy()
    values[place] = value
    return values


WRONG = {
    "a mean is not finite": (replaced(MEAN, 1, np.nan), QUANTILES),
    "a mean is .* ranges outside of the data": (replaced(MEAN, 1, 50.0), QUANTILES + 45),
    "a quantile is not finite": (MEAN, replaced(QUANTILES, (0, 0), -np.inf)),
    "quantiles are not ordered": (MEAN, QUANTILES[:, ::-1]),
    "a mean is outside of its 98 % band": (MEAN + 1.5, QUANTILES),
    "a 90 % band is .* ranges wide": (MEAN, MEAN[:, None] + 40 * (QUANTILES - 5)),
}


@pytest.mark.parametrize("what", WRONG)
def test_the_oracle_finds_a_wrong_forecast(what):
    check_forecast(Y, 3, MEAN, QUANTILES)
    with pytest.raises(WrongError, match=what):
        check_forecast(Y, 3, *WRONG[what])


def test_growing_series_may_be_forecast_to_grow():
    y = np.exp(0.1 * np.arange(40.0))
    check_forecast(y, 10, y[-1:] * 2.5, None)
    with pytest.raises(WrongError, match="outside"):
        check_forecast(y, 10, -8 * y[-1:], None)


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.__setitem__(0, 1.0),
        lambda y: torch.rand(1),
        lambda y: np.random.rand(),  # noqa: NPY002
        lambda y: random.random(),
        lambda y: torch.set_num_threads(torch.get_num_threads() + 1),
    ],
)
def test_the_oracle_finds_what_is_changed_by_the_way(change):
    threads = torch.get_num_threads()
    with pytest.raises(WrongError, match="changed"), untouched(np.zeros(3)) as _, untouched(y := np.zeros(3)):
        change(y)
    torch.set_num_threads(threads)


def ended(work):
    try:
        work()
    except Exception as error:
        return kind_of_error(error)


def test_errors_are_told_apart():
    y = pd.Series(Y)
    forecaster = TaylorformerForecaster(strategy="baseline").fit(y)
    assert ended(lambda: TaylorformerForecaster(lr=-1.0).fit(y)) == "refused"
    assert ended(lambda: forecaster.predict("tomorrow")) == "host"
    assert ended(lambda: forecaster.predict([1], X=3.5)) == "host"
    assert ended(lambda: on_steps("abc")) == "raw"
    assert ended(lambda: np.zeros(3)[7]) == "raw"
