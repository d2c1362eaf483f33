"""How wide forecasts are made after training."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from taylorformer_forecast.baselines.linear import LinearForecast
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.calibration import MOST, fitting_stretch, widen
from taylorformer_forecast.engine.windows import Batches, Series, WindowMaker
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.sktime import TaylorformerForecaster

L, H = 12, 6


def started(factor=1.0, distribution="normal"):
    """A network around a fitted linear forecast whose scale is off by a factor, and windows of the fit."""
    t = np.arange(500.0)
    y = np.sin(2 * np.pi * t / 6) + 0.3 * np.random.default_rng(0).normal(size=500)
    maker = WindowMaker([Series(t, y[:, None])], L, H, time_unit=float(L), normalise=False)
    torch.manual_seed(0)
    net = Taylorformer(
        d_model=8, n_heads=2, n_layers=2, distribution=distribution, linear=LinearForecast(L, H, trust=1.0)
    )
    window, *about = Batches(maker, maker.starts(L, keep=0.95), 32).sample()
    net.start(window, *about)
    net.linear.forecast.log_scale += np.log(factor)
    return net.eval(), window


def coverage(net, window):
    """Share of the targets inside the central 80 % of paths."""
    paths = sample_paths(net, window, 99, torch.Generator().manual_seed(1)).paths.sort(1).values
    y, observed = window.targets
    return float(((y >= paths[:, 9]) & (y <= paths[:, -10]))[observed].float().mean())


def test_the_stretch_that_fits_is_what_brings_the_coverage_to_80_percent():
    rng = np.random.default_rng(0)
    y = torch.as_tensor(rng.normal(size=(400, 5, 1)))
    y[0, 0] = torch.nan
    w = Window(torch.arange(5.0).expand(400, -1), y, n_context=0)
    paths = 0.5 * torch.special.ndtri(torch.arange(1.0, 20.0) / 20).view(1, 19, 1, 1).expand(400, -1, 5, 1)
    found = fitting_stretch(paths, w)
    edge = -found * paths[:, 1]
    assert float((w.y.abs() <= edge)[w.observed].double().mean()) == pytest.approx(0.8, abs=0.001)


@pytest.mark.parametrize("factor", [0.5, 0.7])
def test_forecasts_that_are_too_narrow_are_widened_half_way(factor):
    net, window = started(factor)
    before = coverage(net, window)
    widen(net, window)
    assert float(net.linear.forecast.stretch) == pytest.approx(factor**-0.5, rel=0.1)
    assert before + 0.05 < coverage(net, window) < 0.8


@pytest.mark.parametrize("factor", [1.3, 3.0])
def test_forecasts_that_are_too_wide_are_left_alone(factor):
    net, window = started(factor)
    widen(net, window)
    assert net.linear.forecast.stretch == 1.0


def test_widening_has_a_bound_and_starts_anew_every_time():
    net, window = started(0.01)
    for _ in range(2):
        widen(net, window)
        assert float(net.linear.forecast.stretch) == pytest.approx(MOST)


def test_training_windows_and_the_global_generator_are_left_alone():
    net, window = started(0.5)
    values, state = window.y.clone(), torch.get_rng_state()
    widen(net, window)
    assert torch.equal(window.y, values)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("kind", ["point", "no linear forecast", "lam", "nothing observed"])
def test_what_has_no_width_to_settle_stays_as_it_is(kind):
    net, window = started(0.5, "mse" if kind == "point" else "normal")
    if kind == "no linear forecast":
        net = Taylorformer(d_model=8, n_heads=2, n_layers=2).eval()
    elif kind == "lam":
        net = LAMTransformer(L, H, d_model=8, n_heads=2).eval()
    elif kind == "nothing observed":
        window = Window(window.t, torch.full_like(window.y, torch.nan), n_context=L)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    widen(net, window)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_a_forecaster_settles_the_width_after_training_and_not_without():
    y = pd.Series(np.random.default_rng(0).normal(size=120).cumsum())
    for steps in (0, 3):
        forecaster = TaylorformerForecaster(
            context_length=12, d_model=4, n_heads=1, max_steps=steps, update_steps=1, random_state=0
        )
        forecast = forecaster.fit(y, fh=range(1, 7)).network_.linear.forecast
        with torch.no_grad():
            forecast.log_scale -= 1.0
        narrow = float(forecast.stretch)
        if steps == 0:
            assert narrow == 1.0
        forecaster.update(pd.Series([0.0], [len(y)]))
        assert float(forecaster.network_.linear.forecast.stretch) > narrow
