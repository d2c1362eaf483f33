"""Every model of both hosts is trained in every precision of Lightning's trainer that a CPU has."""

import numpy as np
import pandas as pd
import pytest
from all_models import NAMES, trained
from darts import TimeSeries
from quiet import QUIET

import taylorformer_forecast.darts as darts_host
import taylorformer_forecast.sktime as sktime_host


def of_sktime(name, y, **settings):
    host = getattr(sktime_host, f"{name}Forecaster")
    settings = {"trainer_kwargs": settings, "max_steps": 2, "context_length": 16, "num_samples": 20}
    forecaster = host(**trained(host, **settings)).fit(y, fh=[1, 2])
    return forecaster.predict_quantiles(alpha=[0.1, 0.5, 0.9]).to_numpy()


def of_darts(name, y, **settings):
    host = getattr(darts_host, f"{name}Model")
    settings = {"pl_trainer_kwargs": {**QUIET, "max_steps": 2, **settings}}
    model = host(16, 2, **trained(host, **settings)).fit(TimeSeries.from_series(y.astype("float32")))
    return np.quantile(model.predict(2, num_samples=20).all_values()[:, 0], [0.1, 0.5, 0.9], axis=1).T


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed", "16-mixed"])
@pytest.mark.parametrize("host", [of_sktime, of_darts])
@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_trained_in_every_precision(name, host, precision):
    index = pd.date_range("2020-01-01", periods=60, freq="D")
    y = pd.Series(10 + np.sin(np.arange(60.0)), index, name="y")
    usual, found = host(name, y), host(name, y, precision=precision)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, usual, atol=1.0)
