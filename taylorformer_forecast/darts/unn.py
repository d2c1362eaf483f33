"""Joint forecasts of several components for darts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from darts import TimeSeries

from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.engine.lengths import warn_of_large_steps, windows_of_step
from taylorformer_forecast.models.specs import UNN


class UNNModule(ForecastModule):
    """Joint forecasts of several components for darts."""

    spec = UNN


class UNNModel(BaseForecastModel):
    """UNN: related components forecast jointly, each conditioned on all others, with any likelihood.

    The components of a series go into one window as a set of points (time, component, value), and every point
    is predicted from those before it, whichever component they belong to. Sample paths are joint over
    components and steps. The other models of the package forecast each component from its own past.

    Every component is centred and scaled by itself. Missing target values (NaN) are simply not in the set.
    Several series are windows of their own, with the same components.

    Time and memory of a window grow with the square of the components, and of its length. Without
    ``batch_size``, steps of more than ten components therefore have fewer windows: 8 of twenty, 1 of 41 or
    more. A warning says where steps are large nevertheless. Many components take other models, or several
    fits of related ones. ``fit_from_dataset`` has 32 windows, of however many components.

    References
    ----------
    .. [1] Nivron, Parthipan, Wischik: "Taylorformer: Probabilistic Modelling for Random Processes including
       Time Series", https://arxiv.org/abs/2305.19141. The network is its layer with weights from times and
       values from y, over several series.

    Examples
    --------
    >>> from darts.utils.timeseries_generation import sine_timeseries
    >>> from taylorformer_forecast.darts import UNNModel
    >>> series = sine_timeseries(length=60, value_frequency=1 / 12).astype("float32")
    >>> series = series.stack(2.0 * series + 1.0)
    >>> quiet = {"accelerator": "cpu", "enable_progress_bar": False}
    >>> model = UNNModel(24, 12, n_epochs=1, random_state=0, pl_trainer_kwargs=quiet)
    >>> model.fit(series).predict(18, num_samples=50).all_values().shape
    (18, 2, 50)
    """

    _module_class = UNNModule

    def __init__(
        self,
        input_chunk_length: int | tuple[int, int],
        output_chunk_length: int,
        output_chunk_shift: int = 0,
        d_model: int = 32,
        n_heads: int = 8,
        n_layers: int = 2,
        dropout: float = 0.1,
        history_indicator: bool = True,
        attention: Attention = "full",
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: str | float | Sequence[float] | None = "auto",
        use_reversible_instance_norm: bool | dict[str, Any] = True,
        lr: float = 3e-3,
        n_epochs: int | None = None,
        use_static_covariates: bool = True,
        **kwargs: Any,
    ) -> None:
        self._set_up(locals())
        self._usual_batch = None if "batch_size" in kwargs else self.batch_size

    def scale_batch_size(self, *args: Any, **kwargs: Any) -> Any:
        """Look for a batch size; see darts. It counts as written."""
        self._usual_batch = None
        return super().scale_batch_size(*args, **kwargs)

    def _choose(self, series: Sequence[TimeSeries], options: Mapping[str, Any]) -> None:
        """Choose also how many windows a step has, unless the user wrote or searched for it."""
        super()._choose(series, options)
        n_columns = series[0].n_components
        if self.batch_size == self._usual_batch:
            self.batch_size = windows_of_step(n_columns, self.batch_size)
        lengths = {
            "input_chunk_length": self.input_chunk_length,
            "output_chunk_length": self.output_chunk_length,
        }
        remedy = "take LAMModel, or fit related components together"
        warn_of_large_steps(n_columns, self.batch_size, lengths, remedy)
