"""Forecasts beyond the horizon of a network: they stay near what was seen, however its errors grow."""

import pytest
import torch
from torch.distributions import Normal, StudentT

from taylorformer_forecast.core import rolling
from taylorformer_forecast.core.families import Components, find_family
from taylorformer_forecast.core.protocol import OneShotNet
from taylorformer_forecast.core.rolling import RollingBounds, forecast_paths, mean_range
from taylorformer_forecast.core.window import Window

CONTEXT, STEPS, PATHS = 12, 60, 200


class Exploding(OneShotNet):
    """Every step is a multiple of the one before, with errors that grow alike."""

    def __init__(self, factor, kind="normal"):
        super().__init__(find_family(kind))
        self.factor, self.kind = factor, kind

    def forward(self, window):
        step = torch.arange(1, window.n_targets + 1)[:, None]
        loc = window.y[:, window.n_context - 1 : window.n_context] * self.factor**step
        scale = (0.2 * abs(self.factor) ** step).expand_as(loc)
        if self.kind == "studentt":
            return StudentT(torch.full_like(loc, 4.0), loc, scale, validate_args=False)
        return Normal(loc, scale)


def rolled(net, y, max_targets=3, steps=STEPS):
    n = y.shape[1]
    t = torch.arange(float(n + steps)).expand(len(y), -1)
    ahead = torch.zeros(len(y), steps, y.shape[2])
    window = Window(t, torch.cat([y, ahead], 1).double(), n_context=n)
    generator = torch.Generator().manual_seed(0)
    return forecast_paths(net, window, PATHS, float(n), 0.01, max_targets=max_targets, generator=generator)


