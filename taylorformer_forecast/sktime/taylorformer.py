"""The Taylorformer for sktime."""

from __future__ import annotations

from collections.abc import Sequence

from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.engine.pretrained import SharedWeights
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.models.specs import TAYLORFORMER
from taylorformer_forecast.sktime._base import BaseTorchForecaster
from taylorformer_forecast.sktime._conditioning import Conditioning
from taylorformer_forecast.sktime._parameters import TINY, Columns, Options, Periods, Seed, Source


class TaylorformerForecaster(SharedWeights, Conditioning, BaseTorchForecaster):
    """Probabilistic forecasts by statistics and by the Taylorformer, a transformer over any set of times.

    By default regular series of fewer observed values than sixteen horizons are forecast by statistics, which
    a pretrained network corrects; no network is trained. On longer series one is trained, and averaged with
    these; at irregular times a network forecasts alone (``strategy``).

    A network that is trained sees windows of the series (or of all series of a panel), and draws joint sample
    paths, each point conditional on the path so far. It sees no filled value; the linear forecast that it
    corrects reads short gaps as straight lines, and long ones as the season before.

    Mean, intervals, quantiles and distributions agree exactly, and joint paths as far as their number allows.
    Every column of a multivariate series is forecast from its own past; a network that is trained serves all
    columns and instances.

    Times may be irregular. ``fh`` then holds absolute times, time spans after the last observation, or
    integers, which count typical (median) steps; an index that is finer than the observations is as good as
    one without the empty rows, but its steps are those that integers count.

    After ``pretrain`` on a panel, ``fit`` to any other series trains nothing, or fine-tunes: the network, its
    lengths, the calendar cycles and seasons (counted in steps) and the scale of X are those of the panel, the
    level and scale of y those of the series, which may be shorter than a context.

    Missing values in X are flagged, not filled, in columns that had some in training; others must be
    complete. X is ignored, with a warning, if ``fit`` had none.

    References
    ----------
    .. [1] Nivron, Parthipan, Wischik: "Taylorformer: Probabilistic Modelling for Random Processes including
       Time Series", https://arxiv.org/abs/2305.19141

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.sktime import TaylorformerForecaster
    >>> y = load_airline()
    >>> forecaster = TaylorformerForecaster(strategy="train", max_steps=5, random_state=0).fit(y)
    >>> forecaster.predict_interval(fh=range(1, 13), coverage=0.9).shape
    (12, 2)
    >>> paths = forecaster.predict_proba(fh=range(1, 13), marginal=False)
    >>> paths.sample(50).shape
    (600, 1)
    """

    spec = TAYLORFORMER
    _test_params = (
        {**TINY, "strategy": "train", "context_length": 3},
        {"num_samples": 3, "random_state": 0},
    )

    def __init__(
        self,
        context_length: int | None = None,
        num_samples: int = 100,
        d_model: int = 32,
        n_heads: int = 2,
        n_layers: int = 2,
        dropout: float = 0.1,
        num_epochs: int | None = 15,
        max_steps: int | None = 150,
        batch_size: int = 16,
        lr: float = 2e-3,
        validation_split: float = 0.0,
        patience: int = 10,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: Periods = "auto",
        distribution: str = "studentt",
        linear_path: bool = True,
        taylor_order: int = 0,
        n_derivative_neighbours: int = 1,
        attention: Attention = "full",
        update_steps: int = 0,
        finetune_steps: int = 0,
        past_only: Columns = None,
        device: str = "auto",
        random_state: Seed = None,
        verbose: bool = True,
        trainer_kwargs: Options = None,
        order: str = "time",
        strategy: str = "auto",
        pretrained: Source = "default",
        joint: bool = False,
    ) -> None:
        self._store(locals())
        super().__init__()

    def _network_to_share(self) -> DirectTaylorformer | None:
        if self.is_fitted:
            return self.network_ if self._strategy.kind.pretrained else None
        panel = getattr(self, "pretrained_", None)
        return None if panel is None or not panel.strategy.kind.pretrained else panel.network
