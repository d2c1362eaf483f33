"""Files of weights that are damaged, or ask for what no network has, are refused in one line."""

import json
import shutil

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from taylorformer_forecast.engine import pretrained, weights_file
from taylorformer_forecast.engine.pretrained import load_pretrained
from taylorformer_forecast.engine.statistics import correction
from taylorformer_forecast.engine.statistics.correction import load_correction

READERS = {"correction": (load_correction, correction), "pretrained": (load_pretrained, pretrained)}
EACH = pytest.mark.parametrize("name", READERS)


@pytest.fixture
def path(name, tmp_path):
    """A copy of the file of the package."""
    return shutil.copy(READERS[name][1].DEFAULT, tmp_path / "copy.safetensors")


def headers(name, path):
    """The header of a file, and the same without its checksum."""
    with safe_open(path, "pt") as file:
        header = json.loads(file.metadata()[name])
    return header, {key: value for key, value in header.items() if key != "checksum"}


def write(path, name, header, tensors=None):
    """Write a file whose checksum is right."""
    tensors = load_file(path) if tensors is None else tensors
    checked = {**header, weights_file.CHECKSUM: weights_file.checksum(header, tensors)}
    save_file(tensors, path, {name: json.dumps(checked)})


def refuse(name, path, reason=""):
    with pytest.raises(
        ValueError, match=rf"^pretrained=.*copy\.safetensors' holds no pretrained .*{reason}"
    ) as raised:
        READERS[name][0](path)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 1000


@EACH
def test_files_of_the_package_have_a_checksum_and_draw_no_random_numbers(name, path):
    assert len(headers(name, path)[0]["checksum"]) == 64
    before = torch.get_rng_state()
    READERS[name][0](path)
    assert torch.equal(torch.get_rng_state(), before)


@EACH
@pytest.mark.parametrize("place", [0.05, 0.3, 0.6, 0.9, 0.999])
@pytest.mark.parametrize("bit", [0x40, 0x04, 0x80])
def test_one_flipped_bit_is_noticed_wherever_it_is(name, path, place, bit):
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")  # of the numbers
    number = start + int(place * (len(content) - start)) // 2 * 2 + 1  # high byte: sign and exponent
    content[number] ^= bit
    path.write_bytes(content)
    refuse(name, path, "it is damaged: its checksum is another")


@EACH
@pytest.mark.parametrize("weight", [1e9, -1e9, torch.inf, torch.nan])
def test_numbers_out_of_range_are_refused_in_files_that_are_whole(name, path, weight):
    tensors = {key: v.float() if v.is_floating_point() else v for key, v in load_file(path).items()}
    next(v for v in tensors.values() if v.is_floating_point()).view(-1)[0] = weight
    write(path, name, headers(name, path)[1], tensors)
    refuse(name, path, "it is damaged: a number of")


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        weights_file.write_weights(tmp_path / "lost" / "net.safetensors", "net", {"x": torch.ones(2)}, {})


def test_numbers_that_half_precision_cannot_hold_are_not_written(tmp_path):
    path = tmp_path / "weights.safetensors"
    with pytest.raises(ValueError, match="scale has values that are not finite in half precision"):
        weights_file.write_weights(path, "net", {"scale": torch.tensor([1e5, 1.0])}, {})
    assert not path.exists()


@EACH
def test_a_file_without_a_checksum_is_refused(name, path):
    save_file(load_file(path), path, {name: json.dumps(headers(name, path)[1])})
    refuse(name, path, "it is damaged: its checksum is another")


@EACH
@pytest.mark.parametrize("part", [0, 7, 100, 0.5, 0.999])
def test_a_truncated_file_is_refused(name, path, part):
    content = path.read_bytes()
    path.write_bytes(content[: part if isinstance(part, int) else int(part * len(content))])
    refuse(name, path)


@EACH
def test_a_missing_file_of_the_package_says_so(name, monkeypatch, tmp_path):
    monkeypatch.setattr(READERS[name][1], "DEFAULT", tmp_path / "lost.safetensors")
    correction._load_default.cache_clear()
    with pytest.raises(
        FileNotFoundError, match=r"the package lacks its file lost\.safetensors; install it again"
    ):
        READERS[name][0]("default")
    correction._load_default.cache_clear()


@EACH
@pytest.mark.parametrize("source", ["", "x" * 5000, "a\0b", "/", "nowhere"])
def test_what_is_no_file_is_refused_in_a_short_line(name, source):
    with pytest.raises(FileNotFoundError, match="is neither 'default' nor a file") as raised:
        READERS[name][0](source)
    assert len(str(raised.value)) < 500


WRONG = {
    "huge": ("n_layers", 10**6),
    "negative": ("d_model", -8),
    "fraction": ("d_model", 8.0),
    "text": ("n_heads", "4"),
    "nested": ("d_model", [[[]]]),
    "truth": ("n_layers", True),
    "missing": ("d_model", None),
}


@EACH
@pytest.mark.parametrize("case", WRONG)
def test_settings_are_checked_before_anything_is_built(name, path, case):
    key, value = WRONG[case]
    header = headers(name, path)[1]
    header["sizes" if name == "correction" else "settings"][key] = value
    write(path, name, header)
    refuse(name, path, f"{key}=.*but it must be a whole number up to")


@EACH
@pytest.mark.parametrize("weight", [-1, 1.5, 1e300, "1", None, True, [1]])
def test_the_weight_of_the_network_is_a_fraction(name, path, weight):
    header = headers(name, path)[1]
    header["weight"] = weight
    write(path, name, header)
    refuse(name, path, "but it must be a number from 0 to 1")


@EACH
@pytest.mark.parametrize("header", ["[" * 90_000, " " * 10**6, "NaN", '"text"', "{}"], ids=range(5))
def test_a_header_of_another_kind_is_refused(name, path, header):
    save_file(load_file(path), path, {name: header})
    refuse(name, path)


@pytest.mark.parametrize(
    ("key", "value"), [("distribution", "cauchy"), ("distribution", []), ("n_derivative_neighbours", 99)]
)
def test_other_settings_of_a_network_are_checked_too(tmp_path, key, value):
    path = shutil.copy(pretrained.DEFAULT, tmp_path / "copy.safetensors")
    header = headers("pretrained", path)[1]
    header["settings"][key] = value
    write(path, "pretrained", header)
    refuse("pretrained", path, key)
