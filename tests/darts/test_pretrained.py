"""Darts models that start from a network trained on other series."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from darts import TimeSeries
from darts.utils.data import SequentialTorchTrainingDataset
from darts.utils.data.torch_datasets.utils import TorchInferenceBatch, _batch_collate_fn_train
from darts.utils.likelihood_models.torch import GaussianLikelihood, PoissonLikelihood, QuantileRegression
from darts.utils.timeseries_generation import linear_timeseries, sine_timeseries

from taylorformer_forecast.baselines.linear import TRUST, LinearForecast
from taylorformer_forecast.calendar.cycles import N_HARMONICS
from taylorformer_forecast.darts import TaylorformerModel
from taylorformer_forecast.darts._dataset import DatasetWindows, sample_places
from taylorformer_forecast.engine.pretrained import SLOTS, TRUSTS, load_prior, save_prior
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.sktime import TaylorformerForecaster

QUIET = {
    "accelerator": "cpu",
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "logger": False,
    "enable_checkpointing": False,
}
N = 72
SMALL = {"d_model": 8, "n_heads": 2, "n_layers": 2, "linear_path": True, "n_derivative_neighbours": 1}


def make(**params):
    """Return a model for chunks of 12 and 6 steps that starts from the prior of the package."""
    usual = {"pretrained": "default", "n_epochs": 0, "random_state": 0, "pl_trainer_kwargs": QUIET}
    return TaylorformerModel(12, 6, **{**usual, **params})


def finite(forecast):
    return bool(np.isfinite(forecast.all_values()).all())


@pytest.fixture(scope="module")
def series():
    """Return a noisy season of one component."""
    noise = np.random.default_rng(0).normal(size=(N, 1))
    season = sine_timeseries(length=N, value_frequency=1 / 12)
    return season.with_values(season.values() + 0.1 * noise + 3.0).astype("float32")


@pytest.fixture(scope="module")
def long():
    """Return a series of sixteen output chunks."""
    return sine_timeseries(length=96, value_frequency=1 / 12).astype("float32")


@pytest.fixture
def one_pass(monkeypatch):
    """Train one epoch where the number is left open."""
    module = TaylorformerModel._module_class
    monkeypatch.setattr(module, "spec", replace(module.spec, num_epochs=1))


@pytest.fixture
def own(tmp_path):
    """Return a small prior in a file, which adds something to the linear forecast."""
    torch.manual_seed(0)
    net = DirectTaylorformer(
        LinearForecast(1, 1),
        dim_covariates=SLOTS * 2 * N_HARMONICS,
        d_model=8,
        n_heads=2,
        n_layers=2,
        distribution="studentt",
    )
    torch.nn.init.normal_(net.layers.to_params.weight, std=0.05)
    path = tmp_path / "own.safetensors"
    save_prior(net, path, {**SMALL, "attention": "full", "distribution": "studentt"}, trust=0.25)
    return path


def learnt(model, prior):
    """Weights of a model's network that were the prior's at first, the last layer in its scale."""
    weights = model.model.net.state_dict()
    return {name: weights[name] for name in prior.weights}


# --- what fit makes of a prior ----------------------------------------------------------------------------


def test_without_an_epoch_the_weights_are_those_of_the_prior_and_the_linear_part_is_fitted(series):
    model, prior = make().fit(series), load_prior("default")
    weights = learnt(model, prior)
    for name, value in prior.weights.items():
        if not name.startswith("layers.to_params"):
            assert torch.equal(weights[name], value), name
    share = float((weights["layers.to_params.weight"] / prior.weights["layers.to_params.weight"]).mean())
    trust = float(model.model.net.forecast.trust)
    assert min(abs(share * trust - known) for known in TRUSTS) < 1e-6
    assert trust >= TRUST
    plain = make(pretrained=None).fit(series)  # which has no epoch either
    fitted, expected = model.model.net.forecast, plain.model.net.linear.forecast
    assert torch.equal(fitted.map.steps.weight, expected.map.steps.weight)
    assert fitted.log_scale.all()
    assert expected.log_scale.all()
    assert finite(model.predict(15, num_samples=5))
    assert finite(model.predict(4, predict_likelihood_parameters=True))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_every_precision_of_a_series_is_served(series, dtype):
    assert finite(make().fit(series.astype(dtype)).predict(7, num_samples=2))


def test_training_is_of_a_network_around_the_prior(series):
    prior = load_prior("default")
    model = make(n_epochs=2, lr=1e-2).fit(series)
    assert (model.epochs_trained, model.model.lr) == (2, 1e-2)
    net = model.model.net
    inside = net.linear.forecast.direct.state_dict()
    for name, value in prior.weights.items():
        if not name.startswith("layers.to_params"):
            assert torch.equal(inside[name], value), name
    assert net.to_params.weight.any()
    assert finite(model.predict(7, num_samples=3))


def test_a_prior_itself_is_trained_gently(series):
    model = make(lr=1e-2).fit(series, epochs=1)
    assert model.model.lr == pytest.approx(2e-4)
    assert isinstance(model.model.net, DirectTaylorformer)
    assert finite(model.predict(7, num_samples=3))


@pytest.mark.parametrize(
    "params",
    [
        {"likelihood": GaussianLikelihood()},
        {"likelihood": QuantileRegression([0.1, 0.5, 0.9])},
        {"loss_fn": torch.nn.L1Loss()},
        {"d_model": 16, "n_heads": 1, "n_layers": 3, "attention": "local"},
    ],
)
def test_around_a_prior_any_network_and_likelihood_with_a_location_is_trained(series, params):
    assert finite(make(n_epochs=1, **params).fit(series).predict(7))


def test_a_network_around_a_prior_sees_covariates_and_the_prior_does_not(series):
    known = series.with_static_covariates(pd.DataFrame({"a": [1.0]}).astype("float32"))
    covariates = linear_timeseries(length=2 * N).astype("float32")
    both = {"past_covariates": covariates, "future_covariates": covariates}
    model = make(n_epochs=1).fit(known, **both)
    direct, seen = model.model.net.linear.forecast.direct, []
    direct.forecast.trust.fill_(0.5)
    parts = direct.parts
    direct.parts = lambda window: (seen.append(window), parts(window))[1]
    assert finite(model.predict(6))
    steps = known.time_index.union(known.time_index + 6 * known.freq)[-18:]
    assert seen[0].covariates.shape[2] == direct.dim_covariates + 3
    np.testing.assert_allclose(
        seen[0].covariates[0, :, : direct.dim_covariates], model._seasonal(steps), atol=1e-5
    )


def test_the_length_of_training_is_left_open_as_without_a_prior(series):
    assert make(n_epochs=None).fit(series[:24]).epochs_trained == 15


def test_of_seasons_the_shortest_are_seen_and_there_may_be_none(series):
    model = make(seasonal_periods=[24, 7, 12]).fit(series)
    assert model.model.n_future > SLOTS * 2 * N_HARMONICS == model.model.net.dim_covariates
    both = make(seasonal_periods=[7, 12]).fit(series)
    np.testing.assert_array_equal(*(m.predict(3, random_state=0).values() for m in (model, both)))
    assert finite(make(time_features=None, seasonal_periods=None).fit(series).predict(3))


def test_series_that_are_too_short_to_tell_take_the_usual_trust(series, own):
    model = make(pretrained=own).fit(series[:25])
    scale = model.model.net.layers.to_params.weight / load_prior(own).weights["layers.to_params.weight"]
    torch.testing.assert_close(scale, torch.full_like(scale, 0.25 / TRUST))


def test_of_a_prior_that_misleads_nothing_is_taken(series, own):
    prior = load_prior(own)
    weights = {**prior.weights, "layers.to_params.weight": 100.0 * prior.weights["layers.to_params.weight"]}
    net = torch.nn.Linear(1, 1)
    net.state_dict = lambda: weights
    save_prior(net, own, prior.settings, trust=1.0)
    net = make(pretrained=own).fit(series).model.net
    assert not net.layers.to_params.weight.any()
    assert net.layers.join.weight.any()


def test_a_validation_series_is_scored(series):
    model = make(n_epochs=1).fit(series[:54], val_series=series[36:])
    assert np.isfinite(model.trainer.callback_metrics["val_loss"])


def test_several_series_and_components_with_gaps_are_served(series):
    wide = series.stack((100.0 * series + 5.0).astype("float32"))
    values = wide.values().copy()
    values[10:14, 0] = np.nan
    gappy = wide.with_values(values)
    model = make().fit([gappy, wide[:30]])
    assert finite(model.predict(8, series=gappy, num_samples=3))


def test_a_shifted_output_chunk_starts_later(series):
    forecast = make(output_chunk_shift=3).fit(series).predict(6, num_samples=2)
    assert forecast.start_time() == series.end_time() + 4 * series.freq
    assert finite(forecast)


def test_backtests_with_and_without_fits(series):
    model = make().fit(series)
    for retrain in (True, False):
        forecasts = model.historical_forecasts(
            series, start=60, forecast_horizon=6, stride=5, retrain=retrain, num_samples=2
        )
        assert finite(forecasts)


def test_the_same_weights_give_the_same_distributions_in_sktime_and_darts(own):
    values = np.random.default_rng(0).normal(size=80).cumsum() * 3.0 + 50.0
    same = {"random_state": 0, "pretrained": own, "seasonal_periods": [7, 5]}
    forecaster = TaylorformerForecaster(context_length=24, max_steps=0, num_samples=7, **same)
    forecaster.fit(pd.Series(values), fh=range(1, 9))
    plain = TimeSeries.from_values(values.astype("float32"))
    model = TaylorformerModel(24, 8, n_epochs=0, pl_trainer_kwargs=QUIET, **same).fit(plain)
    module = model.model
    module.net.load_state_dict(forecaster.network_.state_dict())
    _, expected = forecaster._predictive(forecaster._check_fh(range(1, 18)), None)
    phases = torch.as_tensor(model._seasonal(pd.RangeIndex(80 - 24, 80 + 17)), dtype=torch.float32)[None]
    batch = TorchInferenceBatch(
        past_target=torch.tensor(values[-24:], dtype=torch.float32)[None, :, None],
        historic_future_covariates=phases[:, :24],
        future_covariates=phases[:, 24:],
    )
    module.pred_mc_dropout = False
    module.eval()
    torch.manual_seed(forecaster._seed)
    found = module.sample(batch, 17, n_paths=7, roll_size=8)
    assert found.paths.shape[1:3] == expected.paths.shape[:2]
    known = {"loc": expected.loc, "scale": expected.scale, **expected.shape}
    assert "df" in known
    for name, values in known.items():  # of the first window: later ones follow the paths
        parts = found.conditionals.tensors()[name][0, 0, :8, 0, 0]
        np.testing.assert_allclose(parts, values[:8, 0, 0], rtol=1e-4)


@pytest.mark.parametrize(("stride", "shift"), [(1, 0), (3, 2)])
def test_windows_of_a_dataset_are_split_by_their_time(stride, shift):
    def values(n):  # which tell the length of the series, the component and the row
        return (np.arange(n)[:, None] + np.array([1000.0 * n, 1000.0 * n + 500.0])).astype("float32")

    series = [TimeSeries.from_values(values(n)) for n in (40, 20)]
    module = make(output_chunk_shift=shift).fit(series).model
    module.normalise = False
    dataset = SequentialTorchTrainingDataset(series, None, None, 12, 6, shift, stride)
    windows = DatasetWindows(module, dataset, _batch_collate_fn_train)
    seen = []
    for part, last in ({"keep": 0.75}, 0.75), ({"skip": 0.75}, 1.0):
        starts = windows.starts(3, **part)
        window, _ = windows.windows(starts, last)
        y, observed = (v[..., 0] for v in window.targets)
        first = y[:, 0]
        length, component, row = first // 1000, first % 1000 // 500, first % 500
        assert torch.equal(component, starts[:, 0].float())
        assert torch.equal(window.y[:, window.n_context - 1, 0], first - 1 - shift)
        assert torch.equal(row < 0.75 * length, torch.full_like(observed[:, 0], "keep" in part))
        assert torch.equal(observed, row[:, None] + torch.arange(6) < last * length[:, None])
        seen += first.tolist()
    assert len(set(seen)) == len(seen) == 2 * sum(-(-(n - 17 - shift) // stride) for n in (40, 20))
    assert len(DatasetWindows(module, [1, 2, 3], _batch_collate_fn_train).starts(3)) == 0


def test_places_of_samples_are_where_their_targets_are():
    """Also of a series that is shorter than another, of which darts takes samples again."""
    series = [TimeSeries.from_values(np.arange(float(n))[:, None]) for n in (40, 20, 19)]
    dataset = SequentialTorchTrainingDataset(series, None, None, 12, 6, 0, 2)
    samples = torch.arange(len(dataset))
    places = sample_places(dataset, samples, 6)
    assert places[:, 1].tolist() == [dataset[int(i)].future_target[0, 0] for i in samples]
    assert places[:, 2].unique().tolist() == [19, 20, 40]
    assert len(places.unique(dim=0)) == len(places[:, 0].unique()) == 12 + 2 + 1
    assert sample_places([1, 2, 3], torch.arange(3), 6).shape == (0, 3)


# --- files ------------------------------------------------------------------------------------------------


def test_a_file_of_ones_own_is_read_by_fit_and_not_needed_later(series, own, tmp_path):
    params = {"pretrained": own}
    model = make(**params).fit(series)
    assert model.model.net.layers.to_params.weight.any()
    expected = model.predict(9, num_samples=3, random_state=1)
    path = str(tmp_path / "model.pt")
    model.save(path)
    clean = str(tmp_path / "clean.pt")
    model.save(clean, clean=True)
    own.unlink()
    assert TaylorformerModel.load(path).predict(9, num_samples=3, random_state=1) == expected
    cleaned = TaylorformerModel.load(clean, pl_trainer_kwargs=QUIET)
    assert cleaned.predict(9, series=series, num_samples=3, random_state=1) == expected
    copied = pickle.loads(pickle.dumps(model))  # darts leaves the network out
    copied.model = copy.deepcopy(model.model)
    assert copied.predict(9, num_samples=3, random_state=1) == expected
    for load_encoders in (True, False):
        fresh = make(**{**params, "pretrained": Path("elsewhere.safetensors")})
        fresh.load_weights(path, load_encoders=load_encoders)
        assert fresh.predict(9, series=series, num_samples=3, random_state=1) == expected
    before = copy.deepcopy(fresh.model.net.state_dict())
    fresh.fit(series, epochs=1)  # goes on from the weights, and reads no file
    after = fresh.model.net.state_dict()
    assert not torch.equal(before["layers.join.weight"], after["layers.join.weight"])
    assert torch.equal(before["forecast.map.steps.weight"], after["forecast.map.steps.weight"])
    with pytest.raises(FileNotFoundError, match="is neither 'default' nor a file"):
        model.untrained_model().fit(series)


def test_checkpoints_go_on_training(series, tmp_path):
    model = make(
        n_epochs=1,
        model_name="m",
        work_dir=str(tmp_path),
        save_checkpoints=True,
        pl_trainer_kwargs={**QUIET, "enable_checkpointing": True},
    ).fit(series)
    loaded = TaylorformerModel.load_from_checkpoint("m", work_dir=str(tmp_path), best=False)
    first, second = (m.predict(4, series=series, num_samples=2, random_state=0) for m in (model, loaded))
    assert first == second
    assert finite(loaded.fit(series, epochs=1).predict(4, num_samples=2))


def test_weights_can_be_loaded_unchecked(series, tmp_path):
    path = str(tmp_path / "model.pt")
    saved, fresh = make(n_epochs=1).fit(series), make(n_epochs=1)
    saved.save(path)
    fresh.load_weights(path, load_encoders=False, skip_checks=True)
    assert all(torch.equal(v, fresh.model.state_dict()[k]) for k, v in saved.model.state_dict().items())


def test_weights_with_and_without_a_prior_do_not_fit_each_other(series, tmp_path):
    path = str(tmp_path / "model.pt")
    make().fit(series).save(path)
    with pytest.raises(
        ValueError, match=r"pretrained='default' and n_epochs=0, and fit no model .* pretrained=None"
    ):
        make(pretrained=None).load_weights(path)


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"likelihood": GaussianLikelihood()}, "likelihood=GaussianLikelihood: .* with StudentTLikelihood"),
        ({"loss_fn": torch.nn.L1Loss()}, "loss_fn: .* with StudentTLikelihood"),
        ({"use_reversible_instance_norm": False}, "knows normalised windows only"),
        ({"n_epochs": 1, "likelihood": PoissonLikelihood()}, "PoissonLikelihood has no location"),
    ],
)
def test_what_fits_no_prior_is_refused_at_once(params, message):
    with pytest.raises(ValueError, match=message):
        make(**params)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"d_model": 8}, "d_model=8, but the network of pretrained has d_model=32"),
        ({"n_layers": 3}, "n_layers=3"),
        ({"linear_path": False}, "linear_path=False"),
        ({"attention": "local"}, "attention='local'"),
        ({"add_encoders": {"cyclic": {"future": ["month"]}}}, "pretrained='default' has seen no covariates"),
    ],
)
def test_parameters_of_another_network_are_refused_by_fit(series, params, message):
    with pytest.raises(ValueError, match=message):
        make(**params).fit(series)


@pytest.mark.parametrize("kind", ["past", "future"])
def test_covariates_are_refused_without_training(series, kind):
    covariates = {f"{kind}_covariates": linear_timeseries(length=2 * N).astype("float32")}
    with pytest.raises(ValueError, match="pretrained='default' has seen no covariates: fit without"):
        make().fit(series, **covariates)


def test_without_training_static_covariates_are_refused_or_left_out(series):
    known = series.with_static_covariates(pd.DataFrame({"a": [1.0]}).astype("float32"))
    with pytest.raises(ValueError, match="use_static_covariates=False"):
        make().fit(known)
    assert finite(make(use_static_covariates=False).fit(known).predict(3))


def test_a_dataset_without_time_stamps_is_refused(series):
    dataset = SequentialTorchTrainingDataset(series, input_chunk_length=12, output_chunk_length=6)
    with pytest.raises(ValueError, match="call fit, not fit_from_dataset"):
        make().fit_from_dataset(dataset)


def test_a_prior_with_another_distribution_is_refused(series, own):
    save_prior(torch.nn.Linear(1, 1), own, {**SMALL, "distribution": "normal"}, trust=0.5)
    with pytest.raises(ValueError, match="trained with distribution='normal'"):
        make(pretrained=own).fit(series)


@pytest.mark.parametrize(
    ("n", "change", "alone"),
    [
        (40, {}, True),
        (95, {}, True),
        (96, {}, False),
        (40, {"pl_trainer_kwargs": {**QUIET, "callbacks": [pl.callbacks.Timer({"minutes": 1})]}}, True),
        (40, {"pretrained": None}, False),
        (40, {"n_epochs": 1}, False),
        (40, {"likelihood": GaussianLikelihood()}, False),
        (40, {"lr": 1e-3}, False),
        (40, {"batch_size": 32}, True),  # the default
        (40, {"save_checkpoints": True, "pl_trainer_kwargs": {**QUIET, "enable_checkpointing": True}}, False),
        (40, {"pl_trainer_kwargs": {**QUIET, "callbacks": [pl.Callback()]}}, False),
    ],
)
def test_series_too_short_to_teach_a_network_are_left_to_the_prior_unless_one_is_asked_for(
    long, n, change, alone, tmp_path
):
    model = make(**{"pretrained": "auto", "n_epochs": None, "work_dir": str(tmp_path)} | change)
    model.fit(long[:n])
    assert isinstance(model.model.net, DirectTaylorformer) == alone
    assert (model.epochs_trained == 0) == alone
    if alone:
        asked = make().fit(long[:n])
        forecasts = (m.predict(8, num_samples=3, random_state=0).all_values() for m in (model, asked))
        np.testing.assert_array_equal(*forecasts)


@pytest.mark.parametrize("what", ["past_covariates", "future_covariates", "static", "epochs", "val_series"])
@pytest.mark.usefixtures("one_pass")
def test_a_short_series_is_learnt_from_where_only_a_network_can_use_what_is_given(series, what):
    short, more = series[:40], {}
    if what == "static":
        short = short.with_static_covariates(pd.DataFrame({"size": [1.0]}))
    else:
        more = {what: 1 if what == "epochs" else series}
    model = make(pretrained="auto", n_epochs=None)
    assert not isinstance(model.fit(short, **more).model.net, DirectTaylorformer)


@pytest.mark.usefixtures("one_pass")
def test_a_model_of_a_short_series_can_be_saved_loaded_and_fitted_anew(series, long, tmp_path):
    model = make(pretrained="auto", n_epochs=None).fit(series[:40])
    model.save(str(tmp_path / "model.pt"))
    again = TaylorformerModel.load(str(tmp_path / "model.pt"), pl_trainer_kwargs=QUIET)
    weights = make(pretrained="auto", n_epochs=None)
    weights.load_weights(str(tmp_path / "model.pt"))
    forecasts = [m.predict(6, series[:40], random_state=0).values() for m in (model, again, weights)]
    np.testing.assert_array_equal(forecasts[0], forecasts[1])
    np.testing.assert_array_equal(forecasts[0], forecasts[2])
    for one in (model, again, weights, model.untrained_model()):
        assert isinstance(one.fit(long).model.net, Taylorformer)
        assert one.epochs_trained == 1
    with pytest.raises(ValueError, match="n_epochs=0, and fit no model with pretrained='default'"):
        make(n_epochs=1).load_weights(str(tmp_path / "model.pt"))


def test_a_further_short_series_is_not_forecast_by_what_was_fitted_to_the_first(series):
    other = make(pretrained="auto", n_epochs=None).fit(series[:40]).fit(series[20:60])
    fresh = make(pretrained="auto", n_epochs=None).fit(series[20:60])
    with pytest.raises(ValueError, match="infinite"):
        other.fit(series[:40].map(lambda values: values / 0.0))
    np.testing.assert_array_equal(*(m.predict(6, random_state=0).values() for m in (other, fresh)))


def test_a_learning_rate_can_be_looked_for_on_a_short_series(series):
    model = make(pretrained="auto", n_epochs=None)
    assert len(model.lr_find(series[:40], num_training=5).results["lr"]) > 0
    assert isinstance(model.fit(series[:40]).model.net, DirectTaylorformer)


def test_short_series_are_left_to_the_prior_in_backtests_lists_and_after_a_shift(series):
    model = make(pretrained="auto", n_epochs=None)
    forecasts = model.historical_forecasts(series[:44], forecast_horizon=6, start=38, retrain=True)
    assert finite(forecasts)
    pair = model.untrained_model().fit([series[:22], series[:20]])
    assert isinstance(pair.model.net, DirectTaylorformer)
    shifted = make(pretrained="auto", n_epochs=None, output_chunk_shift=2).fit(series[:40])
    assert isinstance(shifted.model.net, DirectTaylorformer)
    assert finite(shifted.predict(6))
