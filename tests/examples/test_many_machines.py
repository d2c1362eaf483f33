"""Forecasts on several processes are those of one."""

from __future__ import annotations

import pandas as pd
import pytest

from taylorformer_forecast.sktime import TaylorformerForecaster

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def machines(script):
    return script("many_machines")


@pytest.fixture
def table(machines):
    return machines.make_table(9, 40).sample(frac=1.0, random_state=0)  # rows in any order


@pytest.mark.parametrize(("engine", "library"), [("dask", "dask.distributed"), ("spark", "pyspark")])
def test_two_workers_forecast_as_one_process_does(machines, table, engine, library):
    pytest.importorskip(library)
    forecaster = TaylorformerForecaster(random_state=0)
    alone, parallel = (
        machines.ENGINES[name](table, forecaster, horizon=4, workers=2)
        .sort_values(["series", "time"])
        .reset_index(drop=True)
        for name in ("none", engine)
    )
    assert len(alone) == 9 * 4
    pd.testing.assert_frame_equal(parallel, alone, check_dtype=False, rtol=1e-6)
    assert not forecaster.is_fitted


@pytest.mark.parametrize(("engine", "package"), [("dask", '"dask[distributed]"'), ("spark", "pyspark")])
def test_an_engine_that_is_not_installed_is_named_with_what_installs_it(
    machines, monkeypatch, engine, package
):
    monkeypatch.setattr(machines, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as ended:
        machines.main(["--engine", engine])
    assert str(ended.value).endswith(f"pip install {package}")


def test_a_part_holds_whole_series(machines, table):
    parts = machines.part_of(table["series"], 4)
    assert pd.Series(parts).groupby(table["series"].to_numpy()).nunique().eq(1).all()
    assert len(set(parts)) > 1
