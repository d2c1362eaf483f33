"""Networks of darts forecast series whose steps are business hours, wherever these end."""

import numpy as np
import pandas as pd
import pytest
from all_models import NAMES
from darts import TimeSeries
from quiet import QUIET

from taylorformer_forecast import darts

TIMES = pd.date_range("2024-01-01 09:00", periods=120, freq="bh")
SERIES = TimeSeries.from_times_and_values(TIMES, np.sin(np.arange(120.0) * np.pi / 4).astype("float32"))
SMALL = {"n_epochs": 1, "random_state": 0, "pl_trainer_kwargs": {**QUIET, "max_steps": 1}}
HOUR = {"cyclic": {"past": ["hour"], "future": ["hour"]}}
CASES = [(name, {}) for name in NAMES]
CASES += [("Taylorformer", {"strategy": s}) for s in ("train", "pretrained", "averaged")]
CASES += [("Taylorformer", {"strategy": "train", "add_encoders": HOUR})]


@pytest.mark.parametrize(("name", "options"), CASES, ids=[f"{n} {[*o.values()]}" for n, o in CASES])
def test_a_day_may_end_a_series_or_have_just_begun(name, options):
    model = getattr(darts, f"{name}Model")(16, 8, **SMALL, **options)
    for length in (112, 113):  # darts counts back to an opening hour in the first
        forecast = model.fit(SERIES[:length]).predict(10, num_samples=2, verbose=False)
        assert forecast.time_index[:1].equals(TIMES[length : length + 1])
        assert np.isfinite(forecast.all_values()).all()


def test_forecasts_of_the_past_have_the_times_of_the_series(tmp_path):
    model = darts.LAMModel(16, 8, **SMALL).fit(SERIES[:100])
    past = model.historical_forecasts(SERIES, start=100, retrain=False, verbose=False)
    assert past.time_index.equals(TIMES[100:])
    model.save(str(tmp_path / "model.pt"))
    forecast = darts.LAMModel.load(str(tmp_path / "model.pt")).predict(8, series=SERIES[:108], verbose=False)
    assert forecast.time_index.equals(TIMES[108:116])
