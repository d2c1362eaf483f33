"""UNN: one set of points of several series, smoothed by attention whose weights know times and series only.

Every point is predicted from the points before it, of its own series and of all others, in any order. The
weights are those of Taylorformer's last layer over times (MHA-X): they depend on where points lie and on
which series they belong to, as the weights of a multi-output Gaussian process do, and not on values. A small
perceptron makes a distribution from the smoothed values and the point's own time and series.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.core.attention.kernels import FUSED_WIDTH
from taylorformer_forecast.core.attention.layer import MultiHeadAttention
from taylorformer_forecast.core.attention.registry import Attention, find_kernel
from taylorformer_forecast.core.encoding import TimeEncoding
from taylorformer_forecast.core.families import Family, find_family
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.window import Window, join_columns
from taylorformer_forecast.models.blocks import Block, head_width


@dataclass(frozen=True)
class UNNState:
    """What sampling keeps between steps.

    Parameters
    ----------
    skip : Tensor of shape (B, T, 2 * E)
        Embeddings of times and of series of the targets.
    weights : Tensor of shape (B, H, T, T)
        Attention weights between targets.
    known : Tensor of shape (B, H, T, V)
        Weighted sums of all that no target's value can change.
    paths : Tensor of shape (B, S, T)
        Values of the targets of every path, written as they are drawn.
    """

    skip: Float[Tensor, "B T F"]
    weights: Float[Tensor, "B H T T"]
    known: Float[Tensor, "B H T V"]
    paths: Float[Tensor, "B S T"]


class UNN(ForecastNet):
    """The UNN network.

    An autoregressive likelihood over any set of points of K series. Windows have one column and say which
    series each point belongs to; of windows with K columns, the columns become the series
    (:func:`~taylorformer_forecast.core.window.join_columns`).

    Parameters
    ----------
    n_series : int, default=2
        Number of series K.
    dim_t, dim_covariates : int
        Time coordinates (1 or 2) and covariates.
    d_model : int, default=32
        Width of the embeddings.
    n_heads : int, default=8
        Attention heads of the last layer, each a smoother of its own. Layers before it have fewer.
    n_layers : int, default=2
        Attention layers. Those before the last one turn times and series into queries and keys.
    dim_hidden : int, optional
        Width of the perceptron, ``2 * d_model`` by default.
    dim_encoding : int, default=32
        Width of the positional encoding of each time coordinate; 0 takes times as numbers.
    dropout : float, default=0.0
        Dropout in the perceptron and in the layers before the last.
    distribution : str or Family, default="normal"
        Name in :data:`~taylorformer_forecast.core.families.FAMILIES`, or a family: the predictive
        distribution of a point given all earlier ones.
    scale : {"exp", "bounded", "softplus"}, default="softplus"
        How the unconstrained scale becomes positive.
    history_indicator : bool, default=True
        Whether it is seen which series earlier points belong to. Without, only the series of the point that
        is predicted is known, and differences between series cannot be learnt.
    rank : int, default=4
        Rank of the part of the scores that depends on the two series only, a matrix over series for each
        head: the counterpart of the coregionalisation matrix of a Gaussian process.
    null : bool, default=True
        Whether every point also attends a key and value that are learnt, so that the first point has a
        distribution too.
    residual : bool, default=True
        Whether locations are measured from a linear combination of the heads' averages of y, which is learnt.
        Without, they are what the perceptron says.
    decay : bool, default=True
        Whether the scores of each head fall with the distance in time, at a rate that is learnt: the
        counterpart of the length of a stationary kernel.
    time_min, time_max : float
        Range of times of the positional encoding
        (:class:`~taylorformer_forecast.core.encoding.TimeEncoding`).
    attention : str or Kernel, default="full"
        ``"full"``, ``"local"`` or a kernel that gives weights for a table of scores
        (:meth:`~taylorformer_forecast.core.attention.kernels.Kernel.weigh`). With local attention a point
        attends those shortly before it, of all series, by their order and not by their time.

    Attributes
    ----------
    joins_columns : bool
        True: columns of a window are series of one set of points.

    Raises
    ------
    ValueError
        If an argument is unknown or does not fit the others.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.core.protocol import negative_log_likelihood
    >>> from taylorformer_forecast.models.unn import UNN
    >>> net = UNN(n_series=3, d_model=16, n_heads=2)
    >>> w = Window(torch.linspace(-1, 1, 12).repeat(5, 1), torch.randn(5, 12, 3), n_context=8)
    >>> net(w).mean.shape
    torch.Size([5, 4, 3])
    >>> points = Window(w.t, torch.randn(5, 12, 1), series=torch.randint(3, (5, 12)), n_context=0)
    >>> negative_log_likelihood(net(points), points).backward()
    """

    joins_columns = True

    def __init__(
        self,
        n_series: int = 2,
        dim_t: int = 1,
        dim_covariates: int = 0,
        d_model: int = 32,
        n_heads: int = 8,
        n_layers: int = 2,
        dim_hidden: int | None = None,
        dim_encoding: int = 32,
        dropout: float = 0.0,
        distribution: str | Family = "normal",
        scale: str = "softplus",
        history_indicator: bool = True,
        rank: int = 4,
        null: bool = True,
        residual: bool = True,
        decay: bool = True,
        time_min: float = 0.1,
        time_max: float = 1.0,
        attention: Attention = "full",
    ) -> None:
        for name, value, least in (("n_series", n_series, 1), ("n_layers", n_layers, 1), ("rank", rank, 0)):
            if value < least:
                raise ValueError(f"{name}={value}, but it must be at least {least}")
        kernel = find_kernel(attention, needs="weigh")
        super().__init__(find_family(distribution, scale))
        self.n_series, self.history_indicator = n_series, history_indicator
        self.encoding = TimeEncoding(dim_encoding, time_min, time_max) if dim_encoding else nn.Identity()
        self.embed_x = nn.Linear(dim_t * (dim_encoding or 1) + dim_covariates, d_model)
        self.embed_series = nn.Embedding(n_series, d_model)

        def layer(n_heads: int, dim_value: int | None = None) -> MultiHeadAttention:
            head_dim = head_width(d_model, n_heads)
            return MultiHeadAttention(d_model, d_model, n_heads, head_dim, dim_value, kernel)

        # Heads of the layers before the last smooth no values: narrow ones cost time and bring nothing.
        inner = math.gcd(n_heads, max(1, d_model // FUSED_WIDTH))
        self.blocks = nn.ModuleList(
            Block(layer(inner), d_model, d_model, dropout) for _ in range(n_layers - 1)
        )
        dim_value = 1 + d_model * history_indicator
        self.attention = layer(n_heads, dim_value)
        self.rank = rank if history_indicator else 0
        self.row, self.column = (
            nn.Linear(d_model, n_heads * self.rank, bias=False) if self.rank else None for _ in range(2)
        )
        # From heads that see all of the window to some that see little more than the point's own time.
        rates = torch.logspace(0, math.log10(20 / time_min), n_heads) / time_max
        self.log_rate = nn.Parameter(rates.log()) if decay else None
        self.null_score = nn.Parameter(torch.zeros(n_heads)) if null else None
        self.null_value = nn.Parameter(torch.zeros(dim_value)) if null else None
        self.mix = nn.Parameter(torch.zeros(n_heads)) if residual else None
        width = 2 * d_model if dim_hidden is None else dim_hidden
        self.hidden = nn.Linear(3 * d_model, width)
        self.dropout = nn.Dropout(dropout)
        self.to_params = nn.Linear(width, self.head.n_params)

    def points(self, window: Window) -> Window:
        """Points of several series; columns of a window that does not name the series are joined."""
        if window.series is not None:
            return window
        if window.y.shape[2] != self.n_series:
            raise ValueError(
                f"the window has {window.y.shape[2]} columns, but the network was built for "
                f"{self.n_series} series: give windows of one column that name the series of each point"
            )
        return join_columns(window)

    def smoother(
        self, points: Window
    ) -> tuple[Float[Tensor, "B H T M"], Float[Tensor, "B M V"], Float[Tensor, "B T F"]]:
        """All that is known without the values of the targets.

        Returns
        -------
        weights, values, skip : Tensor
            Attention weights of the targets (B, H, T, M), what they average (B, M, V), the value of y first,
            and embeddings that reach the perceptron directly (B, T, 2 * E). M is N, with null N + 1: that
            comes first.
        """
        n, mask = points.n_context, points.attention_mask()
        x = self.encoding(points.times)
        x = self.embed_x(x if points.covariates is None else torch.cat([x, points.covariates], -1))
        series = self.embed_series(points.series)
        h = x + series if self.history_indicator else x
        for block in self.blocks:
            h = block(h, h, mask)
        key, values, mask = h, points.y, mask[:, n:]
        if self.history_indicator:
            values = torch.cat([values, series], -1)
        bias = h.new_zeros(1, self.attention.n_heads, 1, points.y.shape[1])
        if self.row is not None and self.column is not None:
            rows, columns = self.attention.split(self.row(series)), self.attention.split(self.column(series))
            bias = bias + rows[:, :, n:] @ columns.mT
        if self.log_rate is not None:
            # Not by way of inner products, which would round small distances.
            exact = "donot_use_mm_for_euclid_dist"
            times = points.times.to(torch.promote_types(points.times.dtype, torch.float32))  # no 16 bits
            distance = torch.cdist(times[:, n:], times, compute_mode=exact).to(points.times)
            bias = bias - self.log_rate.exp()[:, None, None] * distance[:, None]
        if self.null_score is not None and self.null_value is not None:
            # A key of zeros: the score is the bias, and the rest of a point's scores cancels in the softmax.
            key = F.pad(key, (0, 0, 1, 0))
            null = self.null_score.view(1, -1, 1, 1).expand(*bias.shape[:3], 1)
            bias = torch.cat([null, bias], -1)
            values = torch.cat([self.null_value.expand(h.shape[0], 1, -1), values], 1)
            mask = F.pad(mask, (1, 0), value=True)
        skip = torch.cat([x, series], -1)[:, n:]
        weights = self.attention.weights(h[:, n:], key, mask, bias, n_global=key.shape[1] - h.shape[1])
        return weights, values, skip

    def predictive(
        self, average: Float[Tensor, "B H M V"], skip: Float[Tensor, "B M2 F"], n_columns: int = 1
    ) -> Distribution:
        """Distributions of points from their smoothed values, ``n_columns`` of them in a row."""
        attended = self.attention.project_average(average)
        features = torch.cat([attended, skip.expand(-1, attended.shape[1], -1)], -1)
        raw = self.to_params(self.dropout(F.leaky_relu(self.hidden(features), 0.01)))
        loc = raw.new_zeros(raw.shape[:-1])
        if self.mix is not None:
            loc = torch.einsum("bhm,h->bm", average[..., 0], self.mix)
        return self.calibration(self.head, *(part.unflatten(1, (-1, n_columns)) for part in (raw, loc)))

    # ---- teacher-forced ------------------------------------------------------------------------------

    def forward(self, window: Window) -> Distribution:
        """Distribution of every target given the context and the true earlier targets.

        Parameters
        ----------
        window : Window
            Scaled windows of points that name their series, or of K columns. A context may be empty.

        Returns
        -------
        Distribution
            Batch shape (B, T, D). Columns of one target are conditioned on those before them.

        Raises
        ------
        ValueError
            If there are other columns than series.
        """
        weights, values, skip = self.smoother(self.points(window))
        return self.predictive(weights @ values[:, None], skip, window.y.shape[2])

    # ---- sampling ------------------------------------------------------------------------------------

    def encode(self, window: Window, n_paths: int) -> UNNState:
        """All weights, which no value can change, and the sums over the context; see ``ForecastNet``."""
        points = self.points(window).to_draw()
        weights, values, skip = self.smoother(points)
        between = weights[..., weights.shape[-1] - points.n_targets :]
        paths = values.new_zeros(len(values), n_paths, points.n_targets)
        return UNNState(skip, between, weights @ values[:, None], paths)

    def query(self, state: UNNState, step: int) -> Distribution:
        """Distribution of target number ``step`` on every path, its own value unseen; see ``ForecastNet``."""
        drawn = state.weights[:, :, step, :step] @ state.paths[:, :, :step].mT  # (B, H, S)
        known = state.known[:, :, step, None]
        average = torch.cat(
            [known[..., :1] + drawn[..., None], known[..., 1:].expand(-1, -1, drawn.shape[2], -1)], -1
        )
        return self.predictive(average, state.skip[:, step, None])

    def observe(self, state: UNNState, step: int, y: Float[Tensor, "B S 1"]) -> UNNState:
        """Take note of the value of target number ``step`` on every path; see ``ForecastNet``."""
        state.paths[:, :, step] = y[..., 0]
        return state
