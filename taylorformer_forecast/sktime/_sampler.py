"""Sample paths and marginal distributions of all that is asked of a fitted network, as arrays."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch

from taylorformer_forecast.core.rolling import forecast_paths, mean_range
from taylorformer_forecast.core.sampling import (
    PathSamples,
    draw_paths,
    join_samples,
    windows_at_once,
)
from taylorformer_forecast.core.scaling import least_scale, scale_window
from taylorformer_forecast.defaults import CONTEXT_FLOOR
from taylorformer_forecast.engine.contexts import stack_contexts
from taylorformer_forecast.engine.mixtures import Mixture
from taylorformer_forecast.engine.predictive import Predictive
from taylorformer_forecast.engine.training import on_device
from taylorformer_forecast.engine.windows import Series
from taylorformer_forecast.sktime._requests import Request

ROWS_AT_ONCE = 8192  # windows times paths
JITTER = 1e-6  # of a step: rounding of times


class Sampler:
    """A network with all that sampling needs, for the time of one call.

    Parameters
    ----------
    net : nn.Module
        The trained network.
    n_context, max_targets : int
        Points of a context, and targets predicted from one context.
    n_paths : int
        Paths S.
    seed : int
        Seed of the draw.
    device : str
        Where to compute.
    normalise : bool
        Whether every window is scaled by its context, as in training.
    """

    def __init__(self, net, n_context, max_targets, n_paths, seed, device, normalise) -> None:
        self.net, self.generator, self.device = on_device(net, device, seed)
        self.dtype = net.dtype  # the default one may change: it is that of all threads
        self.n_context, self.max_targets, self.n_paths, self.seed = n_context, max_targets, n_paths, seed
        self.normalise = normalise

    def window(self, contexts, t, covariates, y=None):
        """Windows on the device, and the least scale of each."""
        window = stack_contexts(contexts, self.n_context, t, covariates, y)
        return window.to(self.device), least_scale(window, CONTEXT_FLOOR).to(self.device)

    def future(self, columns, t, covariates, given) -> PathSamples:
        """Joint paths through times after the columns, and through values that are given (NaN: none)."""
        contexts = [column.before(column.n_known, self.n_context) for column in columns]
        conditional = not np.isnan(given).all()
        order = np.argsort(np.isnan(given).all(2), 1, kind="stable")  # what is given comes first
        if conditional:
            t, given = np.take_along_axis(t, order, 1), np.take_along_axis(given, order[..., None], 1)
            if covariates is not None:
                covariates = np.take_along_axis(covariates, order[..., None], 1)
        window, floor = self.window(contexts, t, covariates, given)
        reach = self.reach(columns, t)
        samples = forecast_paths(
            self.net,
            window,
            self.n_paths,
            float(self.n_context),
            floor,
            max_targets=reach,
            generator=self.generator,
            max_rows=ROWS_AT_ONCE,
            dtype=self.dtype,
            normalise=self.normalise,
            keep_observed=conditional,
            limits=None if t.shape[1] <= reach else self.limits(columns, t),
        )
        samples = samples.map(lambda value: value.cpu())
        return _through(samples, given, order) if conditional else samples

    def reach(self, columns, t) -> int:
        """Targets predicted from one context: those within its horizon of steps, with any between them."""
        ends = np.array([column.series.t[column.n_known - 1] for column in columns]) + self.max_targets
        return max(self.max_targets, int((t <= ends[:, None] + JITTER).sum(1).min()))

    def limits(self, columns, t):
        """Lowest and highest means, in view of all values so far."""
        past = [(torch.as_tensor(c.series.t)[None], torch.as_tensor(c.series.y)[None]) for c in columns]
        each = [mean_range(*p, torch.as_tensor(row)[None]) for p, row in zip(past, t, strict=True)]
        return tuple(torch.cat(part).to(self.device) for part in zip(*each, strict=True))

    @torch.no_grad()
    def past(self, contexts, t, covariates) -> PathSamples:
        """Independent draws one step ahead of each context, shaped as paths of one target."""
        n_points = self.n_context * contexts[0].y.shape[1]
        parts, at_once = [], min(ROWS_AT_ONCE // 8, windows_at_once(self.net, n_points))
        for start in range(0, len(contexts), at_once):
            part = slice(start, start + at_once)
            window, floor = self.window(
                contexts[part], t[part], None if covariates is None else covariates[part]
            )
            scaled, scale = scale_window(window, float(self.n_context), floor, self.dtype, self.normalise)
            samples = draw_paths(self.net(scaled), self.n_paths, self.generator).to_data(scale)
            parts.append(samples.map(lambda value: value.cpu()))
        return join_samples(parts, 0)


def _through(samples: PathSamples, given: np.ndarray, order: np.ndarray) -> PathSamples:
    """Put targets back in order of time, and points where values are given."""
    value = torch.as_tensor(given)[:, None]  # (B, 1, T, D)
    is_given = ~value.isnan()
    conditionals = samples.conditionals.with_points(is_given, value)
    samples = PathSamples(torch.where(is_given, value, samples.paths), conditionals)
    return samples.reordered(torch.as_tensor(np.argsort(order, 1)))


def predict_requests(requests: list[Request], sampler: Sampler) -> Predictive:
    """Predict all that is asked, in one draw: rows of all requests, one after another.

    Columns are windows of their own, unless the network joins them: one network serves any number of columns
    and instances, and what is missing in one column leaves the others alone.
    """
    n_context = sampler.n_context
    pieces: dict[tuple[int, int], list[tuple[np.ndarray, PathSamples]]] = defaultdict(list)

    # Paths into the future: windows with equally many targets go together. That of a column which ends before
    # others begins where it ends.
    groups: dict[int, list[tuple[int, int, Series]]] = defaultdict(list)
    for i, request in enumerate(requests):
        for d in range(len(request.columns) * bool(len(request.path_t))):
            late = request.late(d)
            groups[len(late.t) + len(request.path_t)].append((i, d, late))
    for members in groups.values():
        chosen = [(requests[i], d, late) for i, d, late in members]
        samples = sampler.future(
            [r.columns[d] for r, d, _ in chosen],
            np.stack([np.concatenate([late.t, r.path_t]) for r, _, late in chosen]),
            _stacked([_joined(late.covariates, r.path_covariates) for r, _, late in chosen]),
            np.stack([np.concatenate([late.y, r.given(d)]) for r, d, late in chosen]),
        )
        for row, (i, d, late) in enumerate(members):
            r = requests[i]
            at = torch.as_tensor(r.position + len(late.t))
            pieces[i, d].append((np.flatnonzero(~r.is_past), samples.map(lambda v: v[row][:, at])))  # noqa: B023

    # In sample: one window for every time.
    asked: list[tuple[int, int, int, int]] = []
    for i, request in enumerate(requests):
        for d, column in enumerate(request.columns):
            rows = np.flatnonzero(request.is_past)
            stops = np.searchsorted(column.series.t, request.t[rows] - 1e-9)
            asked += [(i, d, int(row), int(stop)) for row, stop in zip(rows, stops, strict=True)]
    if asked:
        # Before the first observation nothing is known but the series' own mean and standard deviation; a
        # context of one point that was not observed keeps the batch whole, and what it gives is replaced
        # below.
        samples = sampler.past(
            [requests[i].columns[d].before(stop, n_context) for i, d, _, stop in asked],
            np.array([[requests[i].t[row]] for i, _, row, _ in asked]),
            _stacked([requests[i].covariates_at(row) for i, _, row, _ in asked]),
        )
        first = {
            (i, d): int(np.argmin(np.isnan(column.series.y).all(1)))
            for i, request in enumerate(requests)
            for d, column in enumerate(request.columns)
        }
        blind = torch.as_tensor([bool(stop <= first[i, d]) for i, d, _, stop in asked])
        samples = _marginal_where(blind, samples, sampler.seed + 1)
        for number, (i, d, row, _) in enumerate(asked):
            pieces[i, d].append((np.array([row]), samples.map(lambda v: v[number])))  # noqa: B023
    return _assemble(requests, pieces)


def _stacked(covariates: list[np.ndarray | None]) -> np.ndarray | None:
    """Covariates of several windows, if there are any."""
    known = [one for one in covariates if one is not None]
    return np.stack(known) if known else None


def _joined(before: np.ndarray | None, after: np.ndarray | None) -> np.ndarray | None:
    """Covariates of two stretches of time, if there are any."""
    return None if before is None or after is None else np.concatenate([before, after])


def _marginal_where(blind, samples: PathSamples, seed: int) -> PathSamples:
    """Standard normal (in standardised units) where there is nothing to condition on."""
    if not blind.any():
        return samples
    rows = blind[:, None, None, None]
    blank = samples.conditionals.standard()
    every = blank.map(lambda v: v.expand(*samples.paths.shape, -1))
    noise = every.sample(torch.Generator().manual_seed(seed))
    mixed = blank.where(rows[..., None], samples.conditionals)
    return PathSamples(torch.where(rows, noise, samples.paths), mixed)


def _assemble(requests: list[Request], pieces) -> Predictive:
    """Put rows and columns in order, back in the units of the data."""
    forecasts = []
    for i, request in enumerate(requests):
        columns = []
        for d, column in enumerate(request.columns):
            order = torch.as_tensor(np.argsort(np.concatenate([rows for rows, _ in pieces[i, d]])))
            samples = join_samples([part for _, part in pieces[i, d]], 1).map(lambda v: v[:, order])  # noqa: B023
            columns.append(samples.affine(torch.as_tensor(column.loc), torch.as_tensor(column.scale)))
        forecasts.append(join_samples(columns, 2))
    samples = join_samples(forecasts, 1)
    return Predictive(samples.paths.numpy(), Mixture.over_paths(samples.conditionals))
