"""Taylorformer: LocalTaylor features, an attention stream over times, one over times and values.

Source: "Taylorformer: Probabilistic Modelling for Random Processes including Time Series", Nivron,
Parthipan and Wischik. The stream over times (X) ends in a layer whose values are y, so that its weights
depend on times alone, as the weights of a Gaussian process do; the stream over both (XY) sees values, with
those of the targets hidden from their own queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.baselines.base import Baseline, Neighbourhood
from taylorformer_forecast.baselines.neighbour import NeighbourBaseline
from taylorformer_forecast.core.attention.registry import Attention, find_kernel
from taylorformer_forecast.core.families import Family, find_family
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.published import load_published
from taylorformer_forecast.models.stepwise import BaselineState, StepwiseNet, start_at_baseline
from taylorformer_forecast.models.stream_cache import StreamCache
from taylorformer_forecast.models.streams import Streams


@dataclass(frozen=True)
class TaylorformerState:
    """What sampling keeps between steps.

    Parameters
    ----------
    streams : StreamCache
        Both streams.
    baseline : BaselineState
        The baseline.
    """

    streams: StreamCache
    baseline: BaselineState


class Taylorformer(StepwiseNet):
    """The Taylorformer network.

    An autoregressive likelihood over any set of times: every target is predicted from the context and the
    targets before it, around the value at its nearest earlier neighbour.

    Parameters
    ----------
    dim_y, dim_t, dim_covariates : int
        Columns of y, time coordinates (1 or 2) and covariates.
    distribution : str or Family, default="normal"
        Predictive distribution of a point given all earlier ones: a name in
        :data:`~taylorformer_forecast.core.families.FAMILIES`, or a family.
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How the unconstrained scale becomes positive.
    preset : {"paper", "code"}, default="paper"
        ``"code"`` follows the published code to the bit: slopes divided by the absolute offset, no neighbour
        derivative, scores divided by the square root of the total width, batch statistics of derivatives in
        training. With equal times it leaves a point out of its own neighbours, where the published code shows
        a target its own value. ``"paper"`` follows the text, with its gaps filled.
    taylor_order : {0, 1}, default=0
        Terms of the Taylor expansion in the mean: the neighbour's value, or also its derivative times the
        offset (paper, eq. 8). Order 1 needs the signed derivatives of ``preset="paper"``.
    baseline : Baseline, optional
        What targets are predicted around, in the place of the value at the nearest neighbour
        (:mod:`taylorformer_forecast.baselines`). It is fitted before training (:meth:`fit_closed_form`), and
        training starts from its forecast.
    weight : float, default=1.0
        Part of what the network adds to the baseline that is taken after training
        (:class:`~taylorformer_forecast.core.calibration.Calibration`).
    both_sides : bool, default=False
        Whether a point looks to both sides: it sees the nearest earlier neighbour on each side in time and is
        predicted around the line between them. For gaps and for targets in random order.
    attention : str or Kernel, default="full"
        Attention of the stream over values: ``"full"``, ``"local"`` or a kernel with a one-query form
        (:class:`~taylorformer_forecast.core.attention.kernels.Kernel`). Local attention restricts every point
        to those before it, by position, within a window that follows from the number of points, context and
        targets together. The stream over times always sees all that its mask allows.
    **options
        Sizes and features of the streams: see :class:`~taylorformer_forecast.models.streams.Streams`.

    Raises
    ------
    ValueError
        If an argument is unknown or does not fit the others.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.core.protocol import negative_log_likelihood
    >>> from taylorformer_forecast.models.taylorformer import Taylorformer
    >>> net = Taylorformer(d_model=16, n_heads=2, n_layers=2)
    >>> w = Window(torch.linspace(-1, 1, 12).repeat(3, 1), torch.randn(3, 12, 1), n_context=8)
    >>> net(w).mean.shape
    torch.Size([3, 4, 1])
    >>> negative_log_likelihood(net(w), w).backward()
    """

    def __init__(
        self,
        dim_y: int = 1,
        dim_t: int = 1,
        dim_covariates: int = 0,
        *,
        distribution: str | Family = "normal",
        scale: str = "exp",
        preset: str = "paper",
        taylor_order: int = 0,
        baseline: Baseline | None = None,
        weight: float = 1.0,
        attention: Attention = "full",
        both_sides: bool = False,
        **options: Any,
    ) -> None:
        if preset not in ("paper", "code"):
            raise ValueError(f"preset={preset!r} is neither 'paper' nor 'code'")
        if baseline is not None and preset == "code":
            raise ValueError("preset='code' is the published network: it takes no other baseline")
        if taylor_order not in (0, 1) or (taylor_order == 1 and preset == "code"):
            raise ValueError(f"taylor_order={taylor_order} with preset={preset!r}: 0, or 1 with 'paper'")
        kernel = find_kernel(attention, needs="one_query")
        own = NeighbourBaseline(taylor_order, both_sides) if baseline is None else baseline
        super().__init__(find_family(distribution, scale), own, 1.0 if baseline is None else weight)
        self.dim_y = dim_y
        self.streams = Streams(
            dim_y,
            dim_t,
            dim_covariates,
            self.head.n_params,
            kernel,
            preset=preset,
            both_sides=both_sides,
            shows_baseline=own.shown,
            **options,
        )
        if baseline is not None:
            start_at_baseline(self.streams.to_params)

    @classmethod
    def from_reference(
        cls,
        weights: str | Path | Mapping[str, object],
        num_heads: int | None = None,
        bound_std: bool = False,
        time_max: float | None = None,
        dropout: float = 0.05,
    ) -> Taylorformer:
        """Build the ``preset="code"`` network from weights of the published code.

        Parameters
        ----------
        weights : str, Path or mapping of str to array
            A checkpoint of the published TensorFlow code, such as ``"check_run_0/ckpt-37"``, which is read
            without TensorFlow; or its arrays by name, kernels stored (in, out). Sizes are read from the
            arrays.
        num_heads : int, optional
            Attention heads, the one size that does not follow from the arrays. The published configurations
            (ETT, exchange) are known by their other sizes.
        bound_std : bool, default=False
            Whether the network was trained with bounded standard deviations.
        time_max : float, optional
            Largest time of the positional encoding; by default 1, or 2 with two time coordinates.
        dropout : float, default=0.05
            Dropout for further training.

        Returns
        -------
        Taylorformer
            The network with these weights, in evaluation mode.

        Raises
        ------
        KeyError
            If an array is missing.
        ValueError
            If there are arrays that the network has not, one has another shape, a file is damaged, or the
            number of heads is not known or does not fit.
        """
        return load_published(cls, weights, num_heads, bound_std, time_max, dropout)

    # ---- teacher-forced ------------------------------------------------------------------------------

    def forward(self, window: Window) -> Distribution:
        """Distribution of every target given the context and the true earlier ones; see ``ForecastNet``."""
        targets = slice(window.n_context, None)
        f, x, xy = self.streams(window, window.attention_mask())
        seen = Neighbourhood(f.found.select(targets), f.near[:, targets], f.slopes[:, targets])
        return self.around_truth(window, partial(self.streams.unconstrained, x, xy), seen)

    # ---- sampling ------------------------------------------------------------------------------------

    def encode(self, window: Window, n_paths: int) -> TaylorformerState:
        """Compute the X stream, the context and the neighbours once; see ``ForecastNet``."""
        window = window.to_draw()
        streams = StreamCache.encode(self.streams, window, n_paths)
        return TaylorformerState(streams, self.encode_baseline(window, n_paths))

    def query(self, state: TaylorformerState, step: int) -> Distribution:
        """Distribution of target number ``step`` on every path, its own value unseen; see ``ForecastNet``."""
        seen, drawn = state.streams.neighbourhood(step), state.streams.drawn(step)
        x, xy = state.streams.query(step, seen)
        unconstrained = partial(self.streams.unconstrained, x, xy)
        return self.around_path(state.baseline, step, drawn, unconstrained, seen)

    def observe(self, state: TaylorformerState, step: int, y: Float[Tensor, "B S D"]) -> TaylorformerState:
        """Take the value of target number ``step`` on every path into the state; see ``ForecastNet``."""
        state.streams.observe(step, y)
        self.observe_baseline(state.baseline, step, y)
        return state