def series(seed=0):
    return torch.randn(3, CONTEXT, 2, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("factor", [1.0, 1.5, 3.0, -2.0])
@pytest.mark.parametrize("kind", ["normal", "studentt"])
def test_means_and_widths_stay_near_the_context_however_errors_grow(factor, kind):
    y = series()
    found = rolled(Exploding(factor, kind), y)
    width = (y.amax(1) - y.amin(1))[:, None]
    mean = found.conditionals.loc.mean((1, 4))
    lead = 3 * width  # of the line through the context, at most
    low, high = y.amin(1)[:, None] - width - lead, y.amax(1)[:, None] + width + lead
    assert ((mean >= low) & (mean <= high))[:, 3:].all()
    ends = found.paths[:, :, 3:].quantile(torch.tensor([0.05, 0.95], dtype=torch.float64), dim=1)
    assert (ends[1] - ends[0] < 2 * (high - low)).all()
    assert ((mean[:, 3:] >= ends[0]) & (mean[:, 3:] <= ends[1])).all()


class HeavyTails(OneShotNet):
    """The median of the context, with tails so heavy that draws have no mean, in units of its deviation."""

    def __init__(self):
        super().__init__(find_family("studentt"))

    def forward(self, window):
        past = window.y[:, : window.n_context]
        loc = past.median(1, keepdim=True).values.expand(-1, window.n_targets, -1)
        scale = 0.1 * past.std(1, keepdim=True).expand_as(loc)
        return StudentT(torch.full_like(loc, 0.7), loc, scale, validate_args=False)


def test_a_draw_of_any_size_does_not_narrow_the_other_paths():
    y = series()
    found = rolled(HeavyTails(), y, steps=24)
    low, high = found.paths.quantile(torch.tensor([0.1, 0.9], dtype=torch.float64), dim=1).unflatten(
        2, (8, 3)
    )
    width = (high - low).mean(2)  # of every three steps
    assert (width[:, 1:] > 0.8 * width[:, :1]).all()
    assert (found.paths.median(1).values - y.median(1).values[:, None]).abs().max() < 1.0


def test_a_line_may_go_on_as_far_as_it_leads():
    y = torch.arange(float(CONTEXT)).expand(3, -1)[..., None]

    class Line(Exploding):
        def forward(self, window):
            n = window.n_context
            step = window.y[:, n - 1 : n] - window.y[:, n - 2 : n - 1]
            ahead = torch.arange(1, window.n_targets + 1)[:, None]
            loc = window.y[:, n - 1 : n] + step * ahead
            return Normal(loc, torch.full_like(loc, 1e-3))

    last = rolled(Line(1.0), y, steps=2 * CONTEXT).conditionals.loc.mean((1, 4))[:, -1, 0]
    torch.testing.assert_close(last, torch.full_like(last, 3 * CONTEXT - 1.0), rtol=0.1, atol=0.0)


def test_forecasts_within_the_bounds_are_not_changed_at_all(monkeypatch):
    class Still(Exploding):
        def forward(self, window):
            loc = torch.zeros_like(window.targets[0])
            return Normal(loc, 0.5 + loc)

    bounded = rolled(Still(1.0), series()).paths
    monkeypatch.setattr(
        RollingBounds,
        "correction",
        lambda self, parts, start: (torch.zeros(1, 1, 1, 1), torch.ones(1, 1, 1, 1)),
    )
    assert torch.equal(bounded, rolled(Still(1.0), series()).paths)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_context_without_values_bounds_nothing(dtype):
    t, y = torch.arange(4.0, dtype=dtype)[None], torch.full((1, 4, 1), torch.nan, dtype=dtype)
    assert all(bound.isnan().all() for bound in mean_range(t, y, t + 4))
    y = torch.full((1, CONTEXT, 1), torch.nan)
    assert rolled(Exploding(1.0), y, steps=6).paths.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constants_without_width_are_bounded_in_any_precision(dtype):
    t, y = torch.arange(4.0, dtype=dtype)[None], torch.full((1, 4, 1), 2.0, dtype=dtype)
    low, high = mean_range(t, y, torch.tensor([[4.0, 5.0]], dtype=dtype))
    assert low.tolist() == high.tolist() == [[[2.0], [2.0]]]
    point = Components(
        find_family("mse"), *torch.tensor([3.0, 0.0], dtype=dtype).expand(1, 1, 2, 1, 1, 2).unbind(-1)
    )
    shift, factor = RollingBounds.of(low, high, point).correction(point, 0)
    assert (factor * point.loc[..., 0] + shift).tolist() == [[[[2.0], [2.0]]]]


def test_twice_the_steps_are_twice_the_work(monkeypatch):
    """Windows of the chunks alone are repeated for the paths, not all that is to come."""
    made, check = [], Window.__post_init__
    monkeypatch.setattr(Window, "__post_init__", lambda self: made.append(self.y.numel()) or check(self))
    work = []
    for steps in (120, 240):
        made.clear()
        rolled(Exploding(1.0), series(), steps=steps)
        work.append(sum(made))
    assert work[1] < 2.1 * work[0]


def test_many_windows_are_rolled_in_groups(monkeypatch):
    """As if they had been asked for one group after another."""
    net, y = Exploding(1.0), torch.randn(5, CONTEXT, 1, generator=torch.Generator().manual_seed(1))
    window = Window(
        torch.arange(CONTEXT + 6.0).expand(5, -1),
        torch.cat([y, torch.zeros(5, 6, 1)], 1).double(),
        covariates=torch.zeros(5, CONTEXT + 6, 3),
        n_context=CONTEXT,
    )
    floor, low = torch.rand(5, 1, 1).double(), torch.arange(5.0).double().view(-1, 1, 1).expand(-1, 6, 1)

    def forecast(part, generator):
        limits = (-low[part], low[part])
        return forecast_paths(
            net,
            window.rows(part),
            10,
            float(CONTEXT),
            floor[part],
            max_targets=2,
            generator=generator,
            limits=limits,
        )

    generator = torch.Generator().manual_seed(0)
    expected = [forecast(slice(k, k + 2), generator) for k in (0, 2, 4)]
    monkeypatch.setattr(rolling, "ROLLED_AT_ONCE", 2 * 10 * (CONTEXT + 2) * 5)
    found = forecast(slice(None), torch.Generator().manual_seed(0))
    assert torch.equal(found.paths, torch.cat([one.paths for one in expected]))
    assert torch.equal(found.conditionals.loc, torch.cat([one.conditionals.loc for one in expected]))
