"""Lightning modules of the darts models: windows from darts' batches, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from darts.utils.data.torch_datasets.utils import (
    ModuleStage,
    PLModuleInput,
    PLModuleOutput,
    TorchInferenceBatch,
)
from einops import rearrange
from torch import Tensor

from taylorformer_forecast.core.families import components
from taylorformer_forecast.core.families.base import POINT_MASS
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.sampling import PathSamples
from taylorformer_forecast.darts._batch_effects import BatchEffects
from taylorformer_forecast.darts._covariates import check_gaps
from taylorformer_forecast.darts._dataset import samples_by_weight
from taylorformer_forecast.darts._dropout import use_monte_carlo_dropout
from taylorformer_forecast.darts._effects import Additions
from taylorformer_forecast.darts._joint import JointWindows, joint_components
from taylorformer_forecast.darts._losses import ObservedLoss
from taylorformer_forecast.darts._state import calibrated_state, evaluating, repeatable
from taylorformer_forecast.darts._tails import PathsFromTheLastValue
from taylorformer_forecast.darts.likelihoods import family_of_likelihood
from taylorformer_forecast.defaults import GRADIENT_CLIP, N_CALIBRATION_WINDOWS, N_PARAMETER_PATHS
from taylorformer_forecast.engine.calibration import inflate_by_paths
from taylorformer_forecast.engine.explanation import baseline_alone, with_part
from taylorformer_forecast.engine.lightning import make_optimizer, time_spent
from taylorformer_forecast.engine.windows import fitting_windows
from taylorformer_forecast.models.spec import ModelSpec, Task


class ForecastModule(JointWindows, PathsFromTheLastValue, ObservedLoss):
    """Base of the package's darts modules; a subclass names its model.

    Every component of a series is a window of its own: what is missing in one leaves the others alone, and
    one network serves any number of components. Linear forecasts of a component may be its own, that of its
    place, where a series has as many components as those of the fit. Where the network joins columns, all
    components share one window. Times are the positions on the series' grid.

    Parameters
    ----------
    n_past, n_future, n_static, n_phases : int
        Past, future and static covariates; future ones that are phases of seasons and calendar cycles.
    past_flags, future_flags : sequence of int
        Covariates with missing values: the network sees where they are known.
    units : dict
        Mean and standard deviation of every covariate, for "past", "future" and "static" ones.
    floor : sequence of float
        Smallest standard deviation, for each component, to divide a window by.
    level : float
        Mean size of the values, the unit of likelihoods of counts and positive values.
    own_optimizer : bool
        Whether to train with AdamW, warm-up and cosine instead of ``optimizer_cls``.
    joint : bool
        Whether samples of all components are drawn together.
    lr : float
        Peak learning rate of that.
    network : dict
        Arguments of the network.
    effects : mapping, optional
        Arguments of the :class:`~taylorformer_forecast.darts._effects.Additions` of future covariates.
    outlier_seasons : sequence of float, optional
        Lengths of the seasons by which outliers are told; without them, these stay.
    **kwargs
        See darts' ``PLForecastingModule``.
    """

    spec: ModelSpec

    def __init__(
        self,
        n_past: int,
        n_future: int,
        n_static: int,
        n_phases: int,
        past_flags: Sequence[int],
        future_flags: Sequence[int],
        units: Mapping[str, Sequence[tuple[float, float]]],
        floor: Sequence[float],
        level: float,
        own_optimizer: bool,
        joint: bool,
        lr: float,
        network: dict[str, Any],
        effects: Mapping[str, Any] | None = None,
        outlier_seasons: Sequence[float] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.outlier_seasons = outlier_seasons
        self.statistics: Any = None  # that forecast without the network
        self.n_past, self.n_future, self.n_static, self.n_phases = n_past, n_future, n_static, n_phases
        self.past_flags, self.future_flags = list(past_flags), list(future_flags)
        self.n_past_columns = n_past + len(self.past_flags)
        self.own_optimizer, self.lr = own_optimizer, lr
        for kind, width in (("past", n_past), ("future", n_future), ("static", n_static)):
            pairs = units.get(kind) or [(0.0, 1.0)] * width
            self.register_buffer(f"{kind}_units", torch.tensor(pairs, dtype=torch.float64).view(width, 2))
        self.register_buffer("floor", torch.tensor(list(floor), dtype=torch.float64), persistent=False)
        self.joint = joint_components(joint, len(self.floor))
        self.head = family_of_likelihood(self.likelihood, level)
        self.normalise = bool(self.use_reversible_instance_norm) and self.head.has_location
        self.additions = Additions(**effects) if effects and self.normalise else None
        # Windows G of a series, and components W of a window.
        self.sizes = {"g": 1} if self.spec.shares_windows else {"w": 1}
        n_static = n_static * len(self.floor) if self.spec.shares_windows else n_static
        n_covariates = n_static + n_future + len(self.future_flags) + self.n_past_columns
        added = self.additions is not None and not self.additions.of_demand
        alone = n_past + self.n_static + (0 if added else n_future - n_phases)
        task = Task(
            self.input_chunk_length,
            self.output_chunk_length or 1,
            self.output_chunk_shift,
            n_covariates,
            len(self.floor),
            self.head,
            self.spec.weight_of(alone > 0, self.likelihood is not None),
        )
        self.net = self.build_network(task, network)
        self.fitted: Tensor
        self.register_buffer("fitted", torch.tensor(False))
        self.calibrated = True  # not so from the start of a training until the width of forecasts is settled
        use_monte_carlo_dropout(self.net)

    def build_network(self, task: Task, network: dict[str, Any]) -> ForecastNet:
        """Return the network for windows of one column, or of all components."""
        return self.spec.build(task, **network)

    def without_network(self) -> ForecastModule:
        """Return a copy that forecasts by its baseline."""
        return with_part(self, "net", baseline_alone(self.net))

    def on_train_start(self) -> None:
        """Fit what has a closed-form solution before the first step."""
        super().on_train_start()
        self.calibrated = False
        loader = self.trainer.train_dataloader
        self.fit_closed_form(loader.dataset, loader.collate_fn)

    def on_train_epoch_end(self) -> None:
        """Settle the width of forecasts after the last epoch, before it is saved."""
        super().on_train_epoch_end()
        trainer = self.trainer
        over = trainer.should_stop or trainer.current_epoch + 1 == trainer.max_epochs
        if over or trainer.global_step == trainer.max_steps:
            self.calibrate(trainer.train_dataloader.dataset, trainer.train_dataloader.collate_fn)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Save a module whose width of forecasts is settled, also in the midst of training."""
        super().on_save_checkpoint(checkpoint)
        if self.fitted and not self.calibrated:
            checkpoint["state_dict"] = calibrated_state(self)

    def fit_closed_form(self, dataset: Sequence[Any], collate: Callable[..., Any]) -> None:
        """Fit what has a closed-form solution to windows of the training set, once."""
        if self.fitted:
            return
        self.fitted.fill_(True)
        n_targets = self.output_chunk_length or 1
        n_points = len(self.floor) * (self.input_chunk_length + n_targets)
        samples, embargo = samples_by_weight(dataset, fitting_windows(n_points), n_targets)
        self.net.fit_closed_form(self.training_windows(samples, collate), embargo)

    def calibrate(self, dataset: Sequence[Any], collate: Callable[..., Any]) -> None:
        """Settle the width of forecasts by windows of the training set, once after every training."""
        if self.calibrated:
            return
        self.calibrated = True
        samples, _ = samples_by_weight(dataset, N_CALIBRATION_WINDOWS, self.output_chunk_length or 1)
        window = self.training_windows(samples, collate)
        with evaluating(self.net):
            inflate_by_paths(self.net, window)
        self.fit_joint(dataset, collate)

    def forward(self, x_in: PLModuleInput) -> PLModuleOutput:
        """Raw likelihood parameters of the next chunk, (B, T, C, P), given true values before each target.

        Predictions, for which these are not known, are those of :meth:`predict_step`.
        """
        if x_in.stage is ModuleStage.PREDICT:
            raise NotImplementedError("without true values there is nothing to condition on: call predict")
        n = self.output_chunk_length or 1
        effects = self.effects(x_in, n)
        window, scale = self.scaled(self.window(x_in, n, effects=effects))
        parts = components(self.net(window))
        loc = scale.loc if effects is None else scale.loc + self.of_windows(effects.added[:, -n:])
        parts = parts.affine(loc[..., None], scale.scale[..., None])
        return PLModuleOutput(prediction=self.by_series(self.head.to_raw(parts)))

    def predict_step(
        self, batch: TorchInferenceBatch, batch_idx: int, dataloader_idx: int | None = None
    ) -> tuple[Tensor, Any, Any]:
        """Predict ``pred_n`` steps of every series: (S, B, n, C), or (1, B, n, C * P) for parameters.

        The context is encoded once for all samples, also where windows come from historical forecasts.
        """
        batch, between = self.without_between(batch)
        n, batch = self.pred_n, self.open_past(batch)
        effects = self.effects(batch, n)
        near = self.near(batch, effects)
        future = near.historic_future_covariates, between, near.future_covariates
        check_gaps(future, self.future_flags, "future_covariates")
        check_gaps((near.past_covariates, near.future_past_covariates), self.past_flags, "past_covariates")
        parameters = self.predict_likelihood_parameters
        n_paths = N_PARAMETER_PATHS if parameters else self.pred_num_samples
        with repeatable(parameters):
            samples = self.sample(near, n, n_paths, self.pred_roll_size or n, effects, between)
        predicted = self.predicted(samples, batch, effects)
        if self.joint is not None and not parameters:
            predicted = self.joint.reorder(predicted)
        unknown = self.unknown(batch)[:, None]
        unknown = unknown.repeat_interleave(predicted.shape[-1] // unknown.shape[-1], -1)
        if not bool((predicted.isfinite() | unknown).all()):
            given = self.n_past + self.n_future + self.n_static > self.n_phases
            ask = "Scale the covariates (darts' Scaler does), ask" if given else "Ask"
            raise RuntimeError(
                f"the sample paths run away: they are not finite. {ask} for fewer steps, or train longer"
            )
        predicted = predicted.masked_fill(unknown, torch.nan)
        return predicted.to(batch.past_target.dtype), batch.series_schema, batch.pred_time

    def predicted(
        self, samples: PathSamples, batch: TorchInferenceBatch, effects: BatchEffects | None = None
    ) -> Tensor:
        """Samples (S, B, n, C) of a batch, or parameters (1, B, n, C * P), with effects of covariates."""
        if effects is not None:
            loc, closed = (
                self.of_windows(one[:, -self.pred_n :])[:, None] for one in (effects.added, effects.closed)
            )
            point = POINT_MASS if self.predict_likelihood_parameters else 0.0
            samples = samples.affine(loc, torch.where(closed, point, 1.0))
        if self.predict_likelihood_parameters:
            raw = self.by_series(self.head.marginal(samples.conditionals, samples.paths))
            return self.likelihood.predict_likelihood_parameters(raw)[None]
        paths = self.head.to_data(samples.paths)
        return rearrange(paths, "(b g) s n w -> s b n (g w)", b=len(batch.past_target))

    def configure_optimizers(self) -> Any:
        """AdamW with warm-up and cosine, unless an optimiser or scheduler was asked for."""
        if not self.own_optimizer:
            return super().configure_optimizers()
        steps = int(min(self.trainer.estimated_stepping_batches, 2**31))
        optimizer, schedule = make_optimizer(
            self.net, self.lr * self.net.lr_factor, steps, spent=time_spent(self)
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        """Clip as the trainer was asked to; without that, our own optimiser clips the norm at 1."""
        if self.own_optimizer and gradient_clip_val is None:
            gradient_clip_val = GRADIENT_CLIP
        self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
