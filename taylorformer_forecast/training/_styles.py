"""Styles of made-up series: which parts they have, how often, and in which proportions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["DAYS", "PERIODS", "STYLES", "Style"]

PERIODS = (4, 7, 12, 24, 48, 52, 30, 60, 96, 144, 168, 288, 336, 365)  # common seasons, in steps
DAYS = (4, 6, 8, 12, 24, 24, 24, 48, 48, 96, 144)  # steps in a day, of series that also have a week

Range = tuple[float, float]
Shares = Mapping[str, float]  # kind -> how often, in relation to the others

WANDERS = {"gp": 35, "ar": 30, "cycle": 8, "walk": 15, "smooth-walk": 5, "steps": 4, "peaks": 3}
SPREADS = {"even": 60, "seasonal": 10, "level": 12, "garch": 8, "slow": 10}
LINKS = {"identity": 62, "exponential": 24, "counts": 7, "floor": 4, "bounded": 3}


class Style(NamedTuple):
    """A style. Proportions are ranges of deviations, from which log-uniform ones are drawn.

    Parameters
    ----------
    share : float
        How many series have this style, in relation to the others.
    seasons : tuple of float
        Probabilities of no season, of one and of two.
    trended : float
        Probability of a trend.
    noise : (float, float)
        Deviation of the noise, in units of that of all the rest.
    trend, wander, season : (float, float)
        Deviations of the trend, of the level that wanders, and of the seasons.
    wanders : mapping
        What the wandering level is.
    spreads : mapping
        What the size of the noise depends on.
    links : mapping
        How values come from the sum of all parts.
    """

    share: float
    seasons: tuple[float, float, float]
    trended: float
    noise: Range
    trend: Range = (0.1, 1.0)
    wander: Range = (1.0, 1.0)
    season: Range = (0.1, 1.0)
    wanders: Shares = WANDERS
    spreads: Shares = SPREADS
    links: Shares = LINKS


STYLES = {
    # Monthly passengers, sales: a trend, seasons, something unexplained.
    "structural": Style(
        share=30,
        seasons=(0.12, 0.63, 0.25),
        trended=0.7,
        noise=(0.02, 0.8),
        trend=(0.1, 3.0),
        wander=(0.1, 1.0),
        season=(0.2, 2.0),
    ),
    # Demand for electricity or taxis: nearly all of it is seasons.
    "regular": Style(
        share=22,
        seasons=(0.0, 0.45, 0.55),
        trended=0.3,
        noise=(0.01, 0.25),
        trend=(0.02, 0.4),
        wander=(0.03, 0.4),
        season=(1.0, 1.0),
    ),
    # Temperatures and loads: a level that wanders, with a season on it or without.
    "wandering": Style(share=16, seasons=(0.4, 0.5, 0.1), trended=0.2, noise=(0.01, 0.5)),
    # Exchange rates and prices.
    "walk": Style(
        share=9,
        seasons=(1.0, 0.0, 0.0),
        trended=0.15,
        noise=(1e-4, 3e-2),
        trend=(0.1, 0.5),
        wanders={"walk": 85, "smooth-walk": 15},
        links={"identity": 60, "exponential": 40},
    ),
    # Epidemics, sunspots, floods.
    "peaks": Style(
        share=7,
        seasons=(0.5, 0.5, 0.0),
        trended=0.2,
        noise=(0.01, 0.3),
        trend=(0.05, 0.5),
        season=(0.05, 0.4),
        wanders={"peaks": 75, "cycle": 25},
        spreads={"level": 60, "even": 30, "slow": 10},
        links={"floor": 45, "identity": 20, "exponential": 25, "counts": 10},
    ),
    # Draws of Gaussian processes, hardly disturbed.
    "smooth": Style(
        share=6,
        seasons=(0.6, 0.3, 0.1),
        trended=0.2,
        noise=(1e-4, 2e-2),
        wanders={"gp": 80, "cycle": 20},
        links={"identity": 85, "exponential": 15},
    ),
    "noise": Style(
        share=5,
        seasons=(0.6, 0.35, 0.05),
        trended=0.3,
        noise=(2.0, 15.0),
        links={"identity": 75, "exponential": 25},
    ),
    # Sales of a single article: zeros, and now and then a few.
    "intermittent": Style(
        share=5,
        seasons=(0.5, 0.4, 0.1),
        trended=0.3,
        noise=(0.05, 0.5),
        wander=(0.1, 1.0),
        links={"intermittent": 75, "counts": 25},
    ),
}
