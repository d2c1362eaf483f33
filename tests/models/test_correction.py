"""The network that corrects statistical forecasts: what it sees, and what it may do."""

from dataclasses import replace

import pytest
import torch
from combined import forecast

from taylorformer_forecast.baselines.combination import fit_combination
from taylorformer_forecast.defaults import CORRECTION_SHIFT, CORRECTION_WIDTH
from taylorformer_forecast.engine.statistics.correction import load_correction
from taylorformer_forecast.models.correction import MOST_CORRECTED_STEPS, CorrectionNet, correction_features

H = 6


@pytest.fixture(scope="module")
def y():
    t = torch.arange(40, dtype=torch.float64)
    noise = torch.randn(3, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = 20 + torch.stack([0.3 * t, 4 * torch.sin(t * torch.pi / 6), 0 * t]) + noise
    y[2, 5:9] = torch.nan
    return y


@pytest.fixture(scope="module")
def net():
    """Return a network that changes something."""
    torch.manual_seed(0)
    net = CorrectionNet(d_model=16, n_heads=2, n_layers=2).eval()
    torch.nn.init.normal_(net.to_params.weight, std=0.3)
    return net


def parts(found):
    return torch.stack([found.shift, found.below, found.above])


def test_a_network_that_was_not_trained_changes_nothing(y):
    plain = CorrectionNet(d_model=8, n_heads=2, n_layers=1).eval()
    found, expected = (forecast(y, H, 12, correct) for correct in (plain.correct, None))
    assert torch.equal(found.quantiles([0.1, 0.5, 0.9]), expected.quantiles([0.1, 0.5, 0.9]))


def test_location_and_width_of_the_future_are_corrected_and_the_past_is_not(y, net):
    found, plain = (forecast(y, H, 12, correct) for correct in (net.correct, None))
    added = net.correct(fit_combination(y, H, (12,)))
    assert torch.equal(found.loc, plain.loc)
    assert torch.equal(found.scale, plain.scale)
    torch.testing.assert_close(found.shift, plain.shift + added.shift, rtol=1e-12, atol=1e-12)
    low, mid, high = found.quantiles([0.1, 0.5, 0.9]).unbind(-1)
    low_before, mid_before, high_before = plain.quantiles([0.1, 0.5, 0.9]).unbind(-1)
    free = (low > found.low) & (high < found.high)
    assert free.any()
    torch.testing.assert_close(((mid - low) / (mid_before - low_before))[free], added.below.double()[free])
    torch.testing.assert_close(((high - mid) / (high_before - mid_before))[free], added.above.double()[free])


def test_a_product_that_ends_is_not_forecast_to_come_back():
    month = torch.arange(-59, 1, dtype=torch.float64)
    sales = (200 / (1 + ((month + 12) / 4).exp())).round()[None]
    found, plain = (forecast(sales, 12, 12, correct) for correct in (load_correction().correct, None))
    median, before = (one.quantiles([0.5])[0, :, 0] for one in (found, plain))
    assert (median <= 1.15 * before + 0.1).all()
    assert median[-1] <= sales[0, -1]


def test_a_high_level_hardly_changes_what_the_trained_network_corrects():
    month = torch.arange(60, dtype=torch.float64)
    noise = torch.randn(20, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = 30 + 4 * (month * torch.pi / 6).sin() + noise
    found, high = (
        forecast(y + level, 12, 12, load_correction().correct).quantiles([0.1, 0.9]).diff(dim=2)
        for level in (0.0, 3e5)
    )
    assert float(high.mean() / found.mean()) == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize("change", ["scale", "padding", "company"])
def test_a_correction_does_not_depend_on_units_or_company(y, net, change):
    expected = parts(net.correct(fit_combination(y, H, (12,))))
    if change == "scale":
        found = parts(net.correct(fit_combination(1e6 * y, H, (12,))))
    elif change == "padding":
        front = torch.full((3, 7), torch.nan, dtype=torch.float64)
        found = parts(net.correct(fit_combination(torch.cat([front, y], 1), H, (12,))))
    else:
        found = torch.cat([parts(net.correct(fit_combination(one[None], H, (12,)))) for one in y], 1)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_what_follows_an_origin_is_not_seen(y):
    origins = torch.tensor([[20, 30]] * 3)
    one = correction_features(fit_combination(y, H, (12,)), origins)
    changed = y.clone()
    changed[:, 31:] += 50.0
    other = correction_features(fit_combination(changed, H, (12,)), origins)
    # Both the unit and the shape of errors are those of the whole series: all else is relative to them.
    same = slice(0, one.steps.shape[-1] - 5)
    torch.testing.assert_close(one.values, other.values, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(one.steps[..., same], other.steps[..., same], rtol=1e-4, atol=1e-4)


def test_corrections_are_bounded(y, net):
    wild = CorrectionNet(d_model=16, n_heads=2, n_layers=2).eval()
    torch.nn.init.normal_(wild.to_params.weight, std=1e3)
    fit = fit_combination(y, H, (12,))
    features = correction_features(fit, torch.full((3, 1), 39))
    found = wild(features)
    most = torch.tensor(CORRECTION_WIDTH).exp() + 1e-4
    for width in (found.below, found.above):
        assert (width <= most).all()
        assert (width >= 1 / most).all()
    assert (found.shift.abs() <= CORRECTION_SHIFT + features.families.abs().sum(-1) + 1e-4).all()


def test_intermittent_demand_is_left_as_it_is(net):
    demand = torch.zeros(1, 40, dtype=torch.float64)
    demand[0, ::5] = torch.tensor([1.0, 3.0, 2.0, 1.0, 2.0, 4.0, 1.0, 2.0], dtype=torch.float64)
    found, plain = (forecast(demand, H, 12, correct) for correct in (net.correct, None))
    assert torch.equal(found.quantiles([0.5, 0.9]), plain.quantiles([0.5, 0.9]))
    assert torch.equal(found.loc, plain.loc)


@pytest.mark.parametrize(
    "values",
    [[1.0, 2.0], [5.0] * 12, [0.0] * 11 + [3.0], [1e12, -1e12] * 6, [1e-9 * k for k in range(12)]],
    ids=["two points", "constant", "one value", "huge", "tiny"],
)
def test_awkward_series_have_finite_corrections(net, values):
    found = forecast(torch.tensor([values], dtype=torch.float64), H, 4, net.correct)
    assert found.quantiles([0.01, 0.5, 0.99]).isfinite().all()


def test_every_parameter_is_trained(y):
    torch.manual_seed(0)
    net = CorrectionNet(d_model=8, n_heads=2, n_layers=1)
    torch.nn.init.normal_(net.to_params.weight, std=0.3)
    found = net(correction_features(fit_combination(y, H, (12,)), torch.full((3, 1), 39)))
    (found.shift.square() + found.below * found.above).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())


def test_steps_far_ahead_are_corrected_as_the_last_that_is_looked_at(y, net):
    found = parts(net.correct(fit_combination(y[:1], MOST_CORRECTED_STEPS + 500, (12,))))
    assert (found[..., MOST_CORRECTED_STEPS:] == found[..., MOST_CORRECTED_STEPS - 1 :][..., :1]).all()
    assert (found.diff(dim=-1)[..., : MOST_CORRECTED_STEPS - 1] != 0).any()


def test_series_that_may_be_negative_are_corrected_as_their_mirror_images(y, net):
    """The network of the package pulled falling series up by half a deviation, and rising ones not down."""
    y = y - y.nanmean(1, keepdim=True) + torch.arange(y.shape[1]) / 10
    y[:, 0], y[:, 1] = 1.0, -1.0  # no origin takes the values for positive
    found, mirror = (net.correct(fit_combination(sign * y, H, (12,))) for sign in (1, -1))
    assert (found.shift.abs() > 1e-3).any()
    torch.testing.assert_close(found.shift, -mirror.shift, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.below, mirror.above, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.above, mirror.below, rtol=1e-4, atol=1e-5)


def test_a_line_of_less_than_two_cycles_is_corrected_as_without_a_season(net):
    """Part of it was taken for a season: losses of daily growth from a week on were half as large again."""
    t = torch.arange(10, dtype=torch.float64)
    noise = torch.randn(10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.stack([10 + 2 * t + noise, 10 + 5 * noise])
    fit = fit_combination(y, H, (7,))
    with_season, without = net.correct(fit), net.correct(replace(fit, season=1))
    assert torch.equal(with_season.shift[0], without.shift[0])
    assert not torch.equal(with_season.shift[1], without.shift[1])
