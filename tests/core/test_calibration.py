"""Weight, inflation and weight of the mean: for every family, after training and not before."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch.testing import assert_close as close

from taylorformer_forecast.baselines.linear_path import LinearPathBaseline
from taylorformer_forecast.core.calibration import Calibration
from taylorformer_forecast.core.families import FAMILIES, affine, components, find_family, point_forecast
from taylorformer_forecast.models.taylorformer import Taylorformer

pytestmark = pytest.mark.usefixtures("float64")

CHANGED = {"weight": 0.4, "inflation": 1.7, "mean_weight": 0.6}


@pytest.fixture(params=FAMILIES)
def head(request):
    """Every family in turn."""
    return find_family(request.param)


def inputs(head, seed=0):
    """Unconstrained parameters of two columns, locations and scales."""
    g = torch.Generator().manual_seed(seed)
    raw = torch.randn(3, 4, 2, head.n_params, generator=g)
    return raw, torch.randn(3, 4, 2, generator=g), 0.5 + torch.rand(3, 4, 1, generator=g)


def same(got, expected):
    """Compare two distributions of one family by all their parameters."""
    got, expected = components(got), components(expected)
    assert got.tensors().keys() == expected.tensors().keys()
    for name, value in got.tensors().items():
        close(value, expected.tensors()[name])


def test_at_first_it_changes_nothing(head):
    raw, loc, scale = inputs(head)
    same(Calibration().eval()(head, raw, loc, scale), head(raw, loc, scale))


def test_in_training_it_is_neutral(head):
    raw, loc, scale = inputs(head)
    calibration = Calibration(**CHANGED).train()
    same(calibration(head, raw, loc, scale), head(raw, loc, scale))
    close(calibration.added(head, raw, scale), point_forecast(head(raw, loc, scale)) - loc)


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_the_weight_shrinks_all_unconstrained_parameters(head, weight):
    raw, loc, scale = inputs(head)
    same(Calibration(weight).eval()(head, raw, loc, scale), head(weight * raw, loc, scale))


def test_without_any_weight_the_baseline_alone_forecasts(head):
    raw, loc, scale = inputs(head)
    d = Calibration(weight=0.0).eval()(head, raw, loc, scale)
    close(point_forecast(d), loc)
    same(d, Calibration(weight=0.0).eval()(head, torch.zeros_like(raw), loc, scale))


@pytest.mark.parametrize("inflation", [0.8, 1.7])
@pytest.mark.parametrize("weight", [0.4, 1.0])
def test_inflation_changes_the_width_around_the_mean_and_not_the_mean(head, inflation, weight):
    raw, loc, scale = inputs(head)
    usual = Calibration(weight).eval()(head, raw, loc, scale)
    inflated = Calibration(weight, inflation).eval()(head, raw, loc, scale)
    mean = usual.mean
    close(inflated.mean, mean)
    close(inflated.variance.sqrt(), inflation * usual.variance.sqrt())
    same(inflated, affine(usual, (1 - inflation) * mean, torch.full_like(mean, inflation)))


def test_the_weight_of_the_mean_moves_the_distribution_and_keeps_its_shape(head):
    raw, loc, scale = inputs(head)
    usual = Calibration(0.4).eval()(head, raw, loc, scale)
    moved = Calibration(0.4, mean_weight=0.6).eval()(head, raw, loc, scale)
    close(moved.mean, torch.lerp(loc, usual.mean, 0.6))
    same(moved, affine(usual, moved.mean - usual.mean, torch.ones_like(loc)))


def test_all_three_together_inflate_around_the_mean_that_was_moved(head):
    raw, loc, scale = inputs(head)
    calibration = Calibration(**CHANGED).eval()
    usual, d = head(0.4 * raw, loc, scale), calibration(head, raw, loc, scale)
    close(d.mean, torch.lerp(loc, usual.mean, 0.6))
    close(d.variance.sqrt(), 1.7 * usual.variance.sqrt())
    close(calibration.added(head, raw, scale), d.mean - loc)


def test_scales_may_be_a_number_or_those_of_every_column(head):
    raw, loc, _ = inputs(head)
    calibration = Calibration(**CHANGED).eval()
    expected = calibration(head, raw, loc, torch.ones_like(loc))
    same(calibration(head, raw, loc, 1.0), expected)
    same(calibration(head, raw, loc), expected)
    close(calibration.added(head, raw, 1.0), expected.mean - loc)


def test_only_what_is_given_is_set():
    calibration = Calibration(**CHANGED)
    calibration.set(inflation=2.0)
    found = {name: value.item() for name, value in calibration.named_buffers()}
    assert found == pytest.approx({**CHANGED, "inflation": 2.0})


def by_state_dict(calibration):
    other = Calibration()
    other.load_state_dict(calibration.state_dict())
    return other


def without_values(calibration):
    with torch.device("meta"):
        other = Calibration()
    other.load_state_dict(calibration.state_dict(), assign=True)
    return other


@pytest.mark.parametrize(
    "copier",
    [by_state_dict, without_values, copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))],
    ids=["state dict", "built without values", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("numbers", [CHANGED, {}], ids=["changed", "neutral"])
def test_copies_and_saved_states_calibrate_alike(copier, numbers):
    head = find_family("mixture")
    raw, loc, scale = inputs(head)
    calibration = Calibration(**numbers).eval()
    copied = copier(calibration).eval()
    same(copied(head, raw, loc, scale), calibration(head, raw, loc, scale))
    assert {n: v.item() for n, v in copied.named_buffers()} == {
        n: v.item() for n, v in calibration.named_buffers()
    }


def test_a_copy_is_calibrated_on_its_own():
    calibration = Calibration(**CHANGED)
    copy.deepcopy(calibration).set(weight=1.0)
    assert calibration.weight.item() == pytest.approx(0.4)


def test_a_neutral_state_that_is_loaded_is_neutral_again():
    head = find_family("normal")
    raw, loc, scale = inputs(head)
    calibration = Calibration(**CHANGED).eval()
    calibration.load_state_dict(Calibration().state_dict())
    same(calibration(head, raw, loc, scale), head(raw, loc, scale))


def test_nothing_of_it_is_trained_by_gradients():
    assert list(Calibration().parameters()) == []


@pytest.mark.parametrize("family", ["mixture", "normal", "quantile"])
def test_a_part_of_what_a_network_learns_is_taken_of_the_mean_alone_where_there_are_modes(family):
    baseline = LinearPathBaseline(8, 4)
    net = Taylorformer(d_model=8, n_heads=2, n_layers=2, baseline=baseline, distribution=family, weight=0.5)
    modes = family == "mixture"
    assert net.calibration.weight == (1.0 if modes else 0.5)
    assert net.calibration.mean_weight == (0.5 if modes else 1.0)
