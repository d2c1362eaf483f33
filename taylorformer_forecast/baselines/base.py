"""The contract between a forecast in closed form and the network that corrects it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taylorformer_forecast.core.neighbours import Neighbours
from taylorformer_forecast.core.protocol import PathNoise
from taylorformer_forecast.core.window import Window


@dataclass(frozen=True)
class Neighbourhood:
    """What targets see at their neighbours before their own values are known; S is 1 for true values.

    Parameters
    ----------
    found : Neighbours
        Where the neighbours are.
    near : Tensor of shape (B, M, K, D)
        Values there. M counts targets, or paths of one target.
    slopes : Tensor of shape (B, M, 3, X, D)
        Derivatives at the nearest of them.
    """

    found: Neighbours
    near: Tensor
    slopes: Tensor


Placed: TypeAlias = tuple[Float[Tensor, "B M D"], Tensor | float]  # location and scale of targets or of paths


class Baseline(nn.Module):
    """A forecast that a network corrects.

    A network predicts ``family(parameters, loc, scale)``: its parameters are measured from the location of
    the baseline, in units of its scale. Networks that predict all targets at once call :meth:`direct`, and
    draw paths with :meth:`noise`. Networks that predict one target after another call :meth:`teacher_forced`
    in training, and in sampling :meth:`encode` once, then :meth:`at` and :meth:`observe` for each target.

    A subclass implements the half that fits it. Without a fit it must forecast too: windows may be too few.

    Attributes
    ----------
    carries_errors : bool
        Whether errors of earlier targets are carried on to later ones, in order of time. What the network
        adds to the location is then counted as a part of the forecast: counted as an error, it would come
        again at the next step, and pile up along a path.
    from_context : bool
        Whether the forecasts of all targets come straight from the context.
    shown : bool
        Whether a network that predicts one target after another sees location and scale.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.base import Baseline
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.core.temporal import last_seen
    >>> class LastValue(Baseline):
    ...     def direct(self, window):
    ...         seen = last_seen(window.observed, 0)[:, window.n_context - 1 : window.n_context]
    ...         last = window.y.gather(1, seen)  # what was not observed is 0
    ...         return last.expand(-1, window.n_targets, -1), torch.ones_like(last)
    >>> w = Window(torch.arange(4.0)[None], torch.tensor([[[1.0], [3.0], [0.0], [0.0]]]), n_context=2)
    >>> LastValue().direct(w)[0].flatten().tolist()
    [3.0, 3.0]
    """

    from_context = False
    carries_errors = False
    shown = False

    def fit_closed_form(self, window: Window, embargo: int = 0) -> None:
        """Fit to training windows, without gradients. By default there is nothing to fit.

        Parameters
        ----------
        window : Window
            Scaled training windows of one column, one after another as they were cut.
        embargo : int, default=0
            How many windows after a window share targets with it: they are purged from cross-validation.
        """

    # ---- all targets at once -----------------------------------------------------------------------------

    def direct(self, window: Window) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T 1"]]:
        """Location and scale of all targets, given the context."""
        raise NotImplementedError(f"{type(self).__name__} forecasts one target after another only")

    def noise(self, window: Window, n_paths: int, generator: torch.Generator | None = None) -> PathNoise:
        """Standard Gaussian noise that the steps of a path share as errors do; None if independent."""
        return None

    # ---- one target after another ------------------------------------------------------------------------

    def teacher_forced(
        self, window: Window, neighbourhood: Neighbourhood | None, added: Tensor | None = None
    ) -> Placed:
        """Location and scale of every target, given the true earlier ones.

        Parameters
        ----------
        window : Window
            Scaled windows.
        neighbourhood : Neighbourhood or None
            True values at the neighbours of all targets; None of a network that finds no neighbours.
        added : Tensor of shape (B, T, D), optional
            What the network adds to the locations, for a baseline that carries errors on.
        """
        raise NotImplementedError(f"{type(self).__name__} forecasts all targets at once only")

    def encode(self, window: Window, n_paths: int) -> Any:
        """All that no target's value can change; what sampling keeps between steps."""
        raise NotImplementedError(f"{type(self).__name__} forecasts all targets at once only")

    def at(self, state: Any, step: int, drawn: Tensor, neighbourhood: Neighbourhood | None) -> Placed:
        """Location and scale of target number ``step`` on every path.

        Parameters
        ----------
        state : object
            From :meth:`encode`.
        step : int
            Number of the target.
        drawn : Tensor of shape (B, S, K, D)
            Values of the K targets before it, less what the network added to their locations if this
            baseline carries errors on.
        neighbourhood : Neighbourhood or None
            Values at the neighbours of the target, on every path; None of a network that finds no neighbours.
        """
        raise NotImplementedError(f"{type(self).__name__} forecasts all targets at once only")

    def scale_at(self, state: Any, step: int) -> Tensor | float:
        """Scale of target number ``step``, for a baseline that carries errors on."""
        return 1.0

    def scales(self, window: Window) -> Tensor | float:
        """Scale of all targets, for a baseline that carries errors on."""
        return 1.0

    def observe(self, state: Any, step: int, y: Float[Tensor, "B S D"]) -> None:
        """Take the value of target number ``step`` on every path into the state."""


def given(neighbourhood: Neighbourhood | None, baseline: Baseline) -> Neighbourhood:
    """The neighbourhood, for a baseline that cannot do without.

    Raises
    ------
    ValueError
        If the network finds no neighbours.
    """
    if neighbourhood is None:
        raise ValueError(f"{type(baseline).__name__} needs a network that finds neighbours: a Taylorformer")
    return neighbourhood


def only_time(window: Window, baseline: Baseline) -> Float[Tensor, "B N"]:
    """Times, for a baseline that knows one coordinate.

    Raises
    ------
    ValueError
        If there are two.
    """
    t = window.times
    if t.shape[-1] != 1:
        raise ValueError(f"times have {t.shape[-1]} coordinates, but {type(baseline).__name__} takes one")
    return t[..., 0]
