"""ContiFormer for gaps: asked between observed points, around a baseline that carries what is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.baselines.gaussian_process import GaussianProcessBaseline, GaussianProcessState
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.contiformer import ContinuousLayers
from taylorformer_forecast.models.stepwise import StepwiseNet, place_features


@dataclass(frozen=True)
class GapsState:
    """What sampling keeps between steps.

    Parameters
    ----------
    hidden : Tensor of shape (B, T, I)
        Hidden states of all targets. No drawn value changes them.
    n_paths : int
        Paths S.
    process : GaussianProcessState
        The baseline, which keeps what is drawn.
    """

    hidden: Tensor
    n_paths: int
    process: GaussianProcessState


class ContiFormerGaps(ContinuousLayers, StepwiseNet):
    """Missing points between observed ones, in any order and at any times, by attention in continuous time.

    Queries see all observed points, those after them too: their keys and values move backwards in time. What
    the network adds to a target follows from the observed points, and from location and scale of the
    baseline there. The baseline alone takes account of the targets before it: paths are joint through it.

    Parameters
    ----------
    baseline : GaussianProcessBaseline
        What targets are predicted around, given those before them.
    dim_y, d_model, **options
        See :class:`~taylorformer_forecast.models.contiformer.ContiFormer`.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.gaussian_process import GaussianProcessBaseline
    >>> from taylorformer_forecast.core.sampling import sample_paths
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.contiformer_gaps import ContiFormerGaps
    >>> net = ContiFormerGaps(GaussianProcessBaseline(), d_model=8).eval()
    >>> t = torch.tensor([[0.0, 0.1, 0.4, 0.5, 0.3, 0.2]])
    >>> sample_paths(net, Window(t, torch.randn(1, 6, 1), n_context=4), n_paths=5).paths.shape
    torch.Size([1, 5, 2, 1])
    """

    def __init__(
        self, baseline: GaussianProcessBaseline, dim_y: int = 1, d_model: int = 32, **options: Any
    ) -> None:
        super().__init__(dim_y, d_model=d_model, baseline=baseline, both_sides=True, **options)
        self.see_place = nn.Linear(2 * dim_y, d_model, bias=False)

    def parameters_at(
        self, z: Float[Tensor, "*b I"], loc: Float[Tensor, "*b D"], scale: Tensor
    ) -> Float[Tensor, "*b D P"]:
        """Unconstrained parameters from hidden states, and location and scale of the baseline."""
        return self.unconstrained(z + self.see_place(place_features(loc, scale)))

    def forward(self, window: Window) -> Distribution:
        """Distribution of every target given the context and the true earlier targets, (B, T, D)."""
        z, _ = self.ask(window)
        return self.around_truth(window, partial(self.parameters_at, z))

    def encode(self, window: Window, n_paths: int) -> GapsState:
        """Compute what no target's value can change: all that the network sees of the context."""
        window = window.to_draw()
        z, _ = self.ask(window)
        return GapsState(z, n_paths, self.baseline.encode(window, n_paths))

    def query(self, state: GapsState, step: int) -> Distribution:
        """Distribution of target number ``step`` on every path, its own value unseen, (B, S, D)."""
        z = state.hidden[:, step, None].expand(-1, state.n_paths, -1)
        return self._around(partial(self.parameters_at, z), lambda *_: self.baseline.at(state.process, step))

    def observe(self, state: GapsState, step: int, y: Float[Tensor, "B S D"]) -> GapsState:
        """Take the value of target number ``step`` on every path into the state; see ``ForecastNet``."""
        self.baseline.observe(state.process, step, y)
        return state
