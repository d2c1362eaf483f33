"""The one data type of the package: a window of a time series, split into context and targets.

Shape legend, used in ``core`` and ``models`` (that of series is in ``baselines``)::

    B  windows in a batch          S  sample paths of a window
    N  points of a window          L  context points (the first of the N)
    T  targets (the rest)          D  columns of y ("dim_y")
    X  time coordinates (1 or 2)   C  covariates
    H  attention heads             E  width of one head
    K  neighbours or mixture components
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def holds_everywhere(mask: Bool[Tensor, "*shape"], wait: bool = False) -> bool:
    """Whether a mask is True throughout, so that a shortcut may be taken.

    The answer is False where it would cost too much. To read a value from an accelerator is to wait for all
    that it has been asked to do. While a graph is traced (``torch.export``, ``torch.compile``), and on the
    meta device, there are no values.

    Parameters
    ----------
    mask : bool Tensor
        Any shape.
    wait : bool, default=False
        Whether to wait for an accelerator: the shortcut is worth it.

    Returns
    -------
    bool
        True if every entry is known to be True.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import holds_everywhere
    >>> holds_everywhere(torch.ones(2, 3) > 0), holds_everywhere(torch.ones(2, device="meta") > 0)
    (True, False)
    """
    unknown = mask.is_meta or torch.compiler.is_compiling()
    return not unknown and (wait or mask.device.type == "cpu") and bool(mask.all())


@dataclass(frozen=True)
class Window:
    """A batch of windows: times, values, what was observed, covariates.

    The first ``n_context`` points are the context, the rest are targets in the order in which they are
    predicted. Missing values and padding are one thing: points that were not observed. Times are real
    numbers, so irregular sampling needs nothing more.

    Parameters
    ----------
    t : Tensor of shape (B, N) or (B, N, X)
        Times, already scaled (see :func:`~taylorformer_forecast.core.scaling.scale_window`).
    y : Tensor of shape (B, N, D)
        Values. Entries that were not observed are set to zero, whatever they held.
    observed : bool Tensor of shape (B, N, D), optional
        Which values were observed; by default those that are not NaN.
    covariates : Tensor of shape (B, N, C), optional
        Features of every point, targets included: zero there if only the past is known.
    series : int Tensor of shape (B, N), optional
        Number of the series that each point belongs to; -1 where it is none of those of the fit.
    n_context : int
        Number of context points L.

    Raises
    ------
    ValueError
        If the shapes disagree or ``n_context`` does not fit.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> y = torch.tensor([1.0, float("nan"), 3.0, 4.0, 5.0])
    >>> w = Window(torch.arange(5.0)[None], y[None, :, None], n_context=3)
    >>> w.n_targets, w.observed[0, :, 0].tolist()
    (2, [True, False, True, True, True])
    """

    t: Float[Tensor, "B N *X"]
    y: Float[Tensor, "B N D"]
    observed: Bool[Tensor, "B N D"] = None  # type: ignore[assignment]  # never None once it is made
    covariates: Float[Tensor, "B N C"] | None = None
    series: Int[Tensor, "B N"] | None = None
    n_context: int = field(kw_only=True)

    def __post_init__(self) -> None:
        """Check shapes; zero what was not observed so that it cannot reach any computation."""
        if self.y.ndim != 3 or self.t.ndim not in (2, 3) or self.t.shape[:2] != self.y.shape[:2]:
            raise ValueError(
                f"a window needs t of shape (B, N) or (B, N, X) and y of shape (B, N, D), "
                f"got {tuple(self.t.shape)} and {tuple(self.y.shape)}"
            )
        if not 0 <= self.n_context <= self.y.shape[1]:
            raise ValueError(f"n_context={self.n_context} but the window has {self.y.shape[1]} points")
        observed = ~torch.isnan(self.y) if self.observed is None else self.observed
        if observed.shape != self.y.shape:
            raise ValueError(f"observed has shape {tuple(observed.shape)}, y {tuple(self.y.shape)}")
        if self.covariates is not None and self.covariates.shape[:2] != self.y.shape[:2]:
            raise ValueError(
                f"covariates have shape {tuple(self.covariates.shape)}, y has {tuple(self.y.shape)}"
            )
        if self.series is not None and self.series.shape != self.y.shape[:2]:
            raise ValueError(f"series has shape {tuple(self.series.shape)}, y {tuple(self.y.shape)}")
        object.__setattr__(self, "observed", observed)
        object.__setattr__(self, "y", torch.where(observed, self.y, 0.0))

    @property
    def times(self) -> Float[Tensor, "B N X"]:
        """Times with an explicit coordinate axis."""
        return self.t[..., None] if self.t.ndim == 2 else self.t

    @property
    def n_targets(self) -> int:
        """Number of targets T."""
        return self.y.shape[1] - self.n_context

    @property
    def visible(self) -> Bool[Tensor, "B N"]:
        """Points at which any column was observed: those that others may attend."""
        return self.observed.any(-1)

    @property
    def targets(self) -> tuple[Float[Tensor, "B T D"], Bool[Tensor, "B T D"]]:
        """Values of the targets and which of them were observed."""
        return self.y[:, self.n_context :], self.observed[:, self.n_context :]

    def attention_mask(self) -> Bool[Tensor, "#B N N"]:
        """Which keys (last axis) each point may attend.

        Context points attend the whole context, themselves included; a target attends the context and the
        targets strictly before it, never itself. Points that were not observed are attended by nobody.
        The batch axis has length 1 where every window has the same mask.
        """
        position = torch.arange(self.y.shape[1], device=self.y.device)
        horizon = torch.clamp(position, min=self.n_context)  # first position that must not be seen
        mask = (position[None, :] < horizon[:, None])[None]
        visible = self.visible
        return mask if holds_everywhere(visible) else mask & visible[:, None, :]

    def to_draw(self) -> Window:
        """The window as sampling sees it: targets hold zero and count as observed.

        A target is attended only after it has been drawn.
        """
        is_target = torch.arange(self.y.shape[1], device=self.y.device)[:, None] >= self.n_context
        return replace(self, y=self.y.masked_fill(is_target, 0.0), observed=self.observed | is_target)

    def map(self, function: Callable[[Tensor], Tensor]) -> Window:
        """Apply a function to every tensor of the window."""
        parts = (self.t, self.y, self.observed, self.covariates, self.series)
        return Window(*(None if p is None else function(p) for p in parts), n_context=self.n_context)  # type: ignore[arg-type]

    def to(self, device: torch.device | str) -> Window:
        """Return the window on another device.

        On the way to a CUDA device the CPU does not wait for the copies, which page-locked memory allows.
        """
        if torch.device(device).type == "cuda" and self.y.device.type == "cpu":
            # Page-locked memory takes no value that stands for several.
            return self.map(lambda value: value.contiguous().pin_memory().to(device, non_blocking=True))
        return self.map(lambda value: value.to(device))

    def points(self, index: slice) -> Window:
        """Some of the points of every window; the context keeps its length."""
        return self.map(lambda value: value[:, index])

    def hide_covariates(self, n_columns: int) -> Window:
        """Zero the last ``n_columns`` covariates at the targets: those that are known of the past only."""
        if n_columns == 0 or self.covariates is None:
            return self
        covariates = self.covariates.clone()
        covariates[:, self.n_context :, -n_columns:] = 0.0
        return replace(self, covariates=covariates)

    def reorder(self, order: Int[Tensor, "B N"]) -> Window:
        """Points of every window in another order: times, values, masks and covariates move together."""

        def take(value: Tensor) -> Tensor:
            return value.gather(1, order.view(*order.shape, *[1] * (value.ndim - 2)).expand_as(value))

        return self.map(take)

    def reorder_targets(self, order: Int[Tensor, "B T"]) -> Window:
        """Targets of every window in another order, the context as it is."""
        context = torch.arange(self.n_context, device=order.device).expand(order.shape[0], -1)
        return self.reorder(torch.cat([context, order + self.n_context], 1))

    def rows(self, index: slice | Tensor) -> Window:
        """Some of the windows of the batch."""
        return self.map(lambda value: value[index])


def join_columns(window: Window) -> Window:
    """Turn the columns of every window into series of one set of points.

    Parameters
    ----------
    window : Window
        Windows of N points and D columns.

    Returns
    -------
    Window
        Windows of N * D points and one column, those of one time after another in the order of the columns,
        with the number of the column as ``series``.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window, join_columns
    >>> y = torch.tensor([[[1.0, float("nan")], [3.0, 4.0]]])
    >>> points = join_columns(Window(torch.tensor([[0.0, 1.0]]), y, n_context=1))
    >>> points.n_context, points.t.tolist(), points.series.tolist()
    (2, [[0.0, 0.0, 1.0, 1.0]], [[0, 1, 0, 1]])
    >>> points.observed[0, :, 0].tolist()
    [True, False, True, True]
    """
    n_windows, n, n_columns = window.y.shape
    series = torch.arange(n_columns, device=window.y.device).repeat(n).expand(n_windows, -1)
    return Window(
        window.t.repeat_interleave(n_columns, 1),
        window.y.reshape(n_windows, -1, 1),
        window.observed.reshape(n_windows, -1, 1),
        None if window.covariates is None else window.covariates.repeat_interleave(n_columns, 1),
        series,
        n_context=window.n_context * n_columns,
    )


def evenly(n: int, most: int) -> Int[Tensor, " k"]:
    """At most so many numbers of ``range(n)``, evenly spaced from the first to the last.

    Examples
    --------
    >>> from taylorformer_forecast.core.window import evenly
    >>> evenly(3, 5).tolist(), evenly(10, 4).tolist()
    ([0, 1, 2], [0, 3, 6, 9])
    """
    return torch.linspace(0, n - 1, min(n, most)).round().long().clamp_max(n - 1)  # n may be rounded up


def shuffle_targets(
    window: Window, n_permutations: int = 1, generator: torch.Generator | None = None
) -> Window:
    """Put the targets of every window in random order.

    Times, values, masks and covariates move together, by one permutation for each window, so that the
    likelihood of the shuffled window is the same joint likelihood in another order (Taylorformer paper,
    section 3: training for consistency).

    Parameters
    ----------
    window : Window
        Windows to shuffle.
    n_permutations : int, default=1
        How many shuffled copies of the batch to stack on the batch axis.
    generator : torch.Generator, optional
        Source of randomness; the global one by default.

    Returns
    -------
    Window
        ``n_permutations * B`` windows.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window, shuffle_targets
    >>> w = Window(torch.arange(6.0)[None], torch.arange(6.0)[None, :, None], n_context=2)
    >>> s = shuffle_targets(w, generator=torch.Generator().manual_seed(0))
    >>> bool((s.t == s.y[..., 0]).all()), s.t[0, :2].tolist()
    (True, [0.0, 1.0])
    """
    device, rows = window.y.device, n_permutations * window.y.shape[0]
    order = torch.argsort(torch.rand(rows, window.n_targets, generator=generator, device=device), dim=1)
    copies = window.map(lambda value: value.repeat(n_permutations, *[1] * (value.ndim - 1)))
    return copies.reorder_targets(order)
