"""Networks that predict one target after another, around a baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.baselines.base import Baseline, Neighbourhood, Placed
from taylorformer_forecast.core.families import Family
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.window import Window

Unconstrained = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class BaselineState:
    """What sampling keeps of a baseline between steps.

    Parameters
    ----------
    inner : object
        What the baseline itself keeps.
    added : Tensor of shape (B, S, T, D), optional
        What the network has added to its locations on every path, if it carries errors on.
    """

    inner: Any
    added: Tensor | None


class StepwiseNet(ForecastNet):
    """Base of networks that predict one target after another.

    A subclass computes unconstrained parameters; where they are measured from is the same for all:
    :meth:`around_truth` in training, :meth:`around_path` in sampling.

    Parameters
    ----------
    head, baseline, weight
        See :class:`~taylorformer_forecast.core.protocol.ForecastNet`.
    """

    def __init__(self, head: Family, baseline: Baseline | None = None, weight: float = 1.0) -> None:
        super().__init__(head, baseline, weight)
        # Steps from one true value to the next are learnt from covariates where levels are not: if all that
        # the network adds is taken, it belongs to the errors that are carried on.
        self.counts_added = baseline is not None and baseline.carries_errors and weight < 1.0

    def around_truth(
        self, window: Window, unconstrained: Unconstrained, seen: Neighbourhood | None = None
    ) -> Distribution:
        """Distribution of every target, given the true earlier ones.

        Parameters
        ----------
        window : Window
            Scaled windows.
        unconstrained : callable
            From location and scale of the baseline, None where they are not shown, to parameters
            (B, T, D, P).
        seen : Neighbourhood, optional
            True values at the neighbours of all targets, for baselines that need them.
        """

        def place(baseline: Baseline, raw: Tensor | None) -> Placed:
            added = None if raw is None else self.calibration.added(self.head, raw, baseline.scales(window))
            return baseline.teacher_forced(window, seen, added)

        return self._around(unconstrained, place)

    def _around(
        self,
        unconstrained: Unconstrained,
        place: Callable[[Baseline, Tensor | None], Placed],
    ) -> Distribution:
        """Distribution around the baseline; ``place`` takes parameters of which it counts what they add."""
        if self.baseline is None:
            raw = unconstrained(None, None)
            return self.calibration(self.head, raw, raw.new_zeros(raw.shape[:-1]))
        if self.baseline.shown:
            loc, scale = place(self.baseline, None)
            return self.calibration(self.head, unconstrained(loc, scale), loc, scale)
        raw = unconstrained(None, None)
        return self.calibration(self.head, raw, *place(self.baseline, raw if self.counts_added else None))

    def encode_baseline(self, window: Window, n_paths: int) -> BaselineState:
        """Pass the context through the baseline, and make room for what the network adds."""
        shape = (len(window.y), n_paths, window.n_targets, window.y.shape[2])
        inner = None if self.baseline is None else self.baseline.encode(window, n_paths)
        return BaselineState(inner, window.y.new_zeros(shape) if self.counts_added else None)

    def around_path(
        self,
        state: BaselineState,
        step: int,
        drawn: Float[Tensor, "B S K D"],
        unconstrained: Unconstrained,
        seen: Neighbourhood | None = None,
    ) -> Distribution:
        """Distribution of one target on every path, its own value unseen.

        Parameters
        ----------
        state : BaselineState
            From :meth:`encode_baseline`.
        step : int
            Number of the target.
        drawn : Tensor of shape (B, S, K, D)
            Values of the targets before it.
        unconstrained : callable
            As for :meth:`around_truth`, parameters (B, S, D, P).
        seen : Neighbourhood, optional
            Values at the neighbours of the target.
        """

        def place(baseline: Baseline, raw: Tensor | None) -> Placed:
            before = drawn
            if raw is not None and state.added is not None:
                before = drawn - state.added[:, :, :step]
                state.added[:, :, step] = self.calibration.added(
                    self.head, raw, baseline.scale_at(state.inner, step)
                )
            return baseline.at(state.inner, step, before, seen)

        return self._around(unconstrained, place)

    def observe_baseline(self, state: BaselineState, step: int, y: Float[Tensor, "B S D"]) -> None:
        """Take the value of a target on every path into the state of the baseline."""
        if self.baseline is not None:
            self.baseline.observe(state.inner, step, y)


def place_features(loc: Tensor, scale: Tensor | float) -> Float[Tensor, "*b D2"]:
    """Location and scale of the baseline as a network sees them, two numbers for each column."""
    # Bounded, so that a path that has gone far does not widen what follows without end.
    return torch.cat(
        [3 * torch.tanh(loc / 3), torch.as_tensor(scale, device=loc.device).log().expand_as(loc)], -1
    )


def start_at_baseline(layer: nn.Linear) -> None:
    """Make the last map of a network add nothing, so that training starts from the baseline's forecast."""
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
