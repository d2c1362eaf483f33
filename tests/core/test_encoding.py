"""Positional encoding and phases."""

from __future__ import annotations

import math

import pytest
import torch

from taylorformer_forecast.core.encoding import TimeEncoding

pytestmark = pytest.mark.usefixtures("float64")


def test_a_block_of_sines_comes_before_a_block_of_cosines():
    t = torch.tensor([[[0.37], [-1.2]]])
    encoded = TimeEncoding(6)(t)
    for k in range(3):
        wavelength = 0.1 * 1000 ** (2 * k / 6)
        for i, time in enumerate((0.37, -1.2)):
            assert encoded[0, i, k].item() == pytest.approx(math.sin(time / wavelength), abs=1e-6)
            assert encoded[0, i, 3 + k].item() == pytest.approx(math.cos(time / wavelength), abs=1e-6)


@pytest.mark.parametrize(("time_min", "time_max"), [(0.1, 1.0), (0.1, 2.0), (0.02, 5.0)])
def test_wavelengths_grow_geometrically_from_the_shortest_time(time_min, time_max):
    wavelength = TimeEncoding(32, time_min, time_max).wavelength
    assert wavelength[0].item() == pytest.approx(time_min, rel=1e-6)
    ratio = (wavelength[1:] / wavelength[:-1]).tolist()
    assert ratio == pytest.approx([(100 * time_max / time_min) ** (2 / 32)] * 15, rel=1e-6)


def test_the_default_wavelengths_are_those_of_the_published_configuration():
    assert TimeEncoding(32).wavelength[-1].item() == pytest.approx(64.94, abs=0.005)


def test_coordinates_are_encoded_one_after_the_other():
    encode, t = TimeEncoding(8), torch.rand(2, 5, 2)
    apart = [encode(t[..., :1]), encode(t[..., 1:])]
    assert torch.equal(encode(t), torch.cat(apart, -1))


def test_both_precisions_use_the_same_wavelengths():
    double = TimeEncoding(16).wavelength
    torch.set_default_dtype(torch.float32)
    single = TimeEncoding(16).wavelength
    assert (double.dtype, single.dtype) == (torch.float64, torch.float32)
    assert torch.equal(single.double(), double)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="dim_encoding=7 must be even"):
        TimeEncoding(7)


def test_the_encoding_has_nothing_to_save():
    assert not TimeEncoding(8).state_dict()
