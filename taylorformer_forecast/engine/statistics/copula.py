"""Sample paths of several series drawn together: a Gaussian copula of their errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import ndtri

from taylorformer_forecast.baselines.errors import past_errors
from taylorformer_forecast.baselines.forecast import forecast_clean
from taylorformer_forecast.calendar.steps import StepDate
from taylorformer_forecast.defaults import LARGEST_COPULA_ERROR, LONGEST_PAST, N_COPULA_ORIGINS
from taylorformer_forecast.engine.statistics.forecast import STEPS_AT_ONCE, prepared
from taylorformer_forecast.engine.statistics.requests import ending_together, whole_seasons

PAIRED_AT_ONCE = 1000  # series, of which every pair has its own correlation where scores are missing


def past_origins(n: int, horizon: int) -> list[int]:
    """Last values before forecasts of the past, whose errors show how series go together.

    Parameters
    ----------
    n : int
        Number of the last value of the series.
    horizon : int
        Steps of a forecast.

    Returns
    -------
    list of int
        Numbers, evenly spaced in the second half of the series, none farther from the next than the horizon.

    Examples
    --------
    >>> from taylorformer_forecast.engine.statistics.copula import past_origins
    >>> past_origins(8, 12), len(past_origins(200, 12)), past_origins(10_000, 12)[-2:]
    ([4, 5, 6, 7], 24, [9987, 9999])
    """
    first = max(n // 2, n - 1 - (N_COPULA_ORIGINS - 1) * horizon)
    return np.unique(np.linspace(first, n - 1, N_COPULA_ORIGINS).round().astype(int)).tolist()


def scores_among(draws: Float[np.ndarray, "S ..."], y: np.ndarray) -> np.ndarray:
    """Normal scores of values among draws from their distributions, half of those that are equal below them.

    Parameters
    ----------
    draws : ndarray of shape (S, ...)
        Draws.
    y : ndarray of shape (...)
        Values, NaN where missing.

    Returns
    -------
    ndarray of shape (...)
        NaN where ``y`` is.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.copula import scores_among
    >>> scores_among(np.array([[1.0], [2.0], [2.0]]), np.array([2.0])).round(2)
    array([0.32])
    """
    rank = (draws < y).sum(0) + 0.5 * (draws == y).sum(0)
    return np.where(np.isnan(y), np.nan, ndtri((rank + 0.5) / (len(draws) + 1)))


def standardised_errors(
    series: Sequence[np.ndarray],
    last: Sequence[StepDate | None],
    seasons: Sequence[Sequence[float]],
    horizon: int,
) -> list[Float[np.ndarray, "n H"]]:
    """Errors of statistical forecasts from all origins in the second half of series, in units of scales.

    Effects of the calendar are no errors: forecasts have them.

    Parameters
    ----------
    series : sequence of ndarray
        Values on regular grids, NaN where missing.
    last : sequence of StepDate, optional
        Of daily and monthly series the days or months of the last values.
    seasons : sequence of sequence of float
        Lengths of the seasons of each.
    horizon : int
        Steps H.

    Returns
    -------
    list of ndarray
        Of each series: errors at the H steps after value k in row k, NaN where there are none, over the scale
        of the step. Those beyond ``LARGEST_COPULA_ERROR`` are held there: correlations are then those of
        normal scores, nearly.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.copula import standardised_errors
    >>> y = np.random.default_rng(0).normal(size=12)
    >>> np.isfinite(standardised_errors([y], [None], [[]], 2)[0]).sum(0).tolist()
    [5, 4]
    """
    found: dict[int, np.ndarray] = {}
    lengths = [min(len(own), LONGEST_PAST) for own in series]  # more would say little more
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number in np.argsort(lengths, kind="stable").tolist():
        alike[whole_seasons(seasons[number])].append(number)
    for whole, numbers in alike.items():
        while numbers:  # the longest first
            size = max(1, STEPS_AT_ONCE // (lengths[numbers[-1]] * horizon))
            batch = numbers[-size:]
            del numbers[-size:]
            y = ending_together([series[number] for number in batch])
            _, adjusted, effects = prepared(y, [last[number] for number in batch], horizon, whole)
            past = forecast_clean(adjusted, horizon, whole)
            error = past_errors(y - effects[:, : y.shape[1]], past.loc)
            error /= past.scale.clamp_min(np.finfo(float).tiny)
            seen = ~y.isnan()
            still = torch.where(seen, y, -torch.inf).amax(1) <= torch.where(seen, y, torch.inf).amin(1)
            error[still] *= 0.0  # constants have errors of rounding alone
            held = error.numpy().clip(-LARGEST_COPULA_ERROR, LARGEST_COPULA_ERROR)
            for number, scores in zip(batch, held, strict=True):
                n = len(series[number])
                scores = np.pad(scores, ((max(n - len(scores), 0), 0), (0, 0)), constant_values=np.nan)[-n:]
                scores[: n // 2] = np.nan
                found[number] = scores
    return [found[number] for number in range(len(series))]


@dataclass(frozen=True)
class GaussianCopula:
    """How the errors of D series at one time go together.

    Normal scores of the errors have a correlation matrix of which ``own * I + factors @ factors.T`` is the
    symmetric root.

    Parameters
    ----------
    own : float
        Weight of a series' own errors.
    factors : ndarray of shape (D, r)
        Loadings of the series; zeros where errors are independent of all others.

    References
    ----------
    .. [1] Iman and Conover, "A distribution-free approach to inducing rank correlation among input
       variables", Communications in Statistics, 1982.
    .. [2] Schäfer and Strimmer, "A shrinkage approach to large-scale covariance matrix estimation",
       Statistical Applications in Genetics and Molecular Biology, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.statistics.copula import GaussianCopula
    >>> common = np.random.default_rng(0).normal(size=(200, 1))
    >>> copula = GaussianCopula.of(np.concatenate([common, common, -common], 1), 200)
    >>> paths = np.random.default_rng(1).normal(size=(100, 12, 3))
    >>> together = copula.reorder(paths)
    >>> paths[..., :2].sum(2).std().round(1), together[..., :2].sum(2).std().round(1)
    (np.float64(1.4), np.float64(2.0))
    """

    own: float
    factors: np.ndarray

    @classmethod
    def of(cls, scores: Float[np.ndarray, "n D"], n_times: int) -> GaussianCopula:
        """Estimate from normal scores of observed values in their predictive distributions.

        Their correlation is shrunk to zero: its weight is one less the ratio of the sampling
        variance of all correlations to the sum of their squares.

        Parameters
        ----------
        scores : ndarray of shape (n, D)
            Scores of D series, rows of forecasts that overlap; NaN where no value is.
        n_times : int
            Times of which the rows are: a correlation has the sampling variance of so many.

        Returns
        -------
        GaussianCopula
            Series that have no values together with others are independent of them, and so are those whose
            scores do not vary, as of constants.
        """
        known = ~np.isnan(scores)
        highest, lowest = (np.where(known, scores, end) for end in (-np.inf, np.inf))
        varied = highest.max(0) > lowest.min(0)
        if not varied.all():
            some = cls.of(scores[:, varied], n_times) if varied.any() else cls(1.0, np.empty((0, 0)))
            factors = np.zeros((len(varied), some.factors.shape[1]))
            factors[varied] = some.factors
            return cls(some.own, factors)
        z = np.where(known, scores, 0.0)
        z = np.where(known, z - z.sum(0) / known.sum(0).clip(1), 0.0)
        whole = (known.all(1) | ~known.any(1)).all()
        if whole or z.shape[1] > PAIRED_AT_ONCE:
            values, vectors, squares, noise = _eigen_of_rows(z, known, n_times)
        else:
            values, vectors, squares, noise = _eigen_of_pairs(z, known, n_times)
        weight = float((squares - noise) / squares) if squares > noise else 0.0
        own = 1.0 - weight
        gain = np.sqrt(own + weight * values) - np.sqrt(own)
        return cls(float(np.sqrt(own)), vectors * np.sqrt(gain))

    def take(self, series: Sequence[int]) -> GaussianCopula:
        """The copula of some series; number -1 is one that is independent of all others."""
        return GaussianCopula(self.own, np.pad(self.factors, ((0, 1), (0, 0)))[list(series)])

    def reorder(self, paths: Float[np.ndarray, "S T D"]) -> Float[np.ndarray, "S T D"]:
        """Arrange paths that were drawn for every series by itself so that they are paths of all together.

        Values of a series at a time stay the same: only which path they belong to changes. Ranks are taken
        as normal scores. Each follows from the one before it in its series, and from an innovation. The
        innovations of all series are mixed, and the scores that follow give the new ranks.

        Parameters
        ----------
        paths : ndarray of shape (S, T, D)
            Paths, independent of each other. Equal values are put in a random order, always the same.

        Returns
        -------
        ndarray of shape (S, T, D)
            The same values at every time of every series.
        """
        n_paths, n_times, n_series = paths.shape
        if n_paths < 2 or n_series < 2 or not self.factors.any():
            return paths
        ties = np.random.default_rng(0).random(paths.shape)
        order = np.lexsort((ties, paths), axis=0)
        usual = ndtri((np.arange(n_paths) + 0.5) / n_paths)
        usual /= usual.std()
        z = usual[order.argsort(0)]
        rho = (z[:, 1:] * z[:, :-1]).mean(0)
        innovation_scale = np.sqrt(np.maximum(1 - rho**2, 1e-9))
        e = z.copy()
        e[:, 1:] = (z[:, 1:] - rho * z[:, :-1]) / innovation_scale
        z = self.own * e + (e @ self.factors) @ self.factors.T
        for step in range(1, n_times):
            z[:, step] = rho[step - 1] * z[:, step - 1] + innovation_scale[step - 1] * z[:, step]
        return np.take_along_axis(np.take_along_axis(paths, order, 0), z.argsort(0).argsort(0), 0)


Eigen = tuple[np.ndarray, np.ndarray, float, float]  # values, vectors, sum of squared correlations, its noise


def _eigen_of_rows(z: Float[np.ndarray, "n D"], known: np.ndarray, n_times: int) -> Eigen:
    """Eigenvalues and vectors of the correlation of scores, of which all are known or many series.

    Where some are missing, correlations are too small: by the share of times that pairs have in common.
    """
    size = np.sqrt((z**2).sum(0))
    _, s, v = np.linalg.svd(z / np.where(size > 0, size, 1.0), full_matrices=False)
    squares = (s**4).sum() - (size > 0).sum()  # of all correlations but those with itself
    together = known.sum(1)  # series at every time
    pairs = len(size) * (len(size) - 1)
    share = (together * (together - 1)).mean() / max(pairs, 1)  # of times at which both of a pair have one
    return s**2, v.T, squares, max(pairs - squares, 0.0) / max(share * n_times, 1.0)


def _eigen_of_pairs(z: Float[np.ndarray, "n D"], known: np.ndarray, n_times: int) -> Eigen:
    """Eigenvalues and vectors of the correlation of scores, each from the times that a pair has in common.

    Such a matrix may have negative eigenvalues, which count as zero.
    """
    norm = np.sqrt((z**2).T @ known)
    norm = norm * norm.T
    found = np.divide(z.T @ z, norm, out=np.zeros_like(norm), where=norm > 0)
    np.fill_diagonal(found, 1.0)
    values, vectors = np.linalg.eigh(found)
    found = vectors * values.clip(0) @ vectors.T
    size = np.sqrt(found.diagonal())
    found /= np.outer(size, size)
    share = known.T.astype(float) @ known / len(known)
    pairs = (share > 0) & ~np.eye(len(size), dtype=bool)
    square = np.where(pairs, found**2, 0.0)
    noise = (np.where(pairs, 1 - square, 0.0) / np.maximum(share * n_times, 1.0)).sum()
    values, vectors = np.linalg.eigh(found)
    return values.clip(0), vectors, square.sum(), noise
