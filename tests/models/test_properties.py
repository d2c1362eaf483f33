"""What holds for every network: saving, units, no side effects."""

from dataclasses import replace

import pytest
import torch

from taylorformer_forecast.core.rolling import forecast_paths
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.scaling import scale_window

pytestmark = pytest.mark.usefixtures("float64")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_saved_state_restores_the_predictions(any_case, numbers):
    w, net = any_case.window(), any_case.net()
    other = any_case.net(seed=1)
    before = numbers(other(w))
    other.load_state_dict(net.state_dict())
    assert torch.equal(numbers(other(w)), numbers(net(w)))
    assert not torch.equal(before, numbers(net(w)))


def test_evaluation_changes_neither_parameters_nor_statistics(any_case):
    w, net = any_case.window(), any_case.net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    net(w)
    sample_paths(net, w, 2, generator())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


# ---- units --------------------------------------------------------------------------------------------


def in_other_units(w):
    factor, shift = torch.linspace(0.02, 5, w.y.shape[2]), torch.linspace(-3, 40, w.y.shape[2])
    if w.y.shape[2] == 1:
        factor, shift = torch.tensor([2.5]), torch.tensor([-3.0])
    other = replace(w, y=w.y * factor + shift)
    return other, factor, shift


def test_forecasts_follow_the_units_of_the_data(any_case, missing):
    w, net = any_case.window(missing=missing), any_case.net()
    other, factor, shift = in_other_units(w)
    means = []
    for window in (w, other):
        scaled, scale = scale_window(window, time_unit=1.0)
        means.append(scale.to_data(net(scaled).mean))
    torch.testing.assert_close(means[1], means[0] * factor + shift, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("max_targets", [None, 2])
def test_sample_paths_follow_the_units_of_the_data(any_case, max_targets):
    w, net = any_case.window(), any_case.net()
    other, factor, shift = in_other_units(w)
    first, second = (
        forecast_paths(net, v, 4, time_unit=1.0, max_targets=max_targets, generator=generator()).paths
        for v in (w, other)
    )
    torch.testing.assert_close(second, first * factor + shift, rtol=1e-7, atol=1e-7)
