"""Files from others: darts models load them without running code that stands in them."""

from __future__ import annotations

import shutil

import pytest
import torch
from darts.utils.serialization.base import UnpicklingError
from quiet import QUIET

from taylorformer_forecast.core.attention.registry import KERNELS
from taylorformer_forecast.darts import LAMModel, TaylorformerModel


class Payload:
    """Writes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return eval, (f"open({str(self.path)!r}, 'w').close()",)


@pytest.fixture(scope="module", params=["LAM", "train", "corrected"])
def fitted(request, series, tmp_path_factory):
    """A model that was saved: its class, its parameters and the folder."""
    options = {"random_state": 0, "n_epochs": 1, "pl_trainer_kwargs": QUIET}
    model_class = LAMModel if request.param == "LAM" else TaylorformerModel
    if model_class is TaylorformerModel:
        options["strategy"] = request.param
    folder = tmp_path_factory.mktemp("saved")
    model_class(12, 6, **options).fit(series).save(str(folder / "model.pt"))
    return model_class, options, folder


@pytest.fixture
def saved(fitted, tmp_path):
    """The same, with a file that may be changed."""
    model_class, options, folder = fitted
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return model_class, options, str(tmp_path / "model.pt")


def change(path, edit):
    """Edit what a file of torch holds."""
    content = torch.load(path, weights_only=False)
    torch.save(edit(content) or content, path)


# What is replaced: the file, and how it holds the payload.
HOSTILE = {
    "a pickle in the place of the model": ("", lambda payload: lambda content: payload),
    "an attribute of the model": ("", lambda payload: lambda model: setattr(model, "extra", payload)),
    "a parameter of the model": (
        "",
        lambda payload: lambda model: model.model_params.__setitem__("pretrained", payload),
    ),
    "a pickle in the place of the checkpoint": (".ckpt", lambda payload: lambda content: payload),
    "a parameter of the checkpoint": (
        ".ckpt",
        lambda payload: lambda content: content["hyper_parameters"].__setitem__("lr", payload),
    ),
    "a weight": (
        ".ckpt",
        lambda payload: lambda content: content["state_dict"].__setitem__("net.extra", payload),
    ),
    "an entry of the checkpoint": (".ckpt", lambda payload: lambda c: c.__setitem__("callbacks", payload)),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_and_runs_nothing(saved, case, tmp_path):
    model_class, options, path = saved
    which, edit = HOSTILE[case]
    touched = tmp_path / "touched"
    change(path + which, edit(Payload(touched)))
    for load in (model_class.load, model_class(12, 6, **options).load_weights):
        with pytest.raises(UnpicklingError):
            load(path)
        assert not touched.exists()
    torch.load(path + which, weights_only=False)  # the file does hold what would run
    assert touched.exists()


def test_a_file_that_is_trusted_may_run_code(saved, tmp_path):
    model_class, _, path = saved
    change(path, HOSTILE["an attribute of the model"][1](Payload(tmp_path / "touched")))
    model_class.load(path, trusted=True)
    assert (tmp_path / "touched").exists()


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_kernels_of_the_package_are_loaded_without_trust(series, tmp_path, kernel):
    options = {"d_model": 8, "n_epochs": 1, "random_state": 0, "pl_trainer_kwargs": QUIET}
    model = LAMModel(12, 6, attention=kernel, **options).fit(series)
    model.save(str(tmp_path / "model.pt"))
    assert LAMModel.load(str(tmp_path / "model.pt")).predict(6) == model.predict(6)
