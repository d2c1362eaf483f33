"""Forecasts far beyond the output chunk of darts models stay near what was seen, whatever the model."""

import numpy as np
import pandas as pd
import pytest
from all_models import OTHERS, small
from darts import TimeSeries
from quiet import QUIET
from sktime.datasets import load_airline, load_lynx

from taylorformer_forecast import darts

YEARS = {
    "airline": load_airline()[:12],
    "lynx": load_lynx()[:12],
    "a shift": 200.0 + 40 * (np.arange(12) > 6) + np.arange(12) % 3,
    "a walk": np.random.default_rng(2).normal(size=12).cumsum(),
}
CASES = [(name, {}) for name in OTHERS]
CASES += [("Taylorformer", {"strategy": s}) for s in ("train", "pretrained", "corrected", "baseline")]


@pytest.mark.parametrize(("name", "options"), CASES, ids=[f"{n} {o.get('strategy', '')}" for n, o in CASES])
def test_a_year_forecasts_three_years_and_stays_near_its_data(name, options):
    index, kind = pd.date_range("2000-01", periods=12, freq="MS"), getattr(darts, f"{name}Model")
    for y in YEARS.values():
        series = TimeSeries.from_times_and_values(index, np.asarray(y, dtype="float32"))
        model = kind(4, 3, **small(kind, n_epochs=5, pl_trainer_kwargs=QUIET, **options)).fit(series)
        paths = model.predict(36, num_samples=100, random_state=1).all_values()[:, 0]
        mean, size = paths.mean(1), np.ptp(series.values())
        low, high = np.quantile(paths, [0.05, 0.95], axis=1)
        assert np.isfinite(paths).all()
        assert (mean > series.values().min() - 3 * size).all()
        assert (mean < series.values().max() + 3 * size).all()
        assert (high - low < 10 * size).all()
        assert ((low <= mean) & (mean <= high)).all()
