"""Regressions whose coefficients have normal priors of estimated variance: what explains nothing is 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from taylorformer_forecast.defaults import EFFECT_FREE_VARIANCE, RELEVANCE_DOUBT

N_ITERATIONS = 40  # of slopes and their variances in turn, at most
SETTLED = 1e-3  # change of the logarithms of variances that ends them
LEAST_VARIANCE = 1e-10  # of a slope, so that it can be divided by
MOST_VARIANCE = 1e4  # of a slope in deviations, as values are


@dataclass(frozen=True)
class Regressions:
    """Sums of squares of K regressions on the same P terms.

    Parameters
    ----------
    gram : ndarray of shape (K, P, P)
        Of terms with terms.
    moment : ndarray of shape (K, P)
        Of terms with values.
    square : ndarray of shape (K,)
        Of values with values.
    count : ndarray of shape (K,)
        Degrees of freedom of the values.
    """

    gram: np.ndarray
    moment: np.ndarray
    square: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, parts: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> Regressions:
        """From values (m,), terms (m, P), and the degrees of freedom that were spent before."""
        return cls(
            np.stack([terms.T @ terms for _, terms, _ in parts]),
            np.stack([terms.T @ y for y, terms, _ in parts]),
            np.array([y @ y for y, _, _ in parts]),
            np.array([max(len(y) - spent - 1.0, 1.0) for y, _, spent in parts]),
        )

    def of_terms(self, terms: Int[np.ndarray, " T"]) -> Regressions:
        """The same on some of the terms."""
        return replace(self, gram=self.gram[:, terms[:, None], terms], moment=self.moment[:, terms])

    def noise(self, slopes: Float[np.ndarray, "K P"], spent: float | np.ndarray = 0.0) -> np.ndarray:
        """Variance of what slopes leave of each."""
        fit = 2 * (slopes * self.moment).sum(1) - np.einsum("kp,kpq,kq->k", slopes, self.gram, slopes)
        rest = np.maximum(self.square - fit, 1e-9 * self.square)
        return np.maximum(rest / np.maximum(self.count - spent, 1.0), 1e-12)

    def deviations(self, common: Float[np.ndarray, " P"], prior: Float[np.ndarray, " P"]) -> np.ndarray:
        """Deviations of the slopes of each regression from common ones, given their variances."""
        noise = self.noise(np.broadcast_to(common, self.moment.shape))
        left = (self.moment - self.gram @ common) / noise[:, None]
        precision = self.gram / noise[:, None, None] + np.diag(1 / prior)
        return np.linalg.solve(precision, left[..., None])[..., 0]


def relevant_slopes(
    data: Regressions, groups: Int[np.ndarray, " P"], n_free: int = 0
) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, "K P"], Float[np.ndarray, " P"]]:
    """Slopes that regressions have in common, deviations of each from them, and variances of these.

    Variances maximise the likelihood of the values, given only them. Those of groups of terms that explain
    hardly more than chance become 0.

    Parameters
    ----------
    data : Regressions
        The regressions.
    groups : int ndarray of shape (P,)
        Group of every term, from 0; terms of a group share variances.
    n_free : int, default=0
        How many terms, the last ones, are not shrunk in each of several regressions: what is left of a season
        there would be taken for an effect.

    Returns
    -------
    common, own, prior : ndarray
        Of shapes (P,), (K, P) and (P,).

    References
    ----------
    MacKay, "Bayesian interpolation", Neural Computation, 1992; Tipping, "Sparse Bayesian learning and the
    relevance vector machine", Journal of Machine Learning Research, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.engine.effects.relevance import Regressions, relevant_slopes
    >>> rng = np.random.default_rng(0)
    >>> terms = rng.normal(size=(100, 2))
    >>> y = 2 * terms[:, 0] + 0.1 * rng.normal(size=100)
    >>> relevant_slopes(Regressions.of([(y, terms, 0)]), np.arange(2))[0].round(1).tolist()
    [2.0, 0.0]
    """
    n_series, n_terms = data.moment.shape
    member = (groups == np.arange(groups.max() + 1)[:, None]).astype(float)  # (G, P)
    every = data
    common, own = np.zeros(n_terms), np.zeros((n_series, n_terms))
    shared, apart = np.ones(n_terms), np.full(n_terms, 1.0 if n_series > 1 else LEAST_VARIANCE)
    part = data.count / data.count.sum()
    spent: float | np.ndarray = 0.0
    free = np.arange(n_terms) >= (n_terms - n_free if n_series > 1 else n_terms)
    apart[free] = EFFECT_FREE_VARIANCE
    left = np.arange(n_terms)  # terms whose slopes are not 0
    for _ in range(N_ITERATIONS):
        noise = data.noise(common[left] + own[:, left], spent)
        gram, moment, spent = data.gram / noise[:, None, None], data.moment / noise[:, None], 0.0
        before = np.concatenate([shared, apart])
        if n_series > 1:
            inverse = np.linalg.inv(gram + np.diag(1 / apart[left]))
            own[:, left] = (inverse @ (moment - gram @ common[left])[..., None])[..., 0]
            known = 1 - np.einsum("kpp->kp", inverse) / apart[left]
            spent = known.sum(1)
            apart[left] = np.where(
                free[left], EFFECT_FREE_VARIANCE, _variance(own[:, left], known, member[:, left])
            )
            # Deviations are integrated out: regressions that are unlike say less of what they have in common.
            outer = np.linalg.inv(np.eye(len(left)) + gram * apart[left])  # (I + G A)^-1
            gram, moment = outer @ gram, (outer @ moment[..., None])[..., 0]
        inverse = np.linalg.inv(gram.sum(0) + np.diag(1 / shared[left]))
        common[left] = inverse @ moment.sum(0)
        known = 1 - np.diag(inverse) / shared[left]
        spent = spent + known.sum() * part
        shared[left] = _variance(common[None, left], known[None], member[:, left])
        after = np.concatenate([shared, apart])
        # What was once without effect stays so.
        stays = np.maximum(shared, apart)[left] > LEAST_VARIANCE
        if not stays.any() or np.abs(np.log(after / before)).max() < SETTLED:
            break
        if not stays.all():
            left = left[stays]
            data = every.of_terms(left)
    common, own = (np.where(v > LEAST_VARIANCE, b, 0.0) for v, b in ((shared, common), (apart, own)))
    return common, own, apart


def _variance(slopes: np.ndarray, known: np.ndarray, member: np.ndarray) -> Float[np.ndarray, " P"]:
    """Variances of groups of slopes (K, P), of which parts (K, P) are known from the values."""
    square, count = member @ (slopes**2).sum(0), member @ known.sum(0)
    found = square / (count + RELEVANCE_DOUBT)
    return np.clip(found, LEAST_VARIANCE, MOST_VARIANCE) @ member
