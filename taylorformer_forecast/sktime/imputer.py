"""Gaps filled by networks, as transformers of sktime."""

from __future__ import annotations

from collections.abc import Sequence

from taylorformer_forecast.models.imputers import CONTIFORMER_GAPS, TAYLORFORMER_GAPS
from taylorformer_forecast.sktime._imputer import BaseImputer
from taylorformer_forecast.sktime._parameters import ONE_SEASON, TINY, Options, Periods, Seed


class TaylorformerImputer(BaseImputer):
    """Fill gaps with the Taylorformer, which conditions on what lies on both sides of them.

    Missing points are predicted around the conditional means of a Gaussian process with trend and seasons, in
    units of its deviations. The network learns what that leaves, on windows of the series in which random
    points and blocks are hidden: their joint distribution given the points before, between and after them.
    The weight of the network, and how wide its distributions are, is chosen on gaps that its training did not
    see; for that, short series are split and trained on several times. ``transform`` fills gaps
    with the conditional mean, ``transform_quantiles`` and ``transform_proba`` give distributions, and
    ``sample`` draws whole series. All of them come from one draw, seeded at ``fit``. Observed values are
    never changed. At the start and the end of a series gaps are filled from one side.

    Every column is filled from its own values, by one network that serves all columns and instances. Times
    may be irregular. Only rows that are there are filled: to fill missing rows, reindex before.

    In a pipeline, ``TaylorformerImputer() * forecaster``, it fills the series that the forecaster is fitted
    to, and forecasts pass through it unchanged.

    References
    ----------
    .. [1] Nivron, Parthipan, Wischik: "Taylorformer: Probabilistic Modelling for Random Processes including
       Time Series", https://arxiv.org/abs/2305.19141

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.sktime import TaylorformerImputer
    >>> y = load_airline()
    >>> y.iloc[60:66] = float("nan")
    >>> imputer = TaylorformerImputer(max_steps=5, random_state=0)
    >>> int(imputer.fit_transform(y).isna().sum())
    0
    >>> imputer.transform_quantiles(y, alpha=[0.1, 0.9]).iloc[60:66].shape
    (6, 2)
    >>> imputer.transform_proba(y).mean().shape
    (6, 1)
    >>> imputer.sample(y, 3).shape
    (432, 1)
    """

    spec = TAYLORFORMER_GAPS
    _test_params = (
        {**TINY, "distribution": "normal", "logarithm": False},
        {**TINY, "window_length": 12, "gap_length": 3, **ONE_SEASON, "distribution": "quantile"},
    )

    def __init__(
        self,
        window_length: int | None = None,
        gap_length: int | None = None,
        num_samples: int = 100,
        d_model: int = 32,
        n_heads: int = 4,
        n_layers: int = 2,
        dropout: float = 0.1,
        max_steps: int = 100,
        batch_size: int = 16,
        lr: float = 3e-3,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: Periods = "auto",
        distribution: str = "studentt",
        logarithm: bool | None = None,
        device: str = "auto",
        random_state: Seed = None,
        verbose: bool = True,
        trainer_kwargs: Options = None,
    ) -> None:
        self._store(locals())
        super().__init__()


class ContiFormerImputer(BaseImputer):
    """Fill gaps with the ContiFormer: attention in continuous time to the points on both sides of them.

    It has the methods of :class:`TaylorformerImputer`, and works in the same way but for the network: keys
    and values of the observed points move on from their own times, forwards to later gaps and backwards to
    earlier ones, by an equation that is solved in closed form. The network sees the observed points alone.
    Points of one gap are drawn jointly through the Gaussian process that they are predicted around.

    References
    ----------
    .. [1] Chen, Ren, Wang, Fang, Sun, Li: "ContiFormer: Continuous-Time Transformer for Irregular Time Series
       Modeling", NeurIPS 2023, https://arxiv.org/abs/2402.10635

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from taylorformer_forecast.sktime import ContiFormerImputer
    >>> y = load_airline()
    >>> y.iloc[60:66] = float("nan")
    >>> imputer = ContiFormerImputer(max_steps=5, random_state=0)
    >>> int(imputer.fit_transform(y).isna().sum())
    0
    >>> imputer.transform_quantiles(y, alpha=[0.1, 0.9]).iloc[60:66].shape
    (6, 2)
    """

    spec = CONTIFORMER_GAPS
    _test_params = (
        {**TINY, "distribution": "mixture", "logarithm": False},
        {**TINY, "window_length": 12, "gap_length": 3, **ONE_SEASON, "dynamics": "none", "n_layers": 2},
    )

    def __init__(
        self,
        window_length: int | None = None,
        gap_length: int | None = None,
        num_samples: int = 100,
        d_model: int = 32,
        n_heads: int = 4,
        n_layers: int = 1,
        dropout: float = 0.1,
        dynamics: str = "linear",
        max_steps: int = 100,
        batch_size: int = 16,
        lr: float = 3e-3,
        time_features: str | Sequence[str] | None = "auto",
        seasonal_periods: Periods = "auto",
        distribution: str = "studentt",
        logarithm: bool | None = None,
        device: str = "auto",
        random_state: Seed = None,
        verbose: bool = True,
        trainer_kwargs: Options = None,
    ) -> None:
        self._store(locals())
        super().__init__()
