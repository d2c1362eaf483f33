"""All processes by name: the switch that turns them on and off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.random import Generator

from taylorformer_forecast.synthetic.calendar import CALENDAR
from taylorformer_forecast.synthetic.counts import COUNTS
from taylorformer_forecast.synthetic.events import EVENTS
from taylorformer_forecast.synthetic.frame import Frame, pick
from taylorformer_forecast.synthetic.gaussian_process import GAUSSIAN_PROCESSES
from taylorformer_forecast.synthetic.noise import NOISES
from taylorformer_forecast.synthetic.observation import OBSERVATIONS
from taylorformer_forecast.synthetic.regimes import REGIMES
from taylorformer_forecast.synthetic.season import SEASONS
from taylorformer_forecast.synthetic.state_space import STATE_SPACE
from taylorformer_forecast.synthetic.trend import TRENDS

LEVELS = {**STATE_SPACE, **REGIMES}
COMPONENTS = {**TRENDS, **LEVELS, **GAUSSIAN_PROCESSES, **SEASONS, **CALENDAR, **NOISES, **EVENTS}
KINDS: dict[str, tuple[str, ...]] = {
    "trend": tuple(TRENDS),
    "level": tuple(LEVELS),
    "Gaussian process": tuple(GAUSSIAN_PROCESSES),
    "season": tuple(SEASONS),
    "calendar": tuple(CALENDAR),
    "noise": tuple(NOISES),
    "event": tuple(EVENTS),
    "count": tuple(COUNTS),
    "observation": tuple(OBSERVATIONS),
    "composition": ("mixture", "seasonal_modulation", "irregular_times"),
}
PROCESSES: dict[str, str] = {name: kind for kind, names in KINDS.items() for name in names}


class Switch:
    """Which processes are on, and by how much their weights or probabilities are multiplied.

    Parameters
    ----------
    processes : mapping of str to float, iterable of str, or None
        Factors by name, 1 where a mapping has none; or the names of all that are on; or all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.processes import Switch
    >>> Switch(["linear", "white_noise"]).factor("damped")
    0.0
    >>> Switch({"damped": 2.0}).weights({"linear": 1.0, "damped": 1.0})
    {'linear': 1.0, 'damped': 2.0}
    """

    def __init__(self, processes: Mapping[str, float] | Iterable[str] | None = None) -> None:
        if processes is None:
            processes = {}
        if not isinstance(processes, Mapping):
            chosen = set(processes)
            processes = {name: 1.0 for name in chosen} | {
                name: 0.0 for name in PROCESSES if name not in chosen
            }
        if unknown := sorted(set(processes) - set(PROCESSES)):
            raise ValueError(f"unknown processes {unknown}; there are {sorted(PROCESSES)}")
        self._factors = dict(processes)

    def factor(self, name: str) -> float:
        """Factor of a process; 1 for what is no process."""
        return self._factors.get(name, 1.0)

    def weights(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Weights times the factors, without zeros."""
        scaled = {name: weight * self.factor(name) for name, weight in weights.items()}
        return {name: weight for name, weight in scaled.items() if weight > 0}

    def choose(self, rng: Generator, weights: Mapping[str, float], size: int) -> np.ndarray:
        """Draw names of processes; ``""`` if all of them are off."""
        on = self.weights(weights)
        return pick(rng, on, size).astype("U24") if on else np.full(size, "", dtype="U24")

    def happens(self, rng: Generator, name: str, probability: np.ndarray | float, size: int) -> np.ndarray:
        """Rows that have a process of this probability."""
        return np.flatnonzero(rng.random(size) < np.asarray(probability) * self.factor(name))


def draw_component(rng: Generator, frame: Frame, kinds: np.ndarray) -> np.ndarray:
    """Draw a component (k, n) whose process differs from row to row; 0 where there is none.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    frame : Frame
        Seasons and dates of the series.
    kinds : str ndarray of shape (k,)
        Names of processes of trend, level, season, calendar, noise and events; ``""`` for none.

    Returns
    -------
    ndarray of shape (k, n)

    Examples
    --------
    >>> import numpy as np
    >>> from taylorformer_forecast.synthetic.frame import make_frame
    >>> from taylorformer_forecast.synthetic.processes import draw_component
    >>> rng = np.random.default_rng(0)
    >>> frame = make_frame(rng, 20, np.array(["none"] * 2), np.zeros((2, 3)))
    >>> x = draw_component(rng, frame, np.array(["linear", ""]))
    >>> abs(x[:, -1])
    array([1., 0.])
    """
    out = np.zeros((frame.k, frame.n))
    for kind in np.unique(kinds):
        if kind:
            rows = np.flatnonzero(kinds == kind)
            out[rows] = COMPONENTS[kind](rng, frame.rows(rows))
    return out
