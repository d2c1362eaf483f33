"""Future covariates add to forecasts of darts models what they added in the past."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from darts import TimeSeries, concatenate
from quiet import QUIET

from taylorformer_forecast.darts import LAMModel, TaylorformerModel, UNNModel
from taylorformer_forecast.darts._batch_effects import BatchEffects

N, H = 80, 6


def series_of(values, name="y"):
    index = pd.date_range("2024-01-01", periods=len(values), freq="D")
    return TimeSeries.from_times_and_values(index, np.asarray(values, dtype="float32"), columns=[name])


def promoted(effect=40.0, seed=0):
    """Daily sales and promotions, of known effect."""
    rng = np.random.default_rng(seed)
    promotion = (rng.random(N + H) < 0.25).astype(float)
    week = 20 * np.sin(2 * np.pi * np.arange(N + H) / 7)
    values = 100 + week + effect * promotion + rng.normal(0, 2, N + H)
    return series_of(values), series_of(promotion, "promotion")


def effect_of_promotion(model, covariates, **options):
    """What a forecast gains by a promotion on its last day, at all its steps."""
    values = covariates.values(copy=True)
    values[N:] = 0.0
    without = covariates.with_values(values.copy())
    values[-1] = 1.0
    found = [
        model.predict(
            H, future_covariates=one, random_state=0, num_samples=20, verbose=False, **options
        ).mean(axis=2)
        for one in (covariates.with_values(values), without)
    ]
    return (found[0] - found[1]).values()


def trained(cls=TaylorformerModel, **options):
    return cls(21, H, **{"n_epochs": 1, "random_state": 0, "pl_trainer_kwargs": QUIET, **options})


def chosen(strategy, **options):
    return trained(strategy=strategy, **{"n_epochs": None, **options})


# Of two strategies the past is longer than the input chunk.
STRATEGIES = ["baseline", "corrected", "pretrained", "zero_shot", "averaged"]


@pytest.mark.parametrize("parameters", [False, True])
@pytest.mark.parametrize("strategy", ["corrected", "zero_shot"])
def test_intervals_grow_with_what_covariates_add_to_values_that_are_never_negative(strategy, parameters):
    rng, n, ratios = np.random.default_rng(0), 200, []
    promotion = np.concatenate([(rng.random(n) < 0.2) * 1.0, np.tile([0.0, 1.0], H // 2)])
    sales = rng.poisson(50 * (1 + promotion[:n])) * 1.0
    days = pd.date_range("2024-01-01", periods=n + H)
    X = TimeSeries.from_times_and_values(days, promotion.astype("float32"))
    for least in (0.0, -1000.0):
        y = TimeSeries.from_times_and_values(days[:n], (sales + least).astype("float32"))
        model = chosen(strategy).fit(y, future_covariates=X, verbose=False)
        asked = {"predict_likelihood_parameters": True} if parameters else {"num_samples": 2000}
        found = model.predict(H, future_covariates=X, verbose=False, random_state=0, **asked)
        width = found.values()[:, 1] if parameters else np.diff(found.quantile([0.1, 0.9]).values())[:, 0]
        ratios.append(width[1::2].mean() / width[::2].mean())
    assert 1.3 < ratios[0] < 2
    assert ratios[1] == pytest.approx(1, abs=0.1)


def test_zeros_before_a_series_begins_do_not_count_in_what_is_usual():
    y = np.array([0.0, 0.0, 5.0, 0.0, 7.0])[None, :, None]
    added = torch.tensor([9.0, 9.0, 1.0, 2.0, 3.0, 4.0]).double()[None, :, None]
    no = np.zeros((1, 1), bool)
    effects = BatchEffects(
        y=y, effects=0 * added.numpy(), demand=no, added=added, closed=added > 99, powers=[0.75]
    )
    assert effects.usual().tolist() == [[2.0]]


def test_short_series_with_covariates_need_no_network():
    y, X = promoted()
    model = chosen("auto").fit(y[:N], future_covariates=X, verbose=False)
    assert model._strategy.name == "corrected"
    found = model.predict(H, future_covariates=X, num_samples=200, random_state=0, verbose=False)
    truth = y[N:].values()[:, 0]
    assert np.abs(found.median().values()[:, 0] - truth).mean() < 4
    assert found.components.tolist() == ["y"]


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies_without_a_new_network_have_the_effect(strategy, shift):
    y, X = promoted()
    model = chosen(strategy, output_chunk_shift=shift, n_epochs=1).fit(
        y[:N], future_covariates=X, verbose=False
    )
    wide = X.append_values(np.zeros((shift, 1), dtype="float32"))
    gained = effect_of_promotion(model, wide)[:, 0]
    assert gained[-1] == pytest.approx(40, abs=6)
    if strategy != "averaged":  # whose network is shown covariates too
        np.testing.assert_allclose(gained[:-1], 0, atol=1e-3)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_effects_follow_components_parameters_and_backtests(strategy):
    y, X = promoted()
    both = concatenate([y, promoted(0.0)[0].with_columns_renamed("y", "z")], axis=1)
    model = chosen(strategy, joint=True, n_epochs=1).fit(both[:N], future_covariates=X, verbose=False)
    assert effect_of_promotion(model, X)[-1] == pytest.approx([40, 0], abs=8)
    loc = model.predict(H, future_covariates=X, predict_likelihood_parameters=True, verbose=False)
    errors = loc.values()[:, [0, 3]] - both[N:].values()
    assert np.abs(errors).mean() < 8
    found = model.historical_forecasts(
        both, future_covariates=X, start=N - 20, start_format="position", retrain=False, verbose=False
    )
    assert np.abs((found - both.slice_intersect(found)).values()).mean() < 10


@pytest.mark.parametrize("strategy", ["corrected", "averaged"])
def test_statistics_read_covariates_as_far_back_as_values(strategy):
    y, X = promoted()
    model = chosen(strategy, n_epochs=1).fit(y[:N], future_covariates=X, verbose=False)
    options = {"num_samples": 20, "random_state": 0, "verbose": False}
    whole = model.predict(H, future_covariates=X, **options).values()
    early = TimeSeries.from_times_and_values(  # that begins before the series, of 5 values more
        pd.date_range(end=X.end_time(), periods=len(X) + 5, freq="D"),
        np.concatenate([np.ones((5, 1)), X.values()]).astype("float32"),
    )
    np.testing.assert_allclose(
        model.predict(H, future_covariates=early, **options).values(), whole, rtol=1e-5
    )
    late = model.predict(H, future_covariates=X[N - 21 :], **options).values()  # as darts demands at least
    assert np.isfinite(late).all()
    assert np.abs(late - whole).max() > 1e-3


@pytest.mark.parametrize("effect", [40.0, 0.0])
@pytest.mark.parametrize("where", ["before they begin", "in a gap"])
@pytest.mark.parametrize("strategy", ["baseline", "corrected", "averaged"])
def test_values_count_as_missing_where_covariates_with_an_effect_are_not_known(strategy, where, effect):
    y, X = promoted(effect)
    model = chosen(strategy, n_epochs=1).fit(y[:N], future_covariates=X, verbose=False)
    options = {"num_samples": 20, "random_state": 0, "verbose": False}
    unknown = slice(0, N - 30) if where == "before they begin" else slice(20, 45)
    values, known = y[:N].values(copy=True), X.values(copy=True)
    known[unknown] = np.nan
    given = X[N - 30 :] if where == "before they begin" else X.with_values(known)
    found = model.predict(H, series=y[:N], future_covariates=given, **options)
    if effect:
        values[unknown] = np.nan
    expected = model.predict(H, series=y[:N].with_values(values), future_covariates=X, **options)
    np.testing.assert_allclose(found.all_values(), expected.all_values(), rtol=1e-4)


@pytest.mark.parametrize("strategy", ["baseline", "corrected"])
def test_a_day_of_the_week_on_which_a_flag_is_never_known_is_forecast_as_it_was(strategy):
    """All of its values counted as missing, so that it was forecast as the days before it."""
    y, X = promoted()
    day = X.time_index.dayofweek
    sunday = day == day[N]  # the first step ahead
    values, known = y.values(copy=True), X.values(copy=True)
    values[sunday] -= 60 + 40 * known[sunday]
    known[sunday] = np.nan
    y, X = y.with_values(values), X.with_values(known)
    model = TaylorformerModel(4, H, strategy=strategy, random_state=0, pl_trainer_kwargs=QUIET)
    model.fit(y[:N], future_covariates=X, verbose=False)
    found = model.predict(1, future_covariates=X, num_samples=200, random_state=0, verbose=False)
    assert abs(found.median().values().item() - values[N].item()) < 10


@pytest.mark.parametrize("joint", [False, True])
def test_covariates_that_begin_late_in_training_make_no_interval_wide(joint):
    y, X = promoted()
    both = y.stack(y.map(lambda values: 2 * values))
    widths = []
    for given in (X, X[N - 40 :]):
        model = chosen("corrected", joint=joint).fit(both[:N], future_covariates=given, verbose=False)
        found = model.predict(H, future_covariates=given, num_samples=200, random_state=0, verbose=False)
        widths.append(found.all_values().std(2).mean())
    assert widths[1] < 1.7 * widths[0]


@pytest.mark.parametrize("effect", [40.0, 0.0])
def test_values_that_covariates_leave_unused_are_told_of_once_a_call(effect):
    y, promotion = promoted(effect)
    model = chosen("baseline").fit(y, future_covariates=promotion, verbose=False)
    series = y[:N] + 1

    def told(covariates):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.predict(H, series=series, future_covariates=covariates, verbose=False)
        return [str(one.message) for one in caught if "future_covariates" in str(one.message)]

    assert told(promotion) == []
    expected = (
        "future_covariates begin at 2024-02-29 00:00:00: the 59 values of the series before it are not used. "
        "Give them from 2024-01-01 00:00:00 on"
    )
    assert told(promotion[N - 21 :]) == ([expected] if effect else [])


@pytest.mark.parametrize("strategy", ["corrected", "averaged"])
def test_sales_are_not_forecast_below_zero_by_what_covariates_take_off(strategy):
    _, X = promoted()
    sales = np.random.default_rng(1).poisson(5 + 20 * X.values()[:, 0])
    y = concatenate([series_of(sales), series_of(sales - 30, "less")], axis=1)
    model = chosen(strategy, n_epochs=1).fit(y[:N], future_covariates=X, verbose=False)
    options = {"num_samples": 200, "random_state": 0, "verbose": False}
    low = model.predict(H, future_covariates=X, **options).all_values().min(axis=(0, 2))
    assert low[0] == 0
    assert low[1] < -30


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "averaged"])
def test_likelihood_parameters_keep_to_the_bounds_of_the_values(strategy):
    _, X = promoted()
    level = np.linspace(60, 6, N + H) + np.random.default_rng(1).normal(size=N + H)
    sales = series_of(np.maximum(level - 20 * X.values()[:, 0], 0.0))
    X = X.with_values(np.r_[X.values()[:N], np.tile([[1.0], [0.0]], (H // 2, 1))].astype("float32"))
    model = chosen(strategy, n_epochs=1).fit(sales[:N], future_covariates=X, verbose=False)
    options = {"future_covariates": X, "random_state": 0, "verbose": False}
    loc, scale, df = model.predict(H, predict_likelihood_parameters=True, **options).values().T
    paths = model.predict(H, num_samples=500, **options).all_values()[:, 0]
    assert paths.min() == 0
    assert loc.min() >= 0
    np.testing.assert_allclose(loc, paths.mean(1), atol=0.5)
    np.testing.assert_allclose(scale * np.sqrt(df / (df - 2)), paths.std(1), atol=0.5)


@pytest.mark.parametrize("strategy", ["corrected", "averaged"])
def test_saved_statistics_keep_effects(strategy, tmp_path):
    y, X = promoted()
    model = chosen(strategy, n_epochs=1).fit(y[:N], future_covariates=X, verbose=False)
    model.save(str(tmp_path / "model.pt"))
    loaded = TaylorformerModel.load(str(tmp_path / "model.pt"), pl_trainer_kwargs=QUIET)
    np.testing.assert_array_equal(effect_of_promotion(loaded, X), effect_of_promotion(model, X))


def test_statistics_refuse_covariates_that_are_missing_where_they_are_needed():
    y, X = promoted()
    model = chosen("corrected").fit(y[:N], future_covariates=X, verbose=False)
    values = X.values(copy=True)
    values[-1] = np.nan
    with pytest.raises(ValueError, match="future_covariates has missing values in component number 0"):
        model.predict(H, future_covariates=X.with_values(values), verbose=False)


def trending(n_series=1, seed=0):
    """Series with a trend far beyond the effects of their covariates."""
    rng = np.random.default_rng(seed)
    x = [rng.normal(size=N + H) for _ in range(n_series)]
    y = [series_of(np.linspace(0, 300, N + H) + 3 * one + 0.3 * rng.normal(size=N + H)) for one in x]
    return y, [series_of(one, "x") for one in x]


@pytest.mark.parametrize("n_series", [1, 2])
@pytest.mark.parametrize("strategy", ["train", "corrected"])
def test_effects_are_measured_alike_in_training_and_forecasts(strategy, n_series):
    y, X = trending(n_series)
    model = chosen(strategy, n_epochs=1).fit([one[:N] for one in y], future_covariates=X, verbose=False)
    values = X[0].values(copy=True)
    values[N:] = 0.0
    low = X[0].with_values(values)
    values[-1] = 1.0
    options = {"series": y[0][:N], "num_samples": 20, "random_state": 0, "verbose": False}
    found = [
        model.predict(H, future_covariates=one, **options).mean(axis=2)
        for one in (X[0].with_values(values), low)
    ]
    assert (found[0] - found[1]).values()[-1, 0] == pytest.approx(3, abs=1)


@pytest.mark.parametrize(("scale", "level"), [(1000, 0), (5, 0), (0.2, 0), (1, 2500), (1, -110)])
def test_series_of_another_scale_or_level_have_effects_in_their_own_units(scale, level):
    y, X = promoted()
    model = chosen("corrected").fit(y[:N], future_covariates=X, verbose=False)
    found = effect_of_promotion(model, X, series=scale * y[:N] + level)[-1, 0]
    assert found / scale == pytest.approx(40, abs=6)


@pytest.mark.parametrize("strategy", ["train", "corrected"])
def test_covariates_keep_their_precision_beside_series_in_single_precision(strategy):
    rng = np.random.default_rng(0)
    x = rng.normal(size=N + H)
    y = series_of(10 + 3 * x + 0.1 * rng.normal(size=N + H))
    X = TimeSeries.from_times_and_values(y.time_index, 1e9 + x)
    model = chosen(strategy, n_epochs=1).fit(y[:N], future_covariates=X, verbose=False)
    found = model.predict(H, future_covariates=X, num_samples=50, random_state=0, verbose=False)
    assert np.abs(found.median().values() - y[N:].values()).mean() < 1


@pytest.mark.parametrize("strategy", ["corrected", "train"])
def test_covariates_in_another_order_are_refused(strategy):
    y, X = promoted()
    both = concatenate([X, promoted(seed=5)[1].with_columns_renamed("promotion", "price")], axis=1)
    model = chosen(strategy, n_epochs=1).fit(y[:N], future_covariates=both, verbose=False)
    message = r"future_covariates has components \['price', 'promotion'\], but the model was fitted with"
    with pytest.raises(ValueError, match=message):
        model.predict(H, future_covariates=both[["price", "promotion"]], verbose=False)


def test_series_of_a_batch_do_not_change_the_demand_of_others():
    rng = np.random.default_rng(0)
    X = [series_of(rng.random(n + H) < 0.25, "promotion") for n in (400, 60)]
    y = [series_of(rng.poisson(0.3 * 4 ** one.values()[:, 0])) for one in X]
    known = [one[:-H] for one in y]
    model = chosen("corrected").fit(known, future_covariates=X, verbose=False)
    options = {"num_samples": 4000, "random_state": 0, "verbose": False}
    alone = model.predict(H, series=known[1], future_covariates=X[1], **options)
    together = model.predict(H, series=known, future_covariates=X, **options)[1]
    np.testing.assert_allclose(*(one.all_values().mean(2) for one in (together, alone)), rtol=0.12)


@pytest.mark.parametrize("zeros", [30, 60])
def test_zeros_before_a_series_begins_leave_effects_in_their_units(zeros):
    y, X = promoted()
    late = series_of(np.r_[np.zeros(zeros), y[:N].values()[:, 0]])
    index = pd.date_range(late.start_time(), periods=len(late) + H, freq="D")
    values = np.r_[np.zeros(zeros), X.values()[:, 0]].astype("float32")
    covariates = TimeSeries.from_times_and_values(index, values, columns=["promotion"])
    model = chosen("corrected").fit(late, future_covariates=covariates, verbose=False)
    values = values.copy()
    values[-H:] = 0.0
    options = {"num_samples": 20, "random_state": 0, "verbose": False}
    found = []
    for last in (1.0, 0.0):
        values[-1] = last
        given = TimeSeries.from_times_and_values(index, values.copy(), columns=["promotion"])
        found.append(model.predict(H, future_covariates=given, **options).mean(axis=2).values()[-1, 0])
    assert found[0] - found[1] == pytest.approx(40, abs=8)


def test_what_statistics_cannot_use_needs_a_network():
    y, X = promoted()
    with pytest.raises(ValueError, match="past_covariates are given, which only a new network can use"):
        chosen("corrected").fit(y[:N], past_covariates=X, verbose=False)
    sold = np.random.default_rng(1).random(len(y))[:, None, None] < 0.2
    demand = y.map(lambda values: np.where(sold, values, 0))
    with pytest.raises(ValueError, match="effects on intermittent demand the pretrained network cannot use"):
        chosen("pretrained").fit(demand[:N], future_covariates=X, verbose=False)


@pytest.mark.parametrize("n_series", [1, 3])
@pytest.mark.parametrize("strategy", ["auto", "averaged"])
def test_covariates_multiply_intermittent_demand(strategy, n_series):
    rng = np.random.default_rng(0)
    X = [series_of(rng.random(200 + H) < 0.25, "promotion") for _ in range(n_series)]
    y = [series_of(rng.poisson(0.3 * 4 ** one.values()[:, 0])) for one in X]
    model = chosen(strategy, n_epochs=1).fit([one[:200] for one in y], future_covariates=X, verbose=False)
    found = [
        model.predict(
            H,
            series=y[0][:200],
            future_covariates=X[0].map(lambda v: np.where(np.arange(len(v))[:, None, None] < 200, v, value)),  # noqa: B023
            num_samples=2000,
            random_state=0,
            verbose=False,
        ).all_values()
        for value in (0.0, 1.0)
    ]
    assert found[1].mean() / found[0].mean() == pytest.approx(4, rel=0.5)
    assert found[0].mean() == pytest.approx(0.3, rel=0.6)
    assert (found[1] == found[1].round()).all()


@pytest.mark.parametrize("cls", [TaylorformerModel, LAMModel, UNNModel])
@pytest.mark.parametrize("shift", [0, 2])
def test_forecasts_have_the_effect_of_covariates(cls, shift):
    y, X = promoted()
    model = trained(cls, output_chunk_shift=shift).fit(y[:N], future_covariates=X, verbose=False)
    wide = X.append_values(np.zeros((shift, 1), dtype="float32"))
    assert effect_of_promotion(model, wide)[-1, 0] == pytest.approx(40, abs=8)


def test_components_have_effects_of_their_own():
    y, X = promoted()
    both = concatenate([y, promoted(0.0)[0].with_columns_renamed("y", "z")], axis=1)
    model = trained().fit(both[:N], future_covariates=X, verbose=False)
    assert effect_of_promotion(model, X)[-1] == pytest.approx([40, 0], abs=8)


def test_effects_on_a_panel_are_in_units_of_every_series():
    pairs = [promoted(40.0, seed) for seed in range(4)]
    y = [one * scale for (one, _), scale in zip(pairs, (1, 1, 100, 100), strict=True)]
    X = [one for _, one in pairs]
    model = trained().fit([one[:N] for one in y], future_covariates=X, verbose=False)
    small, large = (effect_of_promotion(model, X[k], series=y[k][:N])[-1, 0] for k in (0, 3))
    assert small == pytest.approx(40, abs=15)
    assert large / 100 == pytest.approx(40, abs=15)


@pytest.mark.parametrize("strategy", ["baseline", "corrected"])
@pytest.mark.parametrize("padding", ["a longer series in the list", "missing rows in front", "a backtest"])
def test_forecasts_of_a_panel_do_not_depend_on_padding(strategy, padding):
    y, X = promoted()
    X = X.with_values(np.r_[X.values()[:30], np.ones((1, 1)), X.values()[31:]].astype("float32"))
    model = chosen(strategy).fit([y[:N], y[:N] * 2], future_covariates=[X, X], verbose=False)
    options = {"predict_likelihood_parameters": True, "random_state": 0, "verbose": False}
    alone = model.predict(H, series=y[:30], future_covariates=X, **options)
    if padding == "a longer series in the list":
        found = model.predict(H, series=[y[:30], y[:N]], future_covariates=[X, X], **options)[0]
    elif padding == "missing rows in front":
        late = y[:30].prepend_values(np.full((50, 1), np.nan, dtype="float32"))
        found = model.predict(H, series=late, future_covariates=X, **options)
    else:
        options |= {"start": 30, "start_format": "position", "forecast_horizon": H, "stride": N}
        found = model.historical_forecasts(
            y, future_covariates=X, retrain=False, last_points_only=False, **options
        )[0]
    np.testing.assert_allclose(found.values()[:, 0], alone.values()[:, 0], rtol=1e-3)


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "zero_shot", "averaged"])
def test_series_of_a_list_have_effects_of_their_own_where_they_are_unlike(strategy, tmp_path):
    """Those of six series had been the one in common: 30 in place of 10 and 60."""
    pairs = [promoted(effect, seed) for seed, effect in enumerate([10.0, 60.0] * 3)]
    series, X = zip(*pairs, strict=True)
    options = {"n_epochs": 1} if strategy == "averaged" else {}
    model = chosen(strategy, **options).fit(
        [one[:N] for one in series], future_covariates=list(X), verbose=False
    )
    model.save(str(tmp_path / "model.pt"))
    loaded = TaylorformerModel.load(str(tmp_path / "model.pt"), pl_trainer_kwargs=QUIET)
    unseen = promoted(35.0, seed=9)
    for each in (model, loaded):
        found = [
            effect_of_promotion(each, known, series=one[:N])[-1, 0]
            for one, known in [pairs[0], pairs[1], unseen]
        ]
        assert found == pytest.approx([10, 60, 35], abs=7)


@pytest.mark.parametrize("strategy", ["baseline", "corrected", "zero_shot"])
@pytest.mark.parametrize("n_series", [1, 3])
def test_a_constant_has_none_of_the_effects_of_other_series(strategy, n_series):
    pairs = [promoted(40.0, seed) for seed in range(2)]
    constant = series_of(np.full(N, 50.0))
    fitted = [*(one[:N] for one, _ in pairs), constant][:n_series]
    X = [pairs[0][1], pairs[1][1], pairs[0][1]][:n_series]
    model = chosen(strategy).fit(fitted, future_covariates=X, verbose=False)
    options = {"num_samples": 20, "random_state": 0, "verbose": False}
    found = model.predict(H, series=constant, future_covariates=X[0], **options)
    np.testing.assert_allclose(found.all_values(), 50, rtol=1e-2)


def test_a_list_of_series_that_are_alike_has_the_effect_of_all():
    pairs = [promoted(40.0, seed) for seed in range(6)]
    series, X = zip(*pairs, strict=True)
    model = chosen("corrected").fit([one[:N] for one in series], future_covariates=list(X), verbose=False)
    short = promoted(40.0, seed=9)
    found = effect_of_promotion(model, short[1], series=short[0][N - 24 : N])[-1, 0]
    assert found == pytest.approx(40, abs=8)


def test_what_covariates_explain_of_a_series_is_its_own():
    pairs = [promoted(effect, seed) for seed, effect in enumerate([10.0, 60.0] * 3)]
    series, X = zip(*pairs, strict=True)
    model = chosen("corrected").fit([one[:N] for one in series], future_covariates=list(X), verbose=False)
    for (one, known), effect in zip(pairs[:2], (10, 60), strict=True):
        days = known.with_values(
            np.r_[known.values()[:N], np.tile([[0.0], [1.0]], (H // 2, 1))].astype("float32")
        )
        part = model.explain(H, series=one[:N], future_covariates=days)["future: promotion"].values()[:, 0]
        assert part[1::2].mean() - part[::2].mean() == pytest.approx(effect, abs=8)


def test_likelihood_parameters_and_backtests_have_the_effect():
    y, X = promoted()
    model = trained().fit(y[:N], future_covariates=X, verbose=False)
    values = X.values(copy=True)
    values[N:, 0] = np.arange(H) % 2
    asked = X.with_values(values)
    options = {"future_covariates": asked, "verbose": False}
    loc = model.predict(H, predict_likelihood_parameters=True, **options).values()[:, 0]
    week = 100 + 20 * np.sin(2 * np.pi * np.arange(N, N + H) / 7)
    assert (loc - week)[1::2].mean() - (loc - week)[::2].mean() == pytest.approx(40, abs=15)
    found = model.historical_forecasts(
        y, future_covariates=X, start=N - 20, start_format="position", retrain=False, verbose=False
    )
    assert np.abs((found - y.slice_intersect(found)).values()).mean() < 15


def test_saved_models_keep_effects(tmp_path):
    y, X = promoted()
    model = trained().fit(y[:N], future_covariates=X, verbose=False)
    model.save(str(tmp_path / "model.pt"))
    loaded = TaylorformerModel.load(str(tmp_path / "model.pt"), pl_trainer_kwargs=QUIET)
    np.testing.assert_array_equal(effect_of_promotion(loaded, X), effect_of_promotion(model, X))


def test_missing_covariates_and_encoders_do_no_harm():
    y, X = promoted()
    values = X.values(copy=True)
    values[::9] = np.nan
    encoders = {"cyclic": {"future": ["dayofweek"]}}
    model = trained(add_encoders=encoders).fit(y[:N], future_covariates=X.with_values(values), verbose=False)
    assert effect_of_promotion(model, X)[-1, 0] == pytest.approx(40, abs=8)


def test_counts_are_left_to_the_network():
    from darts.utils.likelihood_models.torch import PoissonLikelihood

    y, X = promoted()
    model = trained(likelihood=PoissonLikelihood()).fit(
        y[:N].map(lambda values: np.round(values)), future_covariates=X, verbose=False
    )
    assert model.model.additions is None
    assert np.isfinite(model.predict(H, future_covariates=X, num_samples=5, verbose=False).all_values()).all()


@pytest.mark.parametrize("strategy", ["corrected", "train"])
def test_a_covariate_without_a_value_is_told(strategy):
    times = pd.date_range("2024-01-01", periods=60, freq="D")
    y = TimeSeries.from_times_and_values(times[:50], np.sin(np.arange(50.0)))
    values = np.c_[np.arange(60.0), np.full(60, np.nan)]
    price = TimeSeries.from_times_and_values(times, values, columns=["promotion", "price"])
    model = TaylorformerModel(12, 4, strategy=strategy, n_epochs=1, pl_trainer_kwargs=QUIET)
    with pytest.warns(UserWarning, match="future_covariates has no value of 'price', which counts"):
        model.fit(y, future_covariates=price)


def test_forecasts_with_covariates_stop_where_values_did():
    rng, hour = np.random.default_rng(0), np.arange(264)
    x = rng.normal(size=264)
    load = np.minimum(85 + 25 * np.sin(2 * np.pi * hour / 24) + 4 * rng.normal(size=264) + 6 * x, 100)
    times = pd.date_range("2024-01-01", periods=264, freq="h")
    X = TimeSeries.from_times_and_values(times, x)
    y = TimeSeries.from_times_and_values(times[:240], load[:240])
    model = TaylorformerModel(48, 12, strategy="baseline", random_state=0, pl_trainer_kwargs=QUIET)
    model.fit(y, future_covariates=X)
    found = model.predict(12, future_covariates=X, num_samples=100, verbose=False).all_values()
    assert found.max() == pytest.approx(100, abs=1e-4)
