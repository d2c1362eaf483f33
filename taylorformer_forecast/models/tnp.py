"""TNP-A, the autoregressive transformer neural process.

Source: "Transformer Neural Processes: Uncertainty-Aware Meta Learning via Sequence Modeling" (Nguyen and
Grover, 2022). Every target is there twice: as a token that shows its value, which later targets attend, and
as a token that hides it, from which it is predicted. Nothing attends a hidden token, so that keys and values
are those of the context and the shown targets only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.baselines.base import Baseline
from taylorformer_forecast.core.attention.cache import PointCache
from taylorformer_forecast.core.attention.layer import MultiHeadAttention
from taylorformer_forecast.core.attention.registry import Attention, find_kernel
from taylorformer_forecast.core.families import Family, find_family
from taylorformer_forecast.core.window import Window, holds_everywhere
from taylorformer_forecast.defaults import TNP_EMBEDDING_DEPTH
from taylorformer_forecast.models.blocks import Block, head_width
from taylorformer_forecast.models.stepwise import BaselineState, StepwiseNet


def shown_and_hidden(window: Window) -> Bool[Tensor, "#B M N"]:
    """Which points each token may attend.

    Parameters
    ----------
    window : Window
        Windows of N points, T of them targets.

    Returns
    -------
    bool Tensor of shape (B or 1, N + T, N)
        First the rows of tokens that show their value: those of the context see the whole context, a target
        sees the context, the targets before it and itself. Then the rows of tokens that hide it: the context
        and the targets before. Points that were not observed are attended by nobody but themselves.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.tnp import shown_and_hidden
    >>> w = Window(torch.arange(3.0)[None], torch.zeros(1, 3, 1), n_context=1)
    >>> shown_and_hidden(w)[0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 0]]
    """
    mask = window.attention_mask()
    itself = torch.eye(mask.shape[-1], dtype=torch.bool, device=mask.device)
    return torch.cat([mask | itself, mask[:, window.n_context :]], 1)


@dataclass(frozen=True)
class TNPAState:
    """What sampling keeps between steps.

    Parameters
    ----------
    x : Tensor of shape (B, T, F)
        Times and covariates of the targets.
    caches : list of PointCache
        Shown tokens that each layer attends.
    baseline : BaselineState
        The baseline.
    drawn : Tensor of shape (B, S, T, D)
        Values of the targets of every path, written as they are drawn.
    """

    x: Float[Tensor, "B T F"]
    caches: list[PointCache]
    baseline: BaselineState
    drawn: Float[Tensor, "B S T D"]


class TNPA(StepwiseNet):
    """The TNP-A network.

    An autoregressive likelihood over any set of times. There is no positional encoding: times enter as
    numbers, so that with full attention the order of the context means nothing, and that of the targets only
    says which of them are known when one is predicted.

    Parameters
    ----------
    dim_y, dim_t, dim_covariates : int
        Columns of y, time coordinates (1 or 2) and covariates.
    d_model : int, default=64
        Width of the tokens.
    n_heads : int, default=4
        Attention heads.
    n_layers : int, default=6
        Layers.
    dim_feedforward : int, optional
        Width inside the feed-forward parts and the last map, ``2 * d_model`` by default.
    dropout : float, default=0.0
        Dropout in the feed-forward parts.
    distribution : str or Family, default="normal"
        Name in :data:`~taylorformer_forecast.core.families.FAMILIES`, or a family: the predictive
        distribution of a point given all earlier ones.
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How the unconstrained scale becomes positive. "bounded" is the paper's choice for images.
    value_noise : float, default=0.0
        Standard deviation of noise on the values that targets show in training. The published code adds 0.05
        to images.
    baseline : Baseline, optional
        What targets are predicted around (:mod:`taylorformer_forecast.baselines`), in order of time; zero by
        default, as published.
    weight : float, default=1.0
        Part of what the network adds to the baseline that is taken after training.
    attention : str or Kernel, default="full"
        ``"full"``, ``"local"`` or a kernel with a one-query form
        (:class:`~taylorformer_forecast.core.attention.kernels.Kernel`). With local attention the order of the
        context matters: a point sees those before it, by position, within a window that follows from the
        number of points, context and targets together.

    Raises
    ------
    ValueError
        If an argument is unknown or does not fit the others.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.core.protocol import negative_log_likelihood
    >>> from taylorformer_forecast.models.tnp import TNPA
    >>> net = TNPA(d_model=16, n_heads=2, n_layers=2)
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
        d_model: int = 64,
        n_heads: int = 4,
        n_layers: int = 6,
        dim_feedforward: int | None = None,
        dropout: float = 0.0,
        distribution: str | Family = "normal",
        scale: str = "exp",
        value_noise: float = 0.0,
        baseline: Baseline | None = None,
        weight: float = 1.0,
        attention: Attention = "full",
    ) -> None:
        if n_layers < 1:
            raise ValueError(f"n_layers={n_layers}, but the network needs at least 1")
        head_dim = head_width(d_model, n_heads)
        kernel = find_kernel(attention, needs="one_query")
        super().__init__(find_family(distribution, scale), baseline, weight)
        self.dim_y, self.value_noise = dim_y, value_noise
        width = 2 * d_model if dim_feedforward is None else dim_feedforward
        # Columns can be missing one by one: of several, each says whether it was observed.
        dim_token = dim_t + dim_covariates + dim_y * (2 if dim_y > 1 else 1)
        layers: list[nn.Module] = [nn.Linear(dim_token, d_model)]
        for _ in range(TNP_EMBEDDING_DEPTH - 1):
            layers += [nn.ReLU(), nn.Linear(d_model, d_model)]
        self.embedding = nn.Sequential(*layers)

        def block() -> Block:
            layer = MultiHeadAttention(d_model, d_model, n_heads, head_dim, attention=kernel)
            return Block(layer, d_model, d_model, dropout, width, nn.ReLU)

        self.blocks = nn.ModuleList(block() for _ in range(n_layers))
        self.to_params = nn.Sequential(
            nn.Linear(d_model, width), nn.ReLU(), nn.Linear(width, dim_y * self.head.n_params)
        )

    @property
    def layers(self) -> list[Block]:
        """Layers in order."""
        return cast("list[Block]", list(self.blocks))

    def locations(self, window: Window) -> Float[Tensor, "B N F"]:
        """Times and covariates of all points."""
        parts = [window.times] if window.covariates is None else [window.times, window.covariates]
        return torch.cat(parts, -1)

    def shown(
        self, x: Float[Tensor, "B M F"], y: Float[Tensor, "B M D"], observed: Bool[Tensor, "B M D"]
    ) -> Float[Tensor, "B M O"]:
        """Tokens of points that show their values."""
        flags = [observed.to(x.dtype)] if self.dim_y > 1 else []
        return self.embedding(torch.cat([x, y, *flags], -1))

    def hidden(self, x: Float[Tensor, "B M F"]) -> Float[Tensor, "B M O"]:
        """Tokens of points that hide their values: as of a zero that was not observed."""
        nothing = x.new_zeros(*x.shape[:2], self.dim_y)
        return self.shown(x, nothing, nothing.bool())

    def unconstrained(self, h: Float[Tensor, "B M O"]) -> Float[Tensor, "B M D P"]:
        """Parameters of points from their hidden tokens."""
        return rearrange(self.to_params(h), "... (p d) -> ... d p", d=self.dim_y)

    # ---- teacher-forced ------------------------------------------------------------------------------

    def forward(self, window: Window) -> Distribution:
        """Distribution of every target given the context and the true earlier ones; see ``ForecastNet``."""
        x, y, mask = self.locations(window), window.y, shown_and_hidden(window)
        if self.training and self.value_noise:
            is_target = torch.arange(y.shape[1], device=y.device)[:, None] >= window.n_context
            y = y + self.value_noise * torch.randn_like(y) * (window.observed & is_target)
        n = y.shape[1]
        key, hidden = self.shown(x, y, window.observed), self.hidden(x[:, window.n_context :])
        for block in self.layers[:-1]:
            query, sizes = torch.cat([key, hidden], 1), (n, window.n_targets)
            attended = block.attention(query, key, mask, groups=sizes)
            key, hidden = block.finish(attended, query).split(sizes, 1)
        raw = self.unconstrained(self.layers[-1](hidden, key, mask[:, n:]))
        return self.around_truth(window, lambda loc, scale: raw)

    # ---- sampling ------------------------------------------------------------------------------------

    def encode(self, window: Window, n_paths: int) -> TNPAState:
        """Pass the context through the layers; see ``ForecastNet``."""
        n = window.n_context
        x, mask, visible = self.locations(window), shown_and_hidden(window), window.visible[:, :n]
        attended = None if holds_everywhere(visible) else visible
        token = self.shown(x[:, :n], window.y[:, :n], window.observed[:, :n])
        caches: list[PointCache] = []
        for block in self.layers:
            caches.append(PointCache.allocate(token, attended, n_paths, window.n_targets))
            if len(caches) < len(self.blocks):
                token = block(token, token, mask[:, :n, :n], window.y.shape[1])
        drawn = x.new_zeros(len(x), n_paths, window.n_targets, self.dim_y)
        return TNPAState(x[:, n:], caches, self.encode_baseline(window.to_draw(), n_paths), drawn)

    def query(self, state: TNPAState, step: int) -> Distribution:
        """Distribution of target number ``step`` on every path, its own value unseen; see ``ForecastNet``."""
        n_paths = state.caches[0].paths.shape[1]
        h = self.hidden(state.x[:, step, None]).expand(-1, n_paths, -1)
        for block, cache in zip(self.layers, state.caches, strict=True):
            h = block.finish(block.attention.step(h, cache, step), h)
        raw = self.unconstrained(h)
        return self.around_path(state.baseline, step, state.drawn[:, :, :step], lambda loc, scale: raw)

    def observe(self, state: TNPAState, step: int, y: Float[Tensor, "B S D"]) -> TNPAState:
        """Take note of the value of target number ``step`` on every path; see ``ForecastNet``."""
        x = state.x[:, step, None].expand(-1, y.shape[1], -1)
        h = self.shown(x, y, torch.ones_like(y, dtype=torch.bool))
        for block, cache in zip(self.layers, state.caches, strict=True):
            cache.write(step, h)
            if block is not self.layers[-1]:  # what attends the last layer's keys are queries
                h = block.finish(block.attention.step(h, cache, step, own=True), h)
        state.drawn[:, :, step] = y
        self.observe_baseline(state.baseline, step, y)
        return state
