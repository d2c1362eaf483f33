"""The protocol that every network follows, and the losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.core.calibration import Calibration
from taylorformer_forecast.core.families import Family, family_of
from taylorformer_forecast.core.window import Window

PathNoise: TypeAlias = Float[Tensor, "B S T D"] | None


class ForecastNet(nn.Module):
    """Base of networks that forecast the targets of a window.

    Networks that predict one target after another see earlier targets: ``forward`` is teacher-forced, and
    sampling calls ``encode`` once, then ``query`` and ``observe`` for each target in turn. Networks that
    predict all targets at once derive from :class:`OneShotNet`. What a network is follows from its class:
    callers ask for the attributes below, and never probe.

    Parameters
    ----------
    head : Family
        Family of the predictive distributions.
    baseline : Baseline, optional
        What targets are predicted around (:mod:`taylorformer_forecast.baselines`).
    weight : float, default=1.0
        Part of what the network adds to the baseline that is taken after training.

    Attributes
    ----------
    one_shot : bool
        Whether all targets are predicted at once.
    joins_columns : bool
        Whether the columns of a window are series of one set of points
        (:func:`~taylorformer_forecast.core.window.join_columns`). Such a network scores each column of a
        target given those before it, and sampling goes through the points.
    lr_factor : float
        Factor on the learning rate: small for networks that start from pretrained weights.
    calibration : Calibration
        What is applied to its output after training.
    """

    one_shot: ClassVar[bool] = False
    joins_columns: ClassVar[bool] = False
    lr_factor: ClassVar[float] = 1.0
    head: Family

    def __init__(self, head: Family, baseline: nn.Module | None = None, weight: float = 1.0) -> None:
        super().__init__()
        self.head = head
        self.baseline: Any = baseline
        self.usual_weight = 1.0 if baseline is None else weight  # until it is calibrated
        self.calibration = Calibration()
        self.calibration.set_weight(self.usual_weight, head)

    @property
    def dtype(self) -> torch.dtype:
        """Precision of its weights; float32 without any."""
        return next((p.dtype for p in self.parameters()), torch.float32)

    @property
    def inflates(self) -> bool:
        """Whether its forecasts may be inflated after training.

        So it is for a network that draws paths step by step around a baseline from the context.
        """
        return not self.one_shot and self.baseline is not None and self.baseline.from_context

    def forward(self, window: Window) -> Distribution:
        """Distribution of every target given the context and the true earlier targets.

        Parameters
        ----------
        window : Window
            Scaled windows with at least one context point.

        Returns
        -------
        Distribution
            Batch shape (B, T, D).
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def loss(self, window: Window) -> Float[Tensor, ""]:
        """What training minimises, but in darts: the mean score of the observed targets."""
        return training_loss(self(window), window, self.head)

    def encode(self, window: Window, n_paths: int) -> Any:
        """Process the context once for all paths and steps: all that no target's value can change.

        Parameters
        ----------
        window : Window
            Scaled windows; values of the targets are ignored.
        n_paths : int
            Paths S to be drawn of each window.

        Returns
        -------
        object
            State for :meth:`query` and :meth:`observe`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no encode")

    def query(self, state: Any, step: int) -> Distribution:
        """Distribution of target number ``step`` on every path, its own value unseen.

        Parameters
        ----------
        state : object
            From :meth:`encode`, with all earlier targets observed.
        step : int
            Number of the target.

        Returns
        -------
        Distribution
            Batch shape (B, S, D).
        """
        raise NotImplementedError(f"{type(self).__name__} has no query")

    def observe(self, state: Any, step: int, y: Float[Tensor, "B S D"]) -> Any:
        """Take the value of target number ``step`` on every path into the state."""
        raise NotImplementedError(f"{type(self).__name__} has no observe")

    def fit_closed_form(self, window: Window, embargo: int = 0) -> None:
        """Fit what has a closed form, before training.

        Parameters
        ----------
        window : Window
            Scaled training windows, one after another as they were cut.
        embargo : int, default=0
            How many windows after a window share targets with it.
        """
        if self.baseline is not None:
            self.baseline.fit_closed_form(window, embargo)

    def noise(self, window: Window, n_paths: int, generator: torch.Generator | None = None) -> PathNoise:
        """Standard Gaussian noise that the steps of a path follow, for networks that predict all at once.

        Parameters
        ----------
        window : Window
            Scaled windows.
        n_paths : int
            Paths S of each window.
        generator : torch.Generator, optional
            Source of randomness; the global one by default.

        Returns
        -------
        Tensor or None
            Shape (B, S, T, D); None if steps are independent of each other.
        """
        return None if self.baseline is None else self.baseline.noise(window, n_paths, generator)


@dataclass(frozen=True)
class OneShotState:
    """What sampling keeps of a network that predicts all targets at once.

    Parameters
    ----------
    parts : tuple of Tensor of shape (B, T, ...)
        Unconstrained parameters, locations and scales of all targets. No drawn value changes them.
    n_paths : int
        Paths S.
    """

    parts: tuple[Tensor, ...]
    n_paths: int


class OneShotNet(ForecastNet):
    """Base of networks that predict all targets at once, each on its own given the context.

    A subclass implements :meth:`parts`.
    """

    one_shot = True

    def parts(self, window: Window) -> tuple[Tensor, ...]:
        """Unconstrained parameters (B, T, D, P), locations and maybe scales (B, T, D), of any T from 1."""
        raise NotImplementedError(f"{type(self).__name__} has no parts")

    def forward(self, window: Window) -> Distribution:
        """Distribution of every target given the context.

        Parameters
        ----------
        window : Window
            Scaled windows; the values of the targets are ignored.

        Returns
        -------
        Distribution
            Batch shape (B, T, D).
        """
        return self.calibration(self.head, *self._parts(window))

    def encode(self, window: Window, n_paths: int) -> OneShotState:
        """Predict all targets; see :meth:`forward`."""
        return OneShotState(self._parts(window), n_paths)

    def _parts(self, window: Window) -> tuple[Tensor, ...]:
        """Check shapes; one scale may serve all targets."""
        parts, shape = self.parts(window), window.targets[0].shape
        wanted = [(*shape, self.head.n_params), tuple(shape)]
        found = [tuple(part.shape) for part in parts[:2]]
        if found != wanted:
            raise ValueError(f"{type(self).__name__}.parts has shapes {found}, but {wanted} are needed")
        return (*parts[:2], *(scale.expand(shape) for scale in parts[2:]))

    def query(self, state: OneShotState, step: int) -> Distribution:
        """Distribution of target number ``step``, the same on every path, batch shape (B, S, D)."""
        parts = (part[:, step, None].expand(-1, state.n_paths, *part.shape[2:]) for part in state.parts)
        return self.calibration(self.head, *parts)

    def observe(self, state: OneShotState, step: int, y: Float[Tensor, "B S D"]) -> OneShotState:
        """Nothing: no prediction depends on the value of a target."""
        return state


def training_loss(
    distribution: Distribution, window: Window, family: Family | None = None
) -> Float[Tensor, ""]:
    """Mean score of the observed targets: the loss that every model is trained with.

    The score is the loss of the distribution's family: the negative log-density, for quantiles the pinball
    loss, for points the squared or absolute error.

    Parameters
    ----------
    distribution : Distribution
        What the network returned for the window, batch shape (B, T, D).
    window : Window
        The window.
    family : Family, optional
        Whose loss it is; by default the family that serves distributions of this class.

    Returns
    -------
    Tensor
        A scalar, per observed value. Targets that were not observed do not count.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.families.point import Point
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.core.protocol import training_loss
    >>> w = Window(torch.arange(3.0)[None], torch.zeros(1, 3, 1), n_context=1)
    >>> training_loss(Point(torch.full((1, 2, 1), 3.0), power=2), w).item()
    9.0
    """
    family = family_of(distribution) if family is None else family
    return _mean_over_observed(family.loss(distribution, window.targets[0]), window)


def negative_log_likelihood(distribution: Distribution, window: Window) -> Float[Tensor, ""]:
    """Mean negative log-density of the observed targets.

    Parameters
    ----------
    distribution : Distribution
        What the network returned for the window, batch shape (B, T, D).
    window : Window
        The window.

    Returns
    -------
    Tensor
        A scalar, in nats per observed value. Targets that were not observed do not count.

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.core.protocol import negative_log_likelihood
    >>> w = Window(torch.arange(3.0)[None], torch.zeros(1, 3, 1), n_context=1)
    >>> round(negative_log_likelihood(Normal(torch.zeros(1, 2, 1), 1.0), w).item(), 4)
    0.9189
    """
    return _mean_over_observed(-distribution.log_prob(window.targets[0]), window)


def _mean_over_observed(score: Float[Tensor, "B T D"], window: Window) -> Float[Tensor, ""]:
    """Mean over the observed targets; zero if there are none."""
    observed = window.targets[1]
    return torch.where(observed, score, 0.0).sum() / observed.sum().clamp_min(1)
