"""The file of the network that corrects statistical forecasts."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from taylorformer_forecast.engine.pretrained import DEFAULT as DIRECT
from taylorformer_forecast.engine.statistics.correction import (
    DEFAULT,
    holds_correction,
    load_correction,
    save_correction,
)
from taylorformer_forecast.engine.weights_file import CHECKSUM, checksum
from taylorformer_forecast.models.correction import CorrectionNet

SIZES = {"d_model": 8, "n_heads": 2, "n_layers": 1}


@pytest.fixture
def path(tmp_path):
    torch.manual_seed(0)
    save_correction(CorrectionNet(**SIZES), tmp_path / "own.safetensors", 0.5, made_by="a test")
    return tmp_path / "own.safetensors"


def test_what_is_saved_is_loaded_in_single_precision(path):
    torch.manual_seed(0)
    net, found = CorrectionNet(**SIZES), load_correction(path)
    assert found.weight == 0.5
    assert not found.training
    for name, value in found.state_dict().items():
        assert torch.equal(value, net.state_dict()[name].half().float())


def test_the_package_carries_a_small_file_that_changes_forecasts():
    found = load_correction()
    assert DEFAULT.stat().st_size < 4 * 2**20
    assert found is load_correction("default")
    assert found.to_params.weight.abs().max() > 0


def test_files_are_told_apart_by_their_header(path, tmp_path):
    assert holds_correction(path)
    assert holds_correction(str(DEFAULT))
    (tmp_path / "text.safetensors").write_text("no tensors")
    for other in ("default", "nowhere", DIRECT, tmp_path / "text.safetensors"):
        assert not holds_correction(other)


@pytest.mark.parametrize("damage", ["missing", "other", "not finite", "sizes", "absurd", "text", "weights"])
def test_a_file_that_holds_no_such_network_is_refused_in_one_line(path, damage):
    tensors = load_file(path)
    header = {"sizes": dict(SIZES), "weight": 0.5}
    if damage == "not finite":
        tensors["to_params.bias"][0] = torch.nan
    elif damage == "sizes":
        header["sizes"]["d_model"] = "wide"
    elif damage == "absurd":
        header["sizes"]["n_layers"] = 10**6
    elif damage == "weights":
        del tensors["to_params.bias"]
    checked = {**header, CHECKSUM: checksum(header, tensors)}
    save_file(tensors, path, {"correction": json.dumps(checked)})
    if damage == "text":
        path.write_text("no tensors")
    source = {"missing": path.parent / "nowhere", "other": DIRECT}.get(damage, path)
    error = FileNotFoundError if damage == "missing" else ValueError
    with pytest.raises(error, match=r"pretrained=.*(nowhere|own|default)") as raised:
        load_correction(source)
    assert "\n" not in str(raised.value)
