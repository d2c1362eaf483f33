"""Darts models with the pretrained network, as it is and trained further."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from darts import TimeSeries
from darts.utils.data import SequentialTorchTrainingDataset
from darts.utils.data.torch_datasets.utils import TorchInferenceBatch, _batch_collate_fn_train
from quiet import QUIET, finite

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.darts import TaylorformerModel
from taylorformer_forecast.darts._dataset import DatasetWindows, sample_places
from taylorformer_forecast.defaults import MAX_CYCLES, N_HARMONICS, NETWORK_WEIGHTS
from taylorformer_forecast.engine.pretrained import load_pretrained, save_pretrained
from taylorformer_forecast.engine.strategy import STRATEGIES
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.sktime import TaylorformerForecaster

N = 72
SMALL = {"d_model": 8, "n_heads": 2, "n_layers": 2, "linear_path": True, "n_derivative_neighbours": 1}


def make(**params):
    """Return a model for chunks of 12 and 6 steps, with the pretrained network of the package."""
    usual = {"strategy": "pretrained", "random_state": 0, "pl_trainer_kwargs": QUIET}
    return TaylorformerModel(12, 6, **{**usual, **params})


@pytest.fixture
def own(tmp_path):
    """Return a file with a small network, which adds something to its baseline."""
    torch.manual_seed(0)
    net = DirectTaylorformer(
        LinearBaseline(1, 1),
        dim_covariates=MAX_CYCLES * 2 * N_HARMONICS,
        d_model=8,
        n_heads=2,
        n_layers=2,
        distribution="studentt",
    )
    torch.nn.init.normal_(net.layers.to_params.weight, std=0.05)
    path = tmp_path / "own.safetensors"
    save_pretrained(net, path, {**SMALL, "attention": "full", "distribution": "studentt"}, weight=0.25)
    return path


def parameters(module):
    return {name: value.detach().clone() for name, value in module.net.named_parameters()}


# --- what fit makes of it ---------------------------------------------------------------------------------


def test_without_training_the_weights_are_those_of_the_file_and_the_baseline_is_fitted(series):
    model, known = make().fit(series), load_pretrained("default")
    net = model.model.net
    weights = net.state_dict()
    for name, value in known.weights.items():
        assert torch.equal(weights[name], value), name
    assert float(net.calibration.weight) in NETWORK_WEIGHTS
    trained = make(strategy="train", n_epochs=0).fit(series)  # which has no epoch either
    fitted, expected = net.baseline, trained.model.net.baseline
    assert torch.equal(fitted.map.steps.weight, expected.map.steps.weight)
    assert fitted.log_scale.all()
    assert expected.log_scale.all()
    assert finite(model.predict(15, num_samples=5))
    assert finite(model.predict(4, predict_likelihood_parameters=True))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_every_precision_of_a_series_is_served(series, dtype):
    assert finite(make().fit(series.astype(dtype)).predict(7, num_samples=2))


def test_fine_tuning_trains_the_network_of_the_file_with_a_small_learning_rate(series):
    known = load_pretrained("default").weights
    model = make(strategy="finetune", n_epochs=2, lr=1e-2).fit(series)
    assert isinstance(model.model.net, DirectTaylorformer)
    assert (model.epochs_trained, model.model.lr) == (2, 1e-2)
    rates = [group["initial_lr"] for group in model.trainer.optimizers[0].param_groups]
    assert rates == pytest.approx([1e-2 * DirectTaylorformer.lr_factor] * 2)
    found = {name: value for name, value in parameters(model.model).items() if name in known}
    assert sum(not torch.equal(value, known[name]) for name, value in found.items()) > 20
    for name, value in found.items():
        torch.testing.assert_close(value, known[name], rtol=0.0, atol=0.01)
    assert finite(model.predict(7, num_samples=3))


def test_the_default_length_of_fine_tuning_is_that_of_training(series):
    assert make(strategy="finetune").fit(series[:24]).epochs_trained == 15


def test_of_seasons_the_shortest_are_seen_and_there_may_be_none(series):
    model = make(seasonal_periods=[24, 7, 12]).fit(series)
    assert model.model.n_future > MAX_CYCLES * 2 * N_HARMONICS == model.model.net.dim_covariates
    both = make(seasonal_periods=[7, 12]).fit(series)
    np.testing.assert_array_equal(*(m.predict(3, random_state=0).values() for m in (model, both)))
    assert finite(make(time_features=None, seasonal_periods=None).fit(series).predict(3))


def test_series_that_are_too_short_to_choose_the_weight_take_that_of_the_file(series, own):
    assert make(pretrained=own).fit(series[:25]).model.net.calibration.weight == 0.25


def test_of_a_network_that_makes_forecasts_worse_nothing_is_taken(series, own):
    known = load_pretrained(own)
    weights = {**known.weights, "layers.to_params.weight": 100.0 * known.weights["layers.to_params.weight"]}
    net = torch.nn.Linear(1, 1)
    net.state_dict = lambda: weights
    save_pretrained(net, own, known.settings, weight=1.0)
    net = make(pretrained=own).fit(series).model.net
    assert net.calibration.weight == 0.0
    assert net.layers.to_params.weight.any()


@pytest.mark.parametrize("strategy", ["auto", "averaged", "zero_shot"])
def test_an_average_takes_a_file_for_the_part_that_it_is_made_for(series, own, strategy):
    """That of a network was given to statistics, which refused it."""
    model = make(strategy=strategy, pretrained=own, n_epochs=1).fit(series.append_values(series.values()))
    assert "statistics weigh" in str(model.summary())
    assert finite(model.predict(3, num_samples=3))


def test_a_validation_series_is_scored(series):
    model = make(strategy="finetune", n_epochs=1).fit(series[:54], val_series=series[36:])
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
    same = {"random_state": 0, "strategy": "pretrained", "pretrained": own, "seasonal_periods": [7, 5]}
    forecaster = TaylorformerForecaster(context_length=24, num_samples=7, **same)
    forecaster.fit(pd.Series(values), fh=range(1, 9))
    plain = TimeSeries.from_values(values.astype("float32"))
    model = TaylorformerModel(24, 8, pl_trainer_kwargs=QUIET, **same).fit(plain)
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
    mixture = expected.mixture
    others = {"loc": mixture.loc, "scale": mixture.scale, **mixture.shape}
    for name in ("loc", "scale", "df"):  # of the first window: later ones follow the paths
        parts = found.conditionals.tensors()[name][0, 0, :8, 0, 0]
        np.testing.assert_allclose(parts, others[name][:8, 0, 0], rtol=1e-4)


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


@pytest.mark.parametrize("strategy", ["pretrained", "zero_shot", "finetune"])
def test_a_file_of_ones_own_is_read_by_fit_and_not_needed_later(series, own, tmp_path, strategy):
    params = {"strategy": strategy, "pretrained": own, "n_epochs": 1}
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
        assert fresh.summary().strategy == strategy
    if strategy == "finetune":
        before = copy.deepcopy(fresh.model.net.state_dict())
        fresh.fit(series, epochs=1)  # goes on from the weights, and reads no file
        after = fresh.model.net.state_dict()
        assert not torch.equal(before["layers.join.weight"], after["layers.join.weight"])
        assert torch.equal(before["baseline.map.steps.weight"], after["baseline.map.steps.weight"])
    with pytest.raises(FileNotFoundError, match="is neither 'default' nor a file"):
        model.untrained_model().fit(series)


def test_checkpoints_go_on_training(series, tmp_path):
    model = make(
        strategy="finetune",
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


@pytest.mark.parametrize("strategy", ["pretrained", "zero_shot", "corrected"])
def test_it_is_said_that_nothing_is_saved_where_nothing_is_trained(series, tmp_path, strategy):
    options = {"model_name": "m", "work_dir": str(tmp_path), "save_checkpoints": True}
    options["pl_trainer_kwargs"] = {**QUIET, "enable_checkpointing": True}
    with pytest.warns(UserWarning, match=f"saves nothing, as strategy='{strategy}' trains no network"):
        make(strategy=strategy, **options).fit(series)
    assert not [*tmp_path.glob("**/*.ckpt")]


@pytest.mark.parametrize("strategy", ["pretrained", "train", "finetune"])
def test_weights_can_be_loaded_unchecked(series, tmp_path, strategy):
    path = str(tmp_path / "model.pt")
    params = {"strategy": strategy, "n_epochs": 1, "time_features": None, "seasonal_periods": None}
    saved, fresh = make(**params).fit(series), make(**params)
    saved.save(path)
    fresh.load_weights(path, load_encoders=False, skip_checks=True)
    assert all(torch.equal(v, fresh.model.state_dict()[k]) for k, v in saved.model.state_dict().items())
    assert fresh.summary().strategy == strategy
    assert fresh.fit(series).summary().strategy == strategy
    usual = make(**{**params, "strategy": "auto"})
    usual.load_weights(path, load_encoders=False, skip_checks=True)
    assert usual.summary().strategy == strategy


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("options", [{}, {"skip_checks": True}])
def test_weights_of_the_default_are_loaded_by_the_default_without_encoders(series, tmp_path, clean, options):
    """New encoders were those of a network, where the file had a statistical forecast and none."""
    path = str(tmp_path / "model.pt")
    model = make(strategy="auto").fit(series)
    expected = model.predict(9, num_samples=3, random_state=1)
    model.save(path, clean=clean)
    fresh = make(strategy="auto")
    fresh.load_weights(path, load_encoders=False, **options)
    assert fresh.predict(9, series=series, num_samples=3, random_state=1) == expected
    assert fresh.summary().strategy == model.summary().strategy == "corrected"


@pytest.mark.parametrize(
    ("saved", "loading"),
    [("pretrained", "train"), ("finetune", "train"), ("train", "pretrained"), ("train", "finetune")],
)
def test_weights_of_pretrained_and_of_new_networks_do_not_fit_each_other(series, tmp_path, saved, loading):
    path = str(tmp_path / "model.pt")
    make(strategy=saved, n_epochs=1).fit(series).save(path)
    with pytest.raises(ValueError, match=f"strategy='{saved}', and fit no model with strategy='{loading}'"):
        make(strategy=loading, n_epochs=1).load_weights(path)


@pytest.mark.parametrize("saved", STRATEGIES[1:])
def test_weights_of_every_strategy_can_be_loaded_by_the_default(series, tmp_path, saved):
    path = str(tmp_path / "model.pt")
    model = make(strategy=saved, n_epochs=1).fit(series)
    model.save(path)
    for load_encoders in (True, False):
        fresh = make(strategy="auto")
        fresh.load_weights(path, load_encoders=load_encoders)
        forecasts = [m.predict(6, series=series, random_state=0).values() for m in (model, fresh)]
        np.testing.assert_array_equal(*forecasts)
        assert fresh.summary().strategy == saved


# --- what is refused --------------------------------------------------------------------------------------


def test_a_dataset_without_time_stamps_is_refused_where_the_pretrained_network_is_asked_for(series):
    dataset = SequentialTorchTrainingDataset(series, input_chunk_length=12, output_chunk_length=6)
    for strategy in ("pretrained", "finetune"):
        with pytest.raises(ValueError, match="call fit, not fit_from_dataset"):
            make(strategy=strategy).fit_from_dataset(dataset)
    trained = make(strategy="auto", n_epochs=1, d_model=8).fit_from_dataset(dataset)
    assert trained.summary().strategy == "train"
    assert trained.summary().reason == "windows of a dataset say nothing of its series"


def test_a_file_of_another_distribution_is_refused(series, own):
    save_pretrained(torch.nn.Linear(1, 1), own, {**SMALL, "distribution": "normal"}, weight=0.5)
    with pytest.raises(ValueError, match="trained with distribution='normal'"):
        make(pretrained=own).fit(series)


def test_static_covariates_may_be_left_out(series):
    known = series.with_static_covariates(pd.DataFrame({"a": [1.0]}).astype("float32"))
    assert finite(make(use_static_covariates=False).fit(known).predict(3))
