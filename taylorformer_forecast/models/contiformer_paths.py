"""ContiFormer for joint paths: every target is drawn given those before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.linear_path import LinearPathBaseline
from taylorformer_forecast.core.continuous.incremental import IncrementalSums
from taylorformer_forecast.core.continuous.interpolation import take
from taylorformer_forecast.core.temporal import last_seen
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.contiformer import ContiFormer, ContinuousLayers, Points
from taylorformer_forecast.models.stepwise import BaselineState, StepwiseNet

NEEDED = {"interpolation": "hold", "both_sides": False, "window": None, "attention": "full"}


@dataclass
class PathsState:
    """What sampling keeps between steps.

    Parameters
    ----------
    sums : list of IncrementalSums
        Keys and values that each layer attends.
    sequence : Points
        Context and targets; what is known of the latter beforehand.
    baseline : BaselineState
        The baseline.
    values : Tensor of shape (B, S, N, D)
        Values on every path.
    x, features : Tensor of shape (B, S, I) and (B, 1, G)
        State of the last point before the last layer, and its features.
    """

    sums: list[IncrementalSums]
    sequence: Points
    baseline: BaselineState
    values: Tensor
    x: Tensor
    features: Tensor


def _earlier(visible: Bool[Tensor, "B N"], offset: int = 0) -> Bool[Tensor, "B N N"]:
    """Visible points up to the place of each, plus an offset; times do not count, as some are equal."""
    return visible[:, None].expand(-1, visible.shape[1], -1).tril(offset)


class ContiFormerPaths(ContinuousLayers, StepwiseNet):
    """Autoregressive ContiFormer: joint sample paths, and the exact joint likelihood of the targets.

    Targets are reference points for those after them. Queries are held between points, so that nothing that
    was computed for a point changes later: a new point of a path costs one pass over the points before it
    (:class:`~taylorformer_forecast.core.continuous.incremental.IncrementalSums`).

    Parameters
    ----------
    **options
        Those of :class:`~taylorformer_forecast.models.contiformer.ContiFormer`.

    Raises
    ------
    ValueError
        If the dynamics have no closed form, or ``both_sides``, a ``window``, other ``attention`` or another
        ``interpolation`` is given.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.sampling import sample_paths
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.contiformer_paths import ContiFormerPaths
    >>> net = ContiFormerPaths(d_model=8).eval()
    >>> w = Window(torch.linspace(-1, 1, 10)[None], torch.randn(1, 10, 1), n_context=6)
    >>> sample_paths(net, w, n_paths=5).paths.shape
    torch.Size([1, 5, 4, 1])
    """

    def __init__(self, **options: Any) -> None:
        dynamics, solver = options.get("dynamics", "linear"), options.get("solver")
        if dynamics not in ("linear", "none") or solver not in (None, "closed"):
            raise ValueError(
                f"dynamics={dynamics!r} with solver={solver!r}: paths are drawn point by point with the "
                "closed form of 'linear' or 'none' only"
            )
        for name, only in NEEDED.items():
            if options.setdefault(name, only) != only:
                raise ValueError(
                    f"{name}={options[name]!r}: paths that are drawn point by point need {only!r}, as their "
                    "incremental sums run over all points before"
                )
        super().__init__(**options)

    # ---- teacher-forced ------------------------------------------------------------------------------

    def sequence(self, window: Window) -> Points:
        """Observed context points in order of time, then the targets."""
        features = self.features(window)
        r, targets = self.references(window, features), slice(window.n_context, None)
        y, observed, at = window.y[:, targets], window.observed[:, targets], window.times[:, targets, 0]
        # Where nothing was observed, the context may stand anywhere before the targets.
        first = torch.where(r.visible.any(1, keepdim=True), r.t, at[:, :1]) if window.n_targets else r.t
        t, features = torch.cat([first, at], 1), features[:, targets]
        readable = t.device.type == "cpu" and not torch.compiler.is_compiling()
        if readable and not bool((t.diff(dim=1) >= 0).all()):
            raise ValueError(
                "paths are drawn in order of time: targets must follow the context, and each other"
            )
        tokens = torch.cat([r.tokens, torch.cat([y, observed.to(y.dtype), features], -1)], 1)
        values, seen = (
            torch.cat([r.y, y], 1),
            torch.cat([torch.ones_like(r.y, dtype=torch.bool), observed], 1),
        )
        values = values.gather(1, last_seen(seen, 0))
        visible = torch.cat([r.visible, observed.any(-1)], 1)
        return Points(t, visible, tokens, torch.cat([r.features, features], 1), values)

    def forward(self, window: Window) -> Distribution:
        """Distribution of every target given the context and the true earlier targets; see ``ForecastNet``.

        Raises
        ------
        ValueError
            If targets are not in order of time, after the context.
        """
        s, first = self.sequence(window), window.n_context
        *inner, last = self.layers
        x = self.states(s, _earlier(s.visible), inner)
        # The last layer is asked at the targets alone.
        before = last_seen(s.visible, 0)[:, first - 1 : -1]
        shift = self.target(s.features[:, first:] - take(s.features, before))
        x_at = take(x, before) + shift
        strictly = _earlier(s.visible, offset=-1)[:, first:]
        z = last.finish(last.attention(x, s.t, strictly, None, x_at, shift, first), x_at)
        raw = self.unconstrained(z)
        if self.baseline is None:
            return self.calibration(self.head, raw, s.y[:, first - 1 : -1])
        return self.around_truth(window, lambda loc, scale: raw)

    # ---- sampling ------------------------------------------------------------------------------------

    def encode(self, window: Window, n_paths: int) -> PathsState:
        """Process the context once for all paths and steps; see ``ForecastNet``."""
        s, n = self.sequence(window), window.n_context
        t, visible = s.t[:, :n], s.visible[:, :n]
        held = last_seen(visible, 0)
        x, sums = self.embed(s.tokens[:, :n]), []
        causal = _earlier(visible)
        for layer in self.layers:
            x = take(x, held)
            sums.append(IncrementalSums(layer.attention, x, s.t, visible, n_paths))
            if len(sums) < len(self.layers):
                x = layer.finish(layer.attention(x, t, causal), x)
        values = s.y[:, None].repeat(1, n_paths, 1, 1)
        values[:, :, n:] = 0.0
        last = x[:, None, -1].expand(-1, n_paths, -1)
        baseline = self.encode_baseline(window.to_draw(), n_paths)
        return PathsState(sums, s, baseline, values, last, s.features[:, n - 1 : n])

    def query(self, state: PathsState, step: int) -> Distribution:
        """Distribution of target number ``step`` on every path, its own value unseen; see ``ForecastNet``."""
        s, sums, last = state.sequence, state.sums[-1], self.layers[-1]
        place = sums.n + step
        shift = self.target(s.features[:, place : place + 1] - state.features).expand_as(state.x)
        x_at = state.x + shift
        z = last.finish(sums.attend(step, x_at, shift), x_at)
        raw = self.unconstrained(z)
        if self.baseline is None:
            return self.calibration(self.head, raw, state.values[:, :, place - 1])
        drawn = state.values[:, :, sums.n : place]
        return self.around_path(state.baseline, step, drawn, lambda loc, scale: raw)

    def observe(self, state: PathsState, step: int, y: Float[Tensor, "B S D"]) -> PathsState:
        """Take note of the value of target number ``step`` on every path; see ``ForecastNet``."""
        place = state.sums[0].n + step
        state.features = state.sequence.features[:, place : place + 1]
        known = state.features.expand(-1, y.shape[1], -1)
        x = self.embed(torch.cat([y, torch.ones_like(y), known], -1))
        for layer, sums in zip(self.layers, state.sums, strict=True):
            finished = None
            if sums is not state.sums[-1]:
                finished = layer.finish(sums.attend(step, x, own=True), x)
            sums.add(step, x)
            x = x if finished is None else finished
        state.x, state.values[:, :, place] = x, y
        self.observe_baseline(state.baseline, step, y)
        return state


def build_contiformer(
    joint: bool | None = None,
    linear: tuple[int, ...] | None = None,
    regular: bool = True,
    **options: Any,
) -> ContinuousLayers:
    """Build the network for joint paths or the direct one.

    Parameters
    ----------
    joint : bool, optional
        Whether paths are joint; by default, where dynamics, solver and attention allow it.
    linear : tuple of int, optional
        Context length, horizon and maybe shift of a linear baseline; by default locations are measured from
        the last value.
    regular : bool, default=True
        Whether times are regular, so that errors of the linear baseline are carried along a path.
    **options
        Arguments of the network.

    Returns
    -------
    ContinuousLayers
        The network.

    Examples
    --------
    >>> from taylorformer_forecast.models.contiformer_paths import build_contiformer
    >>> build_contiformer().one_shot, build_contiformer(dynamics="mlp").one_shot
    (False, True)
    """
    if joint is None:
        closed_form = options.get("dynamics", "linear") in ("linear", "none")
        joint = (
            closed_form
            and options.get("solver") in (None, "closed")
            and options.get("attention", "full") == "full"
        )
    if linear is not None:
        path = partial(LinearPathBaseline, carries=regular)
        options["baseline"] = (path if joint else LinearBaseline)(*linear)
    return (ContiFormerPaths if joint else ContiFormer)(**options)
