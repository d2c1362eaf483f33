"""Parameters and notes that all models share, for their docstrings."""

from __future__ import annotations

from taylorformer_forecast.models.documentation import Documented
from taylorformer_forecast.models.spec import ModelSpec


class SharedParameters(Documented):
    """Base of the darts models, as far as their docstrings go.

    Parameters
    ----------
    input_chunk_length : int or (int, int)
        Past steps that a network sees: three seasons, two output chunks and 32 are a good choice, where the
        largest counts. With ``(min, max)`` shorter series are padded.
    output_chunk_length : int
        Future steps of a training window, and of one call of the network: best as many as are forecast.
    output_chunk_shift : int
        Steps between the input and the output chunk.
    dropout : float
        Dropout in training, and in predictions with ``mc_dropout=True``.
    time_features : "auto", None or tuple of str
        Cycles of the calendar among "day", "week", "month", "year" whose phases the network sees, added to
        the future covariates as by ``add_encoders``. "auto" takes those that the index resolves and that the
        longest target series covers at least twice.
    seasonal_periods : "auto", None, number or sequence of numbers
        Further seasons, in steps. "auto" looks for them in the autocorrelation of that series. To have no
        season, give ``time_features=None`` too: dates have those of the calendar.
    use_reversible_instance_norm : bool or dict
        Whether windows are centred and scaled by what was observed of their input chunk. Parameters of
        likelihoods with location and scale, and quantiles, are returned to the units of the data one by one.
        Likelihoods of counts, probabilities or positive values have a natural unit and are never normalised.
    joint : bool
        Whether samples of all components are joint: totals of components then have the right intervals, from
        100 samples or so. How components go together is estimated by ``fit`` from errors of forecasts of the
        past, as a Gaussian copula. It changes which value of a step belongs to which sample, and no marginal
        distribution. By default components are independent of each other.
    lr : float
        Peak learning rate of AdamW with warm-up and cosine, which train unless ``optimizer_cls``,
        ``optimizer_kwargs`` or ``lr_scheduler_cls`` ask for another optimiser.
    n_epochs : int
        Passes over the training windows. By default {max_steps} steps, or {num_epochs} passes if fewer.
    use_static_covariates : bool
        Whether to use static covariates.
    **kwargs
        Arguments of all darts torch models: ``likelihood`` (default :class:`StudentTLikelihood`; with a
        ``loss_fn`` and no likelihood, point forecasts), ``batch_size=32``, ``add_encoders``,
        ``random_state``, ``pl_trainer_kwargs``, ``enable_finetuning``, ``model_name``, ``work_dir``,
        ``save_checkpoints`` and others.

    Notes
    -----
    ``predict_likelihood_parameters=True`` returns, for each step, the parameters of its marginal distribution
    over 200 internal sample paths: mean and variance of location-scale families (quartiles of Cauchy) and
    quantiles are matched, other parameters averaged. Random numbers of the paths are the same at every call.

    Where the input chunk has no value of a component, a network has nothing to forecast it from, and its
    forecast is missing (NaN); with ``strategy="averaged"`` or "zero_shot" it is then the statistical one.
    """

    @classmethod
    def _named_model(cls) -> ModelSpec | None:
        """The model that the class itself names."""
        return getattr(vars(cls).get("_module_class"), "spec", None)
