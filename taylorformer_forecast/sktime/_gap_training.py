"""How the network of the imputer is trained, and calibrated on gaps of its own making."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import torch

from taylorformer_forecast.baselines.gaussian_process import GaussianProcessBaseline
from taylorformer_forecast.defaults import (
    CONTEXT_FLOOR,
    ENOUGH_GAP_POINTS,
    GAP_HOLDOUT,
    GAUSSIAN_PROCESS_STEPS,
    GAUSSIAN_PROCESS_WINDOWS,
    LOGARITHM_BATCH,
    LOGARITHM_STEPS,
    LOGARITHM_WINDOWS,
    MIN_GAP_HOLDOUT_POINTS,
    MOST_GAP_HOLDOUT,
    MOST_GAP_ROUNDS,
    MOST_LOST_FREEDOM,
    N_GAP_BATCHES,
    N_GAP_ORDERS,
    USUAL_GAPS,
)
from taylorformer_forecast.engine.calibration import calibrate_gaussian_process
from taylorformer_forecast.engine.gaps import GapBatches, gaps_like, scale_gaps
from taylorformer_forecast.engine.state import private_rng
from taylorformer_forecast.engine.training import fit
from taylorformer_forecast.engine.windows import WindowMaker
from taylorformer_forecast.models.spec import ModelSpec, Task
from taylorformer_forecast.sktime._gaps import Gaps
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._imputations import gap_windows, in_random_order
from taylorformer_forecast.sktime._transforms import Logarithm, choose_offsets, has_logarithm


class GapTraining(Host):
    """Training of a :class:`BaseImputer`."""

    spec: ModelSpec

    def _choose_logarithms(self, parts, seed):
        """Set the offsets of logarithms of all columns."""
        every = {column: 0.0 if self.logarithm else None for column in self._columns}
        self.offsets_ = every
        if self.logarithm is None:
            shared = (self.window_length_, self.gap_length_, 2 * self.max_steps, seed)

            def nats(offsets):
                self.offsets_ = dict(zip(every, offsets, strict=True))
                columns = [gaps for part in parts.values() for gaps in self._gaps(part)]
                return nats_of_columns(columns, len(offsets), *shared)

            clean = [self._robust(part)[2].T for part in parts.values()]
            seasons = [round(length) for length in self._seasonal.lengths] if self._seasonal else []
            possible = [has_logarithm(each, seasons) for each in zip(*clean, strict=True)]
            self.offsets_ = dict(zip(every, choose_offsets(nats, possible), strict=True))

    def _train(self, columns, lengths, seed):
        """Train without some points, which set the weight of the network; if they are few, several times.

        Where one split is enough, its network is used; else another one is trained on all points.
        """
        generator, length = torch.Generator().manual_seed(seed), self.window_length_
        checks, seen, n_rounds = [], 0, 0
        while self.max_steps and seen < ENOUGH_GAP_POINTS and n_rounds < MOST_GAP_ROUNDS:
            split = [hold_out(gaps, lengths or USUAL_GAPS, generator) for gaps in columns]
            if not any(len(gaps.points.t) for gaps in split):
                break
            self._fit_network([gaps.column.series for gaps in split], seed + n_rounds)
            asked = [gaps for gaps in split if len(gaps.points.t)]
            batches = islice(gap_windows(asked, length, self.gap_length_), N_GAP_BATCHES)
            orders = [in_random_order(w, n, N_GAP_ORDERS, float(length), generator)[0] for _, w, n in batches]
            checks.append((self.network_, orders))
            seen, n_rounds = seen + sum(len(gaps.points.t) for gaps in asked), n_rounds + 1
        found = calibrate_gaussian_process(checks) if checks else (1.0, 1.0, 1.0)
        if len(checks) != 1:
            self._fit_network([gaps.column.series for gaps in columns], seed + n_rounds)
        weight, mean_weight, inflation = found
        n_points = sum(len(gaps.column.series.t) for gaps in columns)
        inflation *= degrees_of_freedom_factor(self.network_.baseline, n_points)
        self.network_.calibration.set(weight, inflation, mean_weight)
        self.training_ |= {"weight": weight, "mean_weight": mean_weight, "inflation": inflation}
        self.training_["calibration_points"] = seen

    def _fit_network(self, series, seed):
        """Fit the process, then the network around it."""
        from taylorformer_forecast.engine.gaussian_process import fit_gaussian_process

        length = self.window_length_
        maker = WindowMaker(series, length - 1, 1, float(length), CONTEXT_FLOOR)
        sizes = length - self.gap_length_, self.gap_length_
        task = Task(*sizes, n_covariates=maker.n_covariates, family=self.distribution)
        with private_rng(seed):
            self.network_ = self.spec.build(task, **self.spec.options(vars(self)))
            few = GapBatches(maker, self.gap_length_, GAUSSIAN_PROCESS_WINDOWS, seed + 1)
            fit_gaussian_process(self.network_.baseline, few, min(GAUSSIAN_PROCESS_STEPS, 2 * self.max_steps))
            self.training_ = fit(
                self.network_,
                GapBatches(maker, self.gap_length_, self.batch_size, seed),
                max_steps=self.max_steps,
                lr=self.lr,
                device=self.device,
                verbose=self.verbose,
                trainer_kwargs=self.trainer_kwargs,
            )


def degrees_of_freedom_factor(process, n_points):
    """How much too small deviations are that were fitted by maximum likelihood: as those of a regression."""
    n_parameters = sum(p.numel() for p in process.parameters())
    return (1.0 - min(MOST_LOST_FREEDOM, n_parameters / n_points)) ** -0.5


def hold_out(gaps, lengths, generator):
    """Hide some observed points of a column, unless there are few: what is left, and they as gaps."""
    s = gaps.column.series
    n = len(s.t)
    n_hidden = min(int(GAP_HOLDOUT * n), MOST_GAP_HOLDOUT) if n >= MIN_GAP_HOLDOUT_POINTS else 0
    hidden = gaps_like(n, lengths, n_hidden, generator).numpy()
    return Gaps(replace(gaps.column, series=s.take(~hidden)), s.take(hidden))


def nats_of_columns(
    columns: Sequence[Gaps], n_columns: int, length: int, n_hidden: int, n_steps: int, seed: int
) -> np.ndarray:
    """Negative log-density of every column, in nats, by a Gaussian process fitted to all.

    It is that of all observed values in the units of the data. Densities of logarithms are those of the
    values times their slope, so that columns as they are and their logarithms compare [1]_.

    Parameters
    ----------
    columns : sequence of Gaps
        Those of one instance after another.
    n_columns : int
        Columns of an instance.
    length, n_hidden : int
        Points of a window, and how many of them are hidden in training.
    n_steps : int
        Steps of the fit, at most.
    seed : int
        Of the windows.

    References
    ----------
    .. [1] Box, Cox: "An Analysis of Transformations", Journal of the Royal Statistical Society B 26 (1964)
    """
    from taylorformer_forecast.engine.gaussian_process import fit_gaussian_process

    def batches(chosen: Sequence[Gaps]) -> GapBatches:
        maker = WindowMaker(
            [gaps.column.series for gaps in chosen], length - 1, 1, float(length), CONTEXT_FLOOR
        )
        return GapBatches(maker, n_hidden, LOGARITHM_BATCH, seed)

    first = columns[0].column.series.covariates
    process = GaussianProcessBaseline(0 if first is None else first.shape[1])
    fit_gaussian_process(process, batches(columns), min(LOGARITHM_STEPS, n_steps))
    found = []
    for own in (columns[d::n_columns] for d in range(n_columns)):
        data = batches(own)
        starts = data.starts[torch.linspace(0, len(data.starts) - 1, LOGARITHM_WINDOWS).long()]
        window = data.maker.cut(starts)
        scaled, scale = scale_gaps(window, data.maker.time_unit, data.maker.floor)
        of = starts[:, 0].tolist()
        loc, unit = (
            torch.tensor([getattr(own[i].column, name).item() for i in of])[:, None, None]
            for name in ("loc", "scale")
        )
        bent = torch.tensor([isinstance(own[i].transform, Logarithm) for i in of])[:, None, None]
        # The slope of a logarithm z is exp(-z) where values were observed.
        steep = torch.where(bent, loc + unit * window.y, 0.0)
        units = ((scale.scale.log() + unit.log() + steep) * window.observed).sum() / window.observed.sum()
        with torch.no_grad():
            each = process.loss(scaled) + units
        found.append(each.item() * sum(len(gaps.column.series.t) for gaps in own))
    return np.array(found)
