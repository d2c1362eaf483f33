"""ContiFormer: attention in continuous time over what was observed, asked at any later time.

Source: "ContiFormer: Continuous-Time Transformer for Irregular Time Series Modeling" (Chen et al., NeurIPS
2023), with the closed form of linear dynamics in the place of an equation for every pair of points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from taylorformer_forecast.baselines.base import Baseline
from taylorformer_forecast.core.continuous.attention import ContinuousAttention
from taylorformer_forecast.core.continuous.interpolation import Interpolation, take
from taylorformer_forecast.core.encoding import TimeEncoding
from taylorformer_forecast.core.families import Family, find_family
from taylorformer_forecast.core.protocol import ForecastNet, OneShotNet
from taylorformer_forecast.core.temporal import last_seen
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.blocks import Block, head_width
from taylorformer_forecast.models.stepwise import start_at_baseline


@dataclass(frozen=True)
class Points:
    """Points in order of time: what was observed of the context, copies of its last point, maybe the targets.

    Parameters
    ----------
    t : Tensor of shape (B, L)
        Times.
    visible : bool Tensor of shape (B, L)
        Which points may be attended; the others are copies.
    tokens : Tensor of shape (B, L, F)
        Values, what was observed of them, features of times and covariates.
    features : Tensor of shape (B, L, G)
        The latter alone.
    y : Tensor of shape (B, L, D)
        Values; where a column was not observed, that before it.
    """

    t: Tensor
    visible: Bool[Tensor, "B L"]
    tokens: Tensor
    features: Tensor
    y: Tensor


class ContinuousLayers(ForecastNet):
    """What the direct network and the one for joint paths share: embedding, layers, reference points.

    Parameters
    ----------
    dim_y, dim_covariates, d_model, n_heads, n_layers, dim_encoding, dropout, distribution, scale, baseline
        See :class:`ContiFormer`.
    weight, time_min, time_max, **options
        See :class:`ContiFormer`.
    """

    def __init__(
        self,
        dim_y: int = 1,
        dim_covariates: int = 0,
        d_model: int = 32,
        n_heads: int = 4,
        n_layers: int = 2,
        dim_encoding: int = 16,
        dropout: float = 0.1,
        distribution: str | Family = "studentt",
        scale: str = "exp",
        baseline: Baseline | None = None,
        weight: float = 1.0,
        time_min: float = 0.1,
        time_max: float = 1.0,
        **options: Any,
    ) -> None:
        head_dim = head_width(d_model, n_heads)
        super().__init__(find_family(distribution, scale), baseline, weight)
        self.dim_y = dim_y
        self.encoding = TimeEncoding(dim_encoding, time_min, time_max)
        self.embed = nn.Linear(2 * dim_y + dim_encoding + dim_covariates, d_model)
        self.target = nn.Linear(dim_encoding + dim_covariates, d_model, bias=False)

        def block() -> Block:
            layer = ContinuousAttention(d_model, n_heads, head_dim, **options)
            return Block(layer, d_model, d_model, dropout, dim_feedforward=4 * d_model)

        self.blocks = nn.ModuleList(block() for _ in range(n_layers))
        self.to_params = nn.Linear(d_model, dim_y * self.head.n_params)
        # Training starts from the baseline, or near the last value with deviation 1.
        nn.init.xavier_uniform_(self.to_params.weight, gain=0.1)
        nn.init.zeros_(self.to_params.bias)
        if baseline is not None:
            start_at_baseline(self.to_params)

    @property
    def layers(self) -> list[Block]:
        """All layers; targets are asked in the last."""
        return cast("list[Block]", list(self.blocks))

    def features(self, window: Window) -> Float[Tensor, "B N G"]:
        """Encoding of all times, and covariates."""
        if window.times.shape[-1] != 1:
            raise ValueError(f"times have {window.times.shape[-1]} coordinates, but time goes one way")
        encoded = self.encoding(window.times)
        return encoded if window.covariates is None else torch.cat([encoded, window.covariates], -1)

    def references(self, window: Window, features: Tensor) -> Points:
        """Observed points of the context, in order of time."""
        n = window.n_context
        t, y, observed, features = (
            v[:, :n] for v in (window.times[..., 0], window.y, window.observed, features)
        )
        visible = window.visible[:, :n]
        order = t.masked_fill(~visible, float("inf")).argsort(dim=1, stable=True)
        count = visible.sum(1, keepdim=True)
        place = torch.arange(n, device=t.device).expand_as(order)
        order = order.gather(1, torch.minimum(place, (count - 1).clamp_min(0)))
        t, features, y = t.gather(1, order), take(features, order), take(y, order)
        observed = take(observed, order)
        before = y.gather(1, last_seen(observed, 0))
        tokens = torch.cat([y, observed.to(y.dtype), features], -1)
        return Points(t, place < count, tokens, features, before)

    def states(
        self, points: Points, mask: Bool[Tensor, "#B #M N"], layers: Sequence[Block]
    ) -> Float[Tensor, "B N I"]:
        """States after some layers; where nothing was observed, they stay as at the point before."""
        held = last_seen(points.visible, 0)
        x = take(self.embed(points.tokens), held)
        for layer in layers:
            x = take(layer.finish(layer.attention(x, points.t, mask), x), held)
        return x

    def ask(self, window: Window) -> tuple[Float[Tensor, "B T I"], Points]:
        """Hidden states at the times of the targets, which see the context alone, and its points."""
        features = self.features(window)
        r = self.references(window, features)
        *inner, last = self.layers
        mask = r.visible[:, None]
        x = self.states(r, mask, inner)
        at, kind = window.times[:, window.n_context :, 0], last.attention.interpolation
        shift = self.target(
            features[:, window.n_context :] - Interpolation.through(r.t, r.features, kind)(at)
        )
        x_at = Interpolation.through(r.t, x, kind)(at) + shift
        return last.finish(last.attention(x, r.t, mask, at, x_at, shift), x_at), r

    def unconstrained(self, z: Float[Tensor, "*b I"]) -> Float[Tensor, "*b D P"]:
        """Parameters of the family from hidden states."""
        return rearrange(self.to_params(z), "... (p d) -> ... d p", d=self.dim_y)


class ContiFormer(ContinuousLayers, OneShotNet):
    """Direct forecasts of any later time by attention in continuous time.

    The observed points of the context are the reference points of all layers: their keys and values move on
    from their own times. The last layer is asked at the times of the targets, as far ahead as they may be;
    there the network goes on from the last reference point with the features of the target in the place of
    its own. Points that were not observed are left out, so that times may be irregular and values missing.

    The targets are predicted at once and independently of each other: given the context, every time has a
    distribution of its own. For joint paths see
    :class:`~taylorformer_forecast.models.contiformer_paths.ContiFormerPaths`.

    Parameters
    ----------
    dim_y, dim_covariates : int
        Columns D of y and covariates C. Times have one coordinate.
    d_model, n_heads : int
        Width and attention heads.
    n_layers : int, default=2
        Layers, the one that targets are asked in included.
    dim_encoding : int, default=16
        Width of the encoding of times.
    dropout : float, default=0.1
        Dropout in the feed-forward parts.
    distribution : str or Family, default="studentt"
        Name in :data:`~taylorformer_forecast.core.families.FAMILIES`, or a family.
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How the unconstrained scale becomes positive.
    baseline : Baseline, optional
        What locations are measured from (:mod:`taylorformer_forecast.baselines`), in the place of the last
        value. :meth:`fit_closed_form` fits it.
    weight : float, default=1.0
        Part of what the network adds to the baseline that is taken after training.
    time_min, time_max : float
        Shortest time difference and largest time of the encoding, in units of the context's length.
    **options
        ``dynamics``, ``solver``, ``interpolation``, ``value_average``, ``both_sides``, ``window``,
        ``fastest`` and ``attention``, "full" or "local"; see
        :class:`~taylorformer_forecast.core.continuous.attention.ContinuousAttention`.

    Attributes
    ----------
    one_shot : bool
        True: sampling needs one call for all targets.

    Raises
    ------
    ValueError
        If an option is unknown or widths do not fit.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.contiformer import ContiFormer
    >>> net = ContiFormer(d_model=16)
    >>> w = Window(torch.linspace(-1, 1, 12).repeat(3, 1), torch.randn(3, 12, 1), n_context=8)
    >>> net(w).mean.shape
    torch.Size([3, 4, 1])
    """

    def parts(self, window: Window) -> tuple[Tensor, ...]:
        """Unconstrained parameters, locations and maybe scales of all targets."""
        z, r = self.ask(window)
        raw = self.unconstrained(z)
        if self.baseline is not None:
            return raw, *self.baseline.direct(window)
        return raw, Interpolation.through(r.t, r.y)(window.times[:, window.n_context :, 0])
