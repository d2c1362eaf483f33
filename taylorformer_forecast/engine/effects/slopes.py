"""Slopes of covariates and autoregressions of the rest, estimated in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from taylorformer_forecast.core.window import evenly
from taylorformer_forecast.defaults import EFFECT_EVIDENCE
from taylorformer_forecast.engine.effects.demand_rows import DemandRows
from taylorformer_forecast.engine.effects.relevance import Regressions, relevant_slopes

N_ROUNDS = 6  # of slopes in turn with an autoregression, or with the season of demand
SERIES_AT_ONCE = 256  # series that are estimated together, others given what these have in common


def slopes_of(
    rows: dict[int, Any], groups: Int[np.ndarray, " P"]
) -> tuple[Float[np.ndarray, " P"], dict[int, np.ndarray], Float[np.ndarray, " P"]]:
    """Slopes that series have in common, and those of each by its number.

    Where what covariates add comes at equal distances, the values some lags before explain it as well, in
    values with twice the noise. So slopes are estimated in turn with lags from none, and also from those of
    values as they are if these leave less. Slopes of demand are estimated in turn with its season.

    Parameters
    ----------
    rows : dict of int to Rows or DemandRows
        Values and terms of series, by their numbers.
    groups : int ndarray of shape (P,)
        Kind of every term: slopes of one kind have one prior.

    Returns
    -------
    common : ndarray of shape (P,)
        Slopes that series have in common.
    each : dict of int to ndarray of shape (P + S,)
        Those of each series, and what places in the season add.
    prior : ndarray of shape (P + S,)
        Variances of the deviations of series from what they have in common, and of places in the season.
    """
    some = [list(rows)[k] for k in evenly(len(rows), SERIES_AT_ONCE).tolist()]
    n_terms, n_all = len(groups), rows[some[0]].terms.shape[1]
    n_places = n_all - n_terms  # in the season
    groups = np.append(groups, np.full(n_places, groups.max() + 1))
    common, own = np.zeros(len(groups)), np.zeros((len(some), len(groups)))
    searched, demand = [rows[k] for k in some], isinstance(rows[some[0]], DemandRows)
    common, own, prior = _in_turn(searched, groups, common, own, n_places)
    if not demand:
        plain = Regressions.of([one.as_they_are() for one in searched])
        other, each, _ = relevant_slopes(plain, groups, n_places)
        pairs = zip(searched, common + own, other + each, strict=True)
        less = sum(one.loss(a) - one.loss(b) for one, a, b in pairs)
        if less > EFFECT_EVIDENCE * sum(len(one.at) for one in searched):
            common, own, prior = _in_turn(searched, groups, other, each, n_places)
    else:
        searched = [one.in_season(common + part) for one, part in zip(searched, own, strict=True)]
        if any(one.season.any() for one in searched):
            common, own, prior = _in_turn(searched, groups, common, own, n_places)
    slopes = {k: common + part for k, part in zip(some, own, strict=True)}
    for k in rows.keys() - set(some):  # too many for all to be estimated together
        one = rows[k].in_season(common) if demand else rows[k]
        slopes[k] = slopes_of_one(one, common, prior)
    return common[:n_terms], slopes, prior


def slopes_of_one(
    rows: Any, common: Float[np.ndarray, " P"], prior: Float[np.ndarray, " P+S"]
) -> Float[np.ndarray, " P+S"]:
    """Slopes of one more series, given those in common and the variances of deviations from these.

    Of places in the season only variances need be given: they have none in common then.
    """
    found = common = np.append(common, np.zeros(len(prior) - len(common)))
    for _ in range(2):
        found = common + Regressions.of([rows.whitened(found)]).deviations(common, prior)[0]
        rows = rows.without_outliers(found)
    return found


def _in_turn(
    rows: list[Any], groups: np.ndarray, common: np.ndarray, own: np.ndarray, n_places: int
) -> tuple:
    """Slopes in common and deviations of each, and the prior of these, from slopes to start with."""
    for _ in range(N_ROUNDS):
        parts = [one.whitened(common + part) for one, part in zip(rows, own, strict=True)]
        common, own, prior = relevant_slopes(Regressions.of(parts), groups, n_places)
        rows = [one.without_outliers(common + part) for one, part in zip(rows, own, strict=True)]
    return common, own, prior
