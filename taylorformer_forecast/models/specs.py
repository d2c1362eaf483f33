"""The models of the package, for their host classes."""

from __future__ import annotations

from functools import partial
from typing import Any

from taylorformer_forecast.baselines.base import Baseline
from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.linear_path import LinearPathBaseline, LinearTwoSidedBaseline
from taylorformer_forecast.defaults import LARGEST_SLOPE, NETWORK_WEIGHT
from taylorformer_forecast.models.contiformer import ContinuousLayers
from taylorformer_forecast.models.contiformer_paths import build_contiformer
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.spec import ModelSpec, Task
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.models.tnp import TNPA
from taylorformer_forecast.models.unn import UNN as UNNet

__all__ = ["CONTIFORMER", "LAM", "TAYLORFORMER", "TNP", "UNN"]


def _taylorformer(task: Task, linear_path: bool, order: str, **options: Any) -> Taylorformer:
    """Taylorformer.

    Parameters
    ----------
    n_layers : int
        Layers of each of the two streams, at least 2.
    linear_path : bool
        Whether a point is predicted around a linear forecast from the context, fitted in closed form before
        training, and on regular times the errors of that forecast on the path so far. What the network adds
        has weight {weight}; it has weight 1 for point forecasts, and with covariates of the past or static
        ones, which the linear forecast does not see. Without it, and with a distribution that has no
        location, a point is predicted around the value at its nearest earlier neighbour, as in the paper.
    taylor_order : {0, 1}
        Without ``linear_path``: terms of the local Taylor expansion around which a point is predicted.
    n_derivative_neighbours : int
        Neighbours over which derivatives are averaged, for noisy series.
    attention : str or callable
        Attention of the stream over values: "full", "local" (the last ``4 ceil(ln n)`` points, for long
        horizons) or a kernel that also takes one query at a time
        (:class:`~taylorformer_forecast.core.attention.kernels.Kernel`).
    order : {"time", "random"}
        Order of the targets in training. With "random", a part of the targets of many windows comes first, in
        random order: forecasts can then be conditional on known values of the future (:meth:`condition`).
        Without such values they are wider than those of "time", and worse, by 5 to 20 % in quantile loss
        (``examples/benchmark/conditional.py``).
    time_features : "auto", None or tuple of str
        Cycles of the calendar among "day", "week", "month", "year", whose phases the network sees. "auto"
        takes those that the index resolves and that the longest series covers at least twice. Statistical
        forecasts take them by each series, and try one that it covers once. Those of daily series then have
        effects of days of the month, Easter and Christmas, and those of monthly series of the number of
        working days, where the past has any. In darts phases are added to the future covariates, as by
        ``add_encoders``.
    seasonal_periods : "auto", None, number or sequence of numbers
        Further seasons, in steps. "auto" looks for them in the autocorrelation. Statistical forecasts try two
        seasons, those that are given first. To have no season, give ``time_features=None`` too: dates have
        those of the calendar.
    strategy : {"auto", "baseline", "corrected", "pretrained", "zero_shot", "train", "averaged", "finetune"}
        How series are forecast. "baseline": without a network, by a combination of statistical forecasts
        (exponential smoothing, Theta, damped trend, seasonal naive and autoregression; a distribution of
        counts for intermittent demand), weighted by their past errors. It needs regular times. It is fitted
        to the last 1000 values before every forecast, or three cycles of a longer season, whatever the length
        of the context. "corrected": the same, with locations and widths corrected by a network that was
        trained on synthetic series. "pretrained": by another such network, around a linear forecast; only
        that and its calibration are fitted. "zero_shot": by the average of both and of analogues, which are
        what followed similar windows of the past, quantile by quantile, weighted by their past errors: of
        what trains nothing the best on long series. "train": by a new network, trained on the series.
        "averaged": by the average of that, of "corrected" and of analogues; forecasts that are conditional
        on known values are those of the network alone. "finetune": by the pretrained network, trained
        further. "auto" looks at the data alone. Series with fewer observed values than sixteen horizons
        (darts: output chunks) it forecasts as "corrected", also beside longer ones; these as "averaged".
        Where times are irregular, or fewer than a quarter of the steps have values, it takes "train" for all
        series if one is as long, else "pretrained". What
        pretrained networks cannot do is trained: covariates that are not known ahead, static ones, encoders,
        sample weights, another distribution or likelihood, ``order="random"``, ``linear_path=False``. Sizes
        and training parameters are those of a trained network. Likelihood parameters of statistical
        forecasts have the mean, variance and kurtosis of their distributions. :meth:`summary` says what was
        done, and why.
    pretrained : "default" or path
        The pretrained network: the one in the package, trained on synthetic series of many kinds, or a file.
        It predicts all targets from the context, and of calendar cycles and seasons it sees the two shortest.
    """
    if options["taylor_order"] not in (0, 1):
        raise ValueError(f"taylor_order={options['taylor_order']}, but it must be 0 or 1")
    baseline: Baseline | None = None
    if linear_path and task.has_location:
        sizes = task.n_context, task.horizon, task.shift
        if order == "random":
            baseline = LinearTwoSidedBaseline(*sizes)
        else:
            baseline = LinearPathBaseline(*sizes, carries=task.regular)
    return Taylorformer(
        dim_covariates=task.n_covariates,
        distribution=task.family,
        derivative_clip=LARGEST_SLOPE * task.n_context,  # slopes are per context length
        baseline=baseline,
        weight=task.weight,
        both_sides=order == "random",
        **options,
    )


