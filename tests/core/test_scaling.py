"""Location and scale of windows."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from taylorformer_forecast.core.scaling import Scale, scale_window
from taylorformer_forecast.core.window import Window

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("missing", ["none", "rows", "entries"])
def test_the_observed_context_gets_mean_zero_and_standard_deviation_one(make_window, missing):
    w = make_window(dim_y=2, missing=missing, missing_targets=missing)
    w = replace(w, y=5 + 3 * w.y)
    scaled, scale = scale_window(w, time_unit=1.0)
    for b in range(3):
        for d in range(2):
            seen = w.observed[b, :7, d]
            values = scaled.y[b, :7, d][seen]
            assert values.mean().item() == pytest.approx(0, abs=1e-12)
            assert values.std(unbiased=False).item() == pytest.approx(1, rel=1e-12)
            assert scale.loc[b, 0, d].item() == pytest.approx(w.y[b, :7, d][seen].mean().item())
    assert torch.equal(scaled.observed, w.observed)
    assert (scaled.y[~w.observed] == 0).all()


def test_targets_do_not_influence_the_scale(make_window):
    w = make_window()
    y = w.y.clone()
    y[:, w.n_context :] *= 1e6
    for got, expected in zip(
        vars(scale_window(replace(w, y=y), 1.0)[1]).values(),
        vars(scale_window(w, 1.0)[1]).values(),
        strict=True,
    ):
        assert torch.equal(got, expected)


@pytest.mark.parametrize("missing", ["none", "entries"])
def test_scaled_values_do_not_depend_on_the_units_of_the_data(make_window, missing):
    w = make_window(dim_y=2, missing=missing)
    factor, shift = torch.tensor([2.5, 0.01]), torch.tensor([-3.0, 40.0])
    other = Window(w.t, w.y * factor + shift, w.observed, n_context=w.n_context)
    first, second = scale_window(w, 1.0)[0], scale_window(other, 1.0)[0]
    torch.testing.assert_close(second.y, first.y, rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 12, 2), (3, 5, 2), (3, 4, 5, 2)])
def test_scaled_values_return_to_the_data_on_any_axes_between(make_window, shape):
    w = make_window(dim_y=2)
    _, scale = scale_window(w, 1.0)
    values = torch.randn(shape)
    back = scale.to_data(values)
    for b in range(3):
        torch.testing.assert_close(back[b], values[b] * scale.scale[b, 0] + scale.loc[b, 0])


def test_scaling_and_returning_changes_nothing(make_window):
    w = make_window(dim_y=2)
    scaled, scale = scale_window(w, 1.0)
    torch.testing.assert_close(scale.to_data(scaled.y), w.y)


@pytest.mark.parametrize("dim_t", [1, 2])
def test_times_are_measured_from_the_last_context_point_in_units_of_the_span(make_window, dim_t):
    w = make_window(dim_t=dim_t)
    scaled, _ = scale_window(w, time_unit=4.0)
    assert (scaled.times[:, 6] == 0).all()
    torch.testing.assert_close(scaled.times.diff(dim=1), w.times.diff(dim=1) / 4)
    moved, _ = scale_window(replace(w, t=100 + 7 * w.t), time_unit=28.0)
    torch.testing.assert_close(moved.t, scaled.t)


# The mean of equal numbers is not always equal to them: 0.1 and 0.7 are not sums of few powers of two.
@pytest.mark.parametrize("value", [0.0, 3.0, 0.1, -0.7, 1e6 + 0.3])
@pytest.mark.parametrize("n_context", [1, 3, 7])
def test_a_constant_context_is_centred_and_divided_by_one(value, n_context):
    y = torch.full((1, n_context + 2, 1), value)
    y[:, -1] += 2.0
    scaled, scale = scale_window(Window(torch.arange(n_context + 2.0)[None], y, n_context=n_context), 1.0)
    assert scale.scale.item() == pytest.approx(1.0)
    assert scaled.y[0, :, 0].tolist() == pytest.approx([0.0] * (n_context + 1) + [2.0], abs=1e-9)


def test_the_floor_bounds_the_scale_from_below(make_window):
    w = make_window(n_windows=2)
    w = replace(w, y=w.y * torch.tensor([1e-6, 1.0])[:, None, None])
    free, bounded = scale_window(w, 1.0)[1].scale, scale_window(w, 1.0, floor=0.1)[1].scale
    assert free[0].item() < 1e-5
    assert bounded[0].item() == pytest.approx(0.1)
    assert torch.equal(bounded[1], free[1])


def test_a_column_without_observed_context_is_left_as_it_is():
    y = torch.tensor([[[float("nan"), 1.0], [float("nan"), 3.0], [5.0, 6.0]]])
    scaled, scale = scale_window(Window(torch.arange(3.0)[None], y, n_context=2), 1.0)
    assert scale.loc.flatten().tolist() == [0.0, 2.0]
    assert scale.scale.flatten().tolist() == [1.0, 1.0]
    assert scaled.y[0, 2].tolist() == [5.0, 4.0]


def test_large_values_in_double_precision_lose_nothing_in_a_single_precision_network():
    y = (1e9 + torch.arange(6.0).double() ** 2)[None, :, None]
    t = 1e9 + torch.arange(6.0).double()[None]
    torch.set_default_dtype(torch.float32)
    scaled, scale = scale_window(Window(t, y, covariates=y, n_context=4), time_unit=1.0)
    assert {scaled.t.dtype, scaled.y.dtype, scaled.covariates.dtype} == {torch.float32}
    assert scaled.t[0].tolist() == [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]
    torch.testing.assert_close(scale.to_data(scaled.y.double()), y, rtol=0, atol=1e-5)


def test_a_scale_is_an_affine_map():
    scale = Scale(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[10.0, 100.0]]]))
    assert scale.to_data(torch.tensor([[[1.0, -1.0]]])).tolist() == [[[11.0, -98.0]]]
