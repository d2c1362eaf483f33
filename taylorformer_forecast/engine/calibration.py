"""Set the calibration of a network: from held-out windows, hidden points, or its own paths."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.core.families import affine
from taylorformer_forecast.core.families.quantile import pinball_loss
from taylorformer_forecast.core.protocol import ForecastNet, OneShotNet, training_loss
from taylorformer_forecast.core.sampling import draw_paths, sample_paths
from taylorformer_forecast.core.window import Window, evenly, holds_everywhere
from taylorformer_forecast.defaults import (
    DECILES,
    GAUSSIAN_INFLATIONS,
    GAUSSIAN_WEIGHTS,
    HOLDOUT_START,
    INFLATION_PRIOR_COUNT,
    MIN_HELD_OUT_WINDOWS,
    N_CALIBRATION_PATHS,
    N_CALIBRATION_WINDOWS,
    N_HELD_OUT_PATHS,
    NEARLY_LEAST_LOSS,
    NETWORK_WEIGHTS,
    PRETRAINED_INFLATIONS,
    TRAINED_WEIGHTS,
)
from taylorformer_forecast.engine.windows import Batches, WindowSource


def fitting_inflation(paths: Float[Tensor, "B S T D"], window: Window) -> float:
    """Inflation around the medians with which 80 % intervals cover 80 % of the targets.

    Parameters
    ----------
    paths : Tensor of shape (B, S, T, D)
        Draws. Of 9, 19, 29 and so on, two hold the central 80 % between them.
    window : Window
        The windows. One target at least was observed.

    Returns
    -------
    float
        Above 1 where intervals cover too little.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.engine.calibration import fitting_inflation
    >>> y = torch.arange(-5.0, 6.0)[None, :, None]
    >>> w = Window(torch.arange(11.0)[None], y, n_context=0)
    >>> fitting_inflation(torch.linspace(-2.0, 2.0, 9).view(1, 9, 1, 1).expand(-1, -1, 11, 1), w)
    2.0
    """
    n_paths = paths.shape[1]
    edge = (n_paths + 1) // 10 - 1
    paths = paths.sort(1).values
    low, middle, high = paths[:, edge], paths[:, n_paths // 2], paths[:, -1 - edge]
    y, observed = window.targets
    tiny = torch.finfo(y.dtype).tiny  # points have no width
    up, down = (high - middle).clamp_min(tiny), (middle - low).clamp_min(tiny)
    beyond = torch.where(y > middle, (y - middle) / up, (middle - y) / down)
    known = beyond[observed]
    return known.to(torch.promote_types(known.dtype, torch.float32)).quantile(0.8).item()  # not of 16 bits


@torch.no_grad()
def inflate_by_paths(net: ForecastNet, window: Window) -> None:
    """Inflate the forecasts of a trained network if its paths cover too few targets of its training.

    This concerns networks that draw paths step by step around a baseline from the context.

    A network that sees true earlier values learns the error of one step; along a path of its own draws errors
    accumulate to more, or to less. Windows of the training can show that intervals are too narrow, but not
    that they are wide enough: forecasts are inflated, half-way (in logarithms) to what would fit, and never
    narrowed.

    Parameters
    ----------
    net : ForecastNet
        In evaluation mode. Networks that predict all targets at once, those around another baseline or none,
        and point forecasts stay as they are.
    window : Window
        Scaled training windows, one after another as they were cut.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.linear_path import LinearPathBaseline
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.engine.calibration import inflate_by_paths
    >>> from taylorformer_forecast.models.taylorformer import Taylorformer
    >>> net = Taylorformer(d_model=8, n_heads=2, n_layers=2, baseline=LinearPathBaseline(8, 4)).eval()
    >>> w = Window(torch.arange(-7.0, 5.0).expand(30, -1) / 8, 2 * torch.randn(30, 12, 1), n_context=8)
    >>> inflate_by_paths(net, w)
    >>> bool(net.calibration.inflation > 1)
    True
    """
    if not net.inflates or net.head.is_point:  # points differ by rounding alone
        return
    net.calibration.set(inflation=1.0)
    window = window.rows(evenly(len(window.y), N_CALIBRATION_WINDOWS).to(window.y.device))
    if window.targets[1].any():
        _inflate(net, _paths(net, window), window)


def _paths(net: ForecastNet, window: Window) -> Float[Tensor, "B S T D"]:
    """Paths of windows, the same in every call."""
    generator = torch.Generator(window.y.device).manual_seed(0)
    return sample_paths(net, window, N_CALIBRATION_PATHS, generator).paths


def _inflate(net: ForecastNet, paths: Float[Tensor, "B S T D"], window: Window) -> None:
    """Set the inflation that paths without any call for."""
    if not holds_everywhere(paths[:, 0] == paths[:, -1], wait=True):
        net.calibration.set(inflation=math.sqrt(max(fitting_inflation(paths, window), 1.0)))


@torch.no_grad()
def calibrate_by_paths(net: ForecastNet, window: Window) -> None:
    """Choose the weight of a trained network, and the inflation of its paths, on windows that are new to it.

    This concerns the networks of :func:`inflate_by_paths`, and so does the inflation. The weight is the
    largest part of the usual one whose paths have nearly the least pinball loss.

    Parameters
    ----------
    net : ForecastNet
        As there.
    window : Window
        Scaled windows that training has not seen.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.linear_path import LinearPathBaseline
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.engine.calibration import calibrate_by_paths
    >>> from taylorformer_forecast.models.taylorformer import Taylorformer
    >>> net = Taylorformer(d_model=8, n_heads=2, n_layers=2, baseline=LinearPathBaseline(8, 4)).eval()
    >>> w = Window(torch.arange(-7.0, 5.0).expand(30, -1) / 8, torch.randn(30, 12, 1), n_context=8)
    >>> calibrate_by_paths(net, w)  # it adds nothing yet, which does no harm
    >>> net.calibration.weight.item()
    1.0
    """
    window = window.rows(evenly(len(window.y), N_CALIBRATION_WINDOWS).to(window.y.device))
    if not net.inflates or not window.targets[1].any():
        return
    calibration = net.calibration
    calibration.set(inflation=1.0)
    found = []
    for part in TRAINED_WEIGHTS:
        calibration.set_weight(part * net.usual_weight, net.head)
        paths = _paths(net, window)
        found.append((float(pinball(_deciles(paths), window).sum()), part * net.usual_weight, paths))
    enough = NEARLY_LEAST_LOSS * min(loss for loss, *_ in found)
    _, weight, paths = next(one for one in reversed(found) if one[0] <= enough)
    calibration.set_weight(weight, net.head)
    if not net.head.is_point:
        _inflate(net, paths, window)


@torch.no_grad()
def calibrate_pretrained(
    net: OneShotNet, source: WindowSource, min_context: int, usual: float, keep: float = 1.0
) -> None:
    """Choose the weight of a pretrained network, and the inflation of its forecasts.

    The baseline is fitted to the first three quarters of every series. On windows of the rest, which neither
    it nor the network has seen, the weight minimises the pinball loss. The inflation brings the coverage of
    the central 80 % half-way (in logarithms) to what it should be: windows overlap, and what lies ahead may
    differ from what was.

    Parameters
    ----------
    net : OneShotNet
        The network with pretrained weights, its baseline not fitted yet. Its calibration is set.
    source : WindowSource
        Cuts windows from the series.
    min_context : int
        Rows that precede the first target of a window, at least.
    usual : float
        Weight for series that are too short to choose it.
    keep : float, default=1.0
        Fraction of every series to use.
    """
    held_out = _held_out(net, source, min_context, keep)
    if held_out is None:
        net.calibration.set_weight(usual, net.head)
        net.calibration.set(inflation=1.0)
        return
    fitted, window = held_out
    raw, loc, scale = fitted.parts(window)

    def forecast(weight: float) -> Distribution:
        fitted.calibration.set_weight(weight, fitted.head)
        return fitted.calibration(fitted.head, raw, loc, scale)

    found = [deciles(forecast(weight), N_HELD_OUT_PATHS + 1) for weight in NETWORK_WEIGHTS]
    losses = torch.stack([pinball(levels, window).sum((1, 2)) for levels in found]).sum(1)
    weight = NETWORK_WEIGHTS[int(losses.argmin())]
    paths = draw_paths(forecast(weight), N_HELD_OUT_PATHS, torch.Generator().manual_seed(0)).paths
    inflation = np.sqrt(fitting_inflation(paths, window))
    net.calibration.set_weight(weight, net.head)
    net.calibration.set(inflation=float(np.clip(inflation, *PRETRAINED_INFLATIONS)))


def _held_out(
    net: OneShotNet, source: WindowSource, min_context: int, keep: float
) -> tuple[OneShotNet, Window] | None:
    """A network whose baseline has not seen the last part of every series, and windows of it, if enough."""
    split = HOLDOUT_START * keep
    early = source.starts(min_context, keep=split)
    late = source.starts(min_context, skip=split, keep=keep)
    if min(len(early), len(late)) < MIN_HELD_OUT_WINDOWS:
        return None
    window = source.windows(late[evenly(len(late), N_CALIBRATION_WINDOWS)], keep)[0]
    if not window.targets[1].any():
        return None
    fitted = copy.deepcopy(net).eval()
    fitted.calibration.set(weight=1.0, inflation=1.0)
    fitted.fit_closed_form(*Batches(source, early, len(early), last=split).sample())
    return fitted, window


@torch.no_grad()
def calibrate_gaussian_process(
    checks: Sequence[tuple[ForecastNet, Sequence[Window]]],
) -> tuple[float, float, float]:
    """Choose weights and inflation of networks around a Gaussian process.

    The numbers minimise the loss of targets that training has not seen: a network overfits the others. With
    few targets the inflation is shrunk towards 1, with the weight of ten targets.

    Parameters
    ----------
    checks : sequence of (ForecastNet, sequence of Window)
        Networks in evaluation mode, and scaled batches for each, with targets in random order that were
        hidden when it was trained. Their calibration is lost.

    Returns
    -------
    weight, mean_weight, inflation : float
        For a network that is trained like these, see
        :class:`~taylorformer_forecast.core.calibration.Calibration`.
    """
    choices = product(GAUSSIAN_WEIGHTS, GAUSSIAN_WEIGHTS, GAUSSIAN_INFLATIONS)
    loss = {choice: INFLATION_PRIOR_COUNT * math.log(choice[-1]) ** 2 for choice in choices}
    for net, windows in checks:
        for window, weight in product(windows, GAUSSIAN_WEIGHTS):
            net.calibration.set(weight, inflation=1.0, mean_weight=1.0)
            found, loc = net(window), net.baseline(window)[0][:, window.n_context :]
            mean, n_observed = found.mean, float(window.targets[1].sum())
            for mean_weight, inflation in product(GAUSSIAN_WEIGHTS, GAUSSIAN_INFLATIONS):
                moved = torch.lerp(loc, mean, mean_weight) - inflation * mean
                wider = affine(found, moved, torch.full_like(mean, inflation))
                nats = training_loss(wider, window, net.head).item()
                loss[weight, mean_weight, inflation] += n_observed * nats
    return min(loss, key=loss.__getitem__)


def deciles(marginals: Distribution, n_paths: int) -> Float[Tensor, "9 B T D"]:
    """Deciles of a batch of distributions, from draws that are the same in every call."""
    paths = draw_paths(marginals, n_paths, torch.Generator().manual_seed(0)).paths
    return _deciles(paths)


def _deciles(paths: Float[Tensor, "B S T D"]) -> Float[Tensor, "9 B T D"]:
    """Deciles of paths."""
    return torch.quantile(paths, paths.new_tensor(DECILES), dim=1)


def pinball(found: Float[Tensor, "9 B T D"], window: Window) -> Float[Tensor, "B T D"]:
    """Twice the mean pinball loss of deciles at every target, zero where it was not observed."""
    y, observed = window.targets
    levels = y.new_tensor(DECILES)[:, None, None, None]
    return pinball_loss(y - found, levels).mean(0) * observed
