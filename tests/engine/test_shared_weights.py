"""Weights that are shared between hosts and users, in files that hold numbers only."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from darts import TimeSeries
from quiet import QUIET, finite

from taylorformer_forecast.darts import TaylorformerModel
from taylorformer_forecast.engine.pretrained import load_pretrained
from taylorformer_forecast.sktime import TaylorformerForecaster

MONTHS = pd.period_range("2000-01", periods=72, freq="M")
Y = pd.Series(3 + np.sin(np.arange(72.0) / 2) + 0.1 * np.random.default_rng(0).normal(size=72), MONTHS)
PANEL = pd.concat({key: (k * Y).to_frame("y") for k, key in enumerate("ab", 1)}, names=["id", "month"])
SERIES = TimeSeries.from_times_and_values(MONTHS.to_timestamp(), Y.to_numpy(dtype="float32"))
TUNED = {"strategy": "finetune", "lr": 0.1, "random_state": 0}


def forecaster(**changes):
    return TaylorformerForecaster(**{"max_steps": 2, "random_state": 0, "num_samples": 10, **changes})


def model(**changes):
    return TaylorformerModel(
        12, 6, **{"n_epochs": 1, "pl_trainer_kwargs": QUIET, "random_state": 0, **changes}
    )


SHARING = {
    "sktime, a series": lambda: forecaster(**TUNED).fit(Y, fh=[1, 2, 3]),
    "sktime, a panel": lambda: forecaster(**TUNED).pretrain(PANEL, fh=[1, 2, 3]),
    "sktime, a pickle": lambda: pickle.loads(pickle.dumps(forecaster(**TUNED).fit(Y, fh=[1]))),
    "darts": lambda: model(**TUNED).fit(SERIES),
}


def weights(net):
    return {name: value.detach() for name, value in net.named_parameters() if name.startswith("layers.")}


@pytest.mark.parametrize("who", SHARING)
def test_weights_that_one_host_has_trained_are_loaded_by_both(who, tmp_path):
    path, giver = tmp_path / "network.safetensors", SHARING[who]()
    giver.save_pretrained(path)
    expected = {name: value.half().float() for name, value in weights(giver._network_to_share()).items()}
    packaged = load_pretrained("default").weights
    assert sum(not torch.equal(value, packaged[name]) for name, value in expected.items()) > 20

    taken = TaylorformerForecaster.from_pretrained(path, random_state=0, num_samples=10)
    other = TaylorformerModel.from_pretrained(str(path), 12, 6, random_state=0, pl_trainer_kwargs=QUIET)
    nets = taken.fit(100 * Y[:40], fh=[1, 2]).network_, other.fit(SERIES).model.net
    for net in nets:
        found = weights(net)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], value) for name, value in expected.items())
    assert (taken.strategy_, other.summary().strategy) == ("pretrained", "pretrained")
    assert np.isfinite(taken.predict().to_numpy()).all()
    assert finite(other.predict(9, num_samples=2))

    again = tmp_path / "again.safetensors"
    taken.save_pretrained(again)  # unchanged but for the weight that its series has chosen
    assert load_pretrained(again).settings == load_pretrained(path).settings
    tuned = TaylorformerForecaster.from_pretrained(again, **TUNED, max_steps=1).fit(Y, fh=[1])
    assert tuned.strategy_ == "finetune"


@pytest.mark.parametrize(
    "without",
    [
        lambda: forecaster(),
        lambda: forecaster(strategy="train").fit(Y[:30]),
        lambda: forecaster(strategy="corrected").fit(Y),
        lambda: model(),
        lambda: model(strategy="train").fit(SERIES),
        lambda: model(strategy="corrected").fit(SERIES),
    ],
)
def test_what_is_no_pretrained_network_is_not_saved(without, tmp_path):
    with pytest.raises(ValueError, match=r"^there is no pretrained network .* strategy='finetune' [^\n]*$"):
        without().save_pretrained(tmp_path / "network.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("host", "sizes"), [(TaylorformerForecaster, ()), (TaylorformerModel, (12, 6))])
def test_a_file_of_another_kind_is_refused_before_anything_is_fitted(host, sizes, tmp_path):
    path = tmp_path / "network.safetensors"
    for content in (pickle.dumps(print), b"", b"\0" * 100):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="holds no pretrained network"):
            host.from_pretrained(path, *sizes)
    with pytest.raises(FileNotFoundError, match="is neither 'default' nor a file"):
        host.from_pretrained(tmp_path / "nowhere", *sizes)


@pytest.mark.parametrize(("host", "sizes"), [(TaylorformerForecaster, ()), (TaylorformerModel, (12, 6))])
@pytest.mark.parametrize("strategy", ["auto", "train", "baseline", None])
def test_weights_are_not_loaded_for_a_strategy_without_them(host, sizes, strategy):
    with pytest.raises(ValueError, match=rf"^strategy={strategy!r}, but the weights of a file are for"):
        host.from_pretrained("default", *sizes, strategy=strategy)
