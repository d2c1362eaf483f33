"""A panel without a network: one batch, in which every series is forecast as by itself."""

import numpy as np
import pandas as pd
import pytest

from taylorformer_forecast.sktime import TaylorformerForecaster

LEVELS = [0.1, 0.5, 0.9]
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=120)
T = np.arange(120)
SERIES = {
    "season": 50 + 8 * np.sin(2 * np.pi * T / 12) + NOISE,
    "week": 20 + 6 * np.sin(2 * np.pi * T[:60] / 7) + NOISE[:60],
    "walk": NOISE[:37].cumsum(),
    "counts": RNG.poisson(0.6, size=50).astype(float),
    "gaps": np.where(T[:45] % 4 == 1, np.nan, 9 + NOISE[:45]),
    "ends early": np.r_[np.nan, 9 + NOISE[:30], np.nan, np.nan],
    "constant": np.full(25, 3.0),
    "two values": np.array([4.0, 5.0]),
}


def index(kind, n):
    if kind == "integers":
        return pd.RangeIndex(5, 5 + n)
    if kind == "periods":
        return pd.period_range("2001-03", periods=n, freq="M")
    return pd.date_range("2001-03-01", periods=n, freq="D")


def frame(name, kind="periods"):
    return pd.DataFrame({"y": SERIES[name]}, index(kind, len(SERIES[name])))


def panel(names=tuple(SERIES), kind="periods"):
    return pd.concat({name: frame(name, kind) for name in names}, names=["shop", "time"])


def fitted(y, **changes):
    settings = {"strategy": "baseline", "num_samples": 20, "random_state": 0}
    return TaylorformerForecaster(**settings | changes).fit(y, fh=range(1, 9))


def close(found, expected, name, part=1e-9):
    size = np.nanmax(np.abs(SERIES[name]))
    np.testing.assert_allclose(found, expected, rtol=0, atol=part * size, err_msg=name)
    assert found.index.equals(expected.index)


@pytest.mark.parametrize("kind", ["periods", "dates", "integers"])
@pytest.mark.parametrize("fh", [range(1, 9), [-3, 0, 2]], ids=["ahead", "in sample"])
@pytest.mark.parametrize(("strategy", "part"), [("baseline", 1e-9), ("corrected", 1e-5)])
def test_every_instance_is_forecast_as_by_itself(kind, fh, strategy, part):
    """To rounding, which is that of single precision where a network corrects."""
    names = [name for name in SERIES if name != "two values"]  # too few to fit, or to look back, alone
    together = fitted(panel(names, kind), strategy=strategy)
    quantiles, mean = together.predict_quantiles(fh, alpha=LEVELS), together.predict(fh)
    for name in names:
        alone = fitted(frame(name, kind), strategy=strategy)
        close(quantiles.loc[name], alone.predict_quantiles(fh, alpha=LEVELS), name, part)
        close(mean.loc[name], alone.predict(fh), name, part)


def test_every_column_is_forecast_as_by_itself():
    names = ["season", "walk", "counts"]
    y = pd.DataFrame({name: SERIES[name][:37] for name in names}, index("periods", 37))
    together = fitted(y).predict_quantiles(alpha=LEVELS)
    for name in names:
        alone = fitted(y[[name]]).predict_quantiles(alpha=LEVELS)
        close(together[[name]], alone, name)


def test_hierarchies_are_forecast_as_panels_are():
    y = panel()
    key = [("north" if k % 2 else "south", name) for k, name in enumerate(SERIES)]
    deep = pd.concat({k: frame(k[1]) for k in key}, names=["region", "shop", "time"])
    flat, found = (fitted(z).predict_quantiles(alpha=LEVELS) for z in (y, deep))
    assert list(found.index.names) == ["region", "shop", "time"]
    for region, name in key:
        close(found.loc[region, name], flat.loc[name], name)


def test_instances_and_columns_come_back_in_their_order():
    y = panel(["walk", "constant", "gaps"])
    y = y.assign(z=2 * y["y"])[["z", "y"]]
    found = fitted(y).predict()
    assert list(found.index.get_level_values(0).unique()) == ["walk", "constant", "gaps"]
    assert list(found.columns) == ["z", "y"]
    np.testing.assert_allclose(found["z"], 2 * found["y"], rtol=1e-6)


def test_short_panels_are_forecast_so_by_default():
    y = panel()
    default = fitted(y, strategy="auto")
    assert default.strategy_ == "corrected"
    pd.testing.assert_frame_equal(default.predict(), fitted(y, strategy="corrected").predict())


def test_paths_have_the_quantiles_of_every_instance():
    forecaster = fitted(panel(["walk", "season"]), num_samples=2000)
    paths = forecaster.predict_proba(marginal=False).sample(2000)
    drawn = paths.groupby(level=[1, 2], sort=False)["y"].quantile(0.9).to_numpy()
    np.testing.assert_allclose(drawn, forecaster.predict_quantiles(alpha=[0.9]).to_numpy()[:, 0], atol=0.6)


def test_only_what_is_known_at_the_cutoff_is_used():
    y = panel(["season", "week"])
    early = y[y.index.get_level_values(-1) <= pd.Period("2004-12", "M")]
    late = y[y.index.get_level_values(-1) > pd.Period("2004-12", "M")]
    updated = fitted(early).update(late)
    pd.testing.assert_frame_equal(updated.predict(), fitted(y).predict())


def test_an_update_that_makes_an_instance_irregular_is_refused():
    y = panel(["walk", "gaps"], "integers")
    late = pd.concat({"walk": pd.DataFrame({"y": [1.0]}, pd.Index([4000]))}, names=["shop", "time"])
    forecaster = fitted(y)
    before = forecaster.predict()
    with pytest.raises(ValueError, match="too many steps of instance 'walk' have no value"):
        forecaster.update(late)
    pd.testing.assert_frame_equal(forecaster.predict(), before)