TAYLORFORMER = ModelSpec(
    "Taylorformer",
    partial(
        _taylorformer,
        d_model=32,
        n_heads=2,
        n_layers=2,
        dropout=0.1,
        linear_path=True,
        taylor_order=0,
        n_derivative_neighbours=1,
        attention="full",
        order="time",
    ),
    weight=NETWORK_WEIGHT,
    max_steps=150,
    longest_context=336,
)


def _lam(task: Task, preset: str, **options: Any) -> LAMTransformer:
    """LAM transformer.

    Parameters
    ----------
    d_model : int
        Width of the network; of ``preset="modern"`` only, as are the heads.
    n_layers : int
        Encoder layers, and decoder layers of ``preset="faithful"``.
    attention : str or callable
        Attention kernel: a name in :data:`~taylorformer_forecast.core.attention.registry.KERNELS`, or a
        kernel.
    preset : {"modern", "faithful"}
        "faithful" is the architecture of the paper, trained there by squared errors; see
        :class:`~taylorformer_forecast.models.lam.LAMTransformer`. Its variables are a column of the series,
        the phases of seasons and the covariates.
    """
    baseline = None
    if task.has_location and preset == "modern":
        baseline = LinearBaseline(task.n_context, task.horizon)
    return LAMTransformer(
        task.n_context,
        task.horizon,
        dim_covariates=task.n_covariates,
        distribution=task.family,
        preset=preset,
        baseline=baseline,
        weight=task.weight,
        **options,
    )


LAM = ModelSpec(
    "LAM transformer",
    partial(_lam, d_model=32, n_heads=2, n_layers=2, dropout=0.0, attention="local", preset="modern"),
    usual_context=336,
    longest_context=336,
    longest_horizon=720,
    regular=True,
)


def _contiformer(task: Task, joint: bool | None, **options: Any) -> ContinuousLayers:
    """ContiFormer.

    Parameters
    ----------
    n_layers : int
        Layers; targets are queries of the last one.
    joint : bool
        Whether paths are drawn step by step, which needs linear dynamics or none: by default, where it can
        be. With True paths of several series are joint, too, as with ``joint`` of the other models.
    dynamics : {"linear", "mlp", "none"}
        Equation of keys and values: relaxation with learnt rates, solved in closed form; a network of tanh
        units, solved step by step, which is an order of magnitude slower; or none.
    solver : str
        Solver of the equation; see
        :class:`~taylorformer_forecast.core.continuous.attention.ContinuousAttention`. Linear dynamics need
        none.
    attention : {"full", "local"}
        "local" attends the last ``4 ceil(ln n)`` observed points. Steps are then predicted at once: sums
        along paths are over all points. Kernels are refused, as scores here are averages over time.
    """
    return build_contiformer(
        joint,
        dim_covariates=task.n_covariates,
        distribution=task.family,
        linear=(task.n_context, task.horizon, task.shift) if task.has_location else None,
        regular=task.regular,
        weight=task.weight,
        **options,
    )


CONTIFORMER = ModelSpec(
    "ContiFormer",
    partial(
        _contiformer,
        d_model=32,
        n_heads=2,
        n_layers=1,
        dropout=0.1,
        joint=None,
        dynamics="linear",
        solver=None,
        attention="full",
    ),
    max_steps=150,
    longest_context=336,
    num_epochs=40,
    lr=3e-3,
)


def _tnp(task: Task, **options: Any) -> TNPA:
    """TNP-A.

    Parameters
    ----------
    value_noise : float
        Standard deviation of noise on the values that targets show in training, in units of the context's.
    attention : str or callable
        "full", "local" (the last ``4 ceil(ln n)`` points, for long horizons) or a kernel that also takes one
        query at a time (:class:`~taylorformer_forecast.core.attention.kernels.Kernel`).
    """
    return TNPA(dim_covariates=task.n_covariates, distribution=task.family, **options)


TNP = ModelSpec(
    "TNP-A",
    # About as large as the default Taylorformer.
    partial(_tnp, d_model=32, n_heads=2, n_layers=3, dropout=0.0, value_noise=0.0, attention="full"),
    num_epochs=30,
    lr=3e-3,
)


def _unn(task: Task, **options: Any) -> UNNet:
    """UNN.

    Parameters
    ----------
    n_heads : int
        Attention heads, each a smoother of its own.
    n_layers : int
        Attention layers. Those before the last one turn times and columns into queries and keys.
    history_indicator : bool
        Whether the network sees which column earlier values belong to.
    attention : str or callable
        "full", "local" (the last ``4 ceil(ln n)`` points, all columns counted) or a kernel that weighs a
        table of scores (:class:`~taylorformer_forecast.core.attention.kernels.Kernel`), as weights come
        before values.
    """
    return UNNet(
        n_series=task.n_columns, dim_covariates=task.n_covariates, distribution=task.family, **options
    )


UNN = ModelSpec(
    "UNN",
    partial(_unn, d_model=32, n_heads=8, n_layers=2, dropout=0.1, history_indicator=True, attention="full"),
    num_epochs=30,
    lr=3e-3,
    most_points=384,  # time and memory grow with the square of all points in a window
    shares_windows=True,
)
