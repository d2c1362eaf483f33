"""The models of the arena: every one turns a task into deciles for all origins, (origins, 9, horizon).

An entry is trained once on the training part, ``fit``, and then sees the past up to each origin,
``forecast``. Statistical models have nothing to train: they are refitted to the recent past at every origin.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from series import Task

__all__ = ["LEVELS", "MODELS", "Entry", "Settings"]

LEVELS = np.arange(1, 10) / 10
EPOCHS = 100  # of darts' networks, unless the budget ends first


@dataclass(frozen=True)
class Settings:
    """What all models share: processor seconds of training, seed, paths, a bound of steps for checks."""

    budget: float = 60.0
    seed: int = 0
    n_paths: int = 200
    max_steps: int | None = None

    def trainer(self) -> dict[str, Any]:
        """Return Lightning's arguments: the budget."""
        from budget import ProcessorTimer

        steps = {} if self.max_steps is None else {"max_steps": self.max_steps}
        return {"accelerator": "cpu", "callbacks": [ProcessorTimer(self.budget)], **steps}


class Entry:
    """A model in the arena.

    Parameters
    ----------
    task : Task
        The series.
    settings : Settings
        Budget, seed, paths.
    """

    trains = True  # False where results are the same for any budget

    def __init__(self, task: Task, settings: Settings) -> None:
        self.task, self.settings = task, settings

    def fit(self, y: pd.Series) -> None:
        """Train on the training part."""

    def forecast(self, pasts: list[pd.Series]) -> np.ndarray:
        """Deciles from the end of every past, (origins, 9, horizon)."""
        return np.stack([self.one(past) for past in pasts])

    def one(self, past: pd.Series) -> np.ndarray:
        """Deciles from the end of one past, (9, horizon)."""
        raise NotImplementedError


class SeasonalNaive(Entry):
    """The last season again, without an interval."""

    trains = False
    spread = 0.0

    def one(self, past: pd.Series) -> np.ndarray:
        """Repeat the last season; errors of one season, seen in the past, add up over seasons ahead."""
        from scipy.stats import norm

        m, h = self.task.season, self.task.horizon
        values = past.to_numpy()
        ahead = np.arange(h)
        error = np.sqrt(np.mean((values[m:] - values[:-m]) ** 2) * (1 + ahead // m))
        return values[-m:][ahead % m] + self.spread * norm.ppf(LEVELS)[:, None] * error


class SeasonalNaiveNormal(SeasonalNaive):
    """The last season again, with normal intervals."""

    spread = 1.0


class Statistical(Entry):
    """AutoETS or Theta: statsforecast's through darts if it is installed, else sktime's."""

    trains = False
    name = "AutoETS"

    def one(self, past: pd.Series) -> np.ndarray:
        """Fit to the recent past, four contexts or seasons, and forecast."""
        m = self.task.season
        # Exponential smoothing of longer seasons has too many states, and statsforecast ignores them anyway.
        sp = m if m <= 52 else 1
        recent = past.iloc[-4 * max(self.task.context, m) :]
        if importlib.util.find_spec("statsforecast"):
            return self._darts(recent, sp)
        return self._sktime(recent, sp)

    def _darts(self, y: pd.Series, sp: int) -> np.ndarray:
        from darts import TimeSeries, models

        model = getattr(models, {"Theta": "AutoTheta"}.get(self.name, self.name))(season_length=sp)
        model.fit(TimeSeries.from_series(y))
        paths = model.predict(
            self.task.horizon, num_samples=self.settings.n_paths, random_state=self.settings.seed
        )
        return np.quantile(paths.all_values()[:, 0], LEVELS, axis=1)

    def _sktime(self, y: pd.Series, sp: int) -> np.ndarray:
        from sktime.forecasting.ets import AutoETS
        from sktime.forecasting.theta import ThetaForecaster

        model: Any
        if self.name == "Theta":
            model = ThetaForecaster(sp=sp, deseasonalize=bool(y.min() > 0))
        else:
            model = AutoETS(auto=True, sp=sp, random_state=self.settings.seed)
        model.set_config(remember_data=False)
        return model.fit(y).predict_quantiles(range(1, self.task.horizon + 1), alpha=LEVELS).to_numpy().T


class Theta(Statistical):
    """The optimised Theta method."""

    name = "Theta"


class OursSktime(Entry):
    """A forecaster of this package through sktime, with its defaults on the raw values."""

    name = "TaylorformerForecaster"
    options: dict[str, Any] = {}

    def fit(self, y: pd.Series) -> None:
        """Train within the budget."""
        import taylorformer_forecast.sktime as hosts

        self.model = getattr(hosts, self.name)(
            num_samples=self.settings.n_paths,
            random_state=self.settings.seed,
            device="cpu",
            trainer_kwargs=self.settings.trainer(),
            **self.options,
        )
        self.model.fit(y, fh=range(1, self.task.horizon + 1))
        self.seen = len(y)

    def one(self, past: pd.Series) -> np.ndarray:
        """Move the cutoff, weights as they are, and forecast."""
        if len(past) > self.seen:
            self.model.update(past.iloc[self.seen :], update_params=False)
            self.seen = len(past)
        return self.model.predict_quantiles(alpha=LEVELS.tolist()).to_numpy().T


class OursSktimeTrained(OursSktime):
    """The Taylorformer trained on the series, however short it is."""

    options = {"strategy": "train"}


class OursSktimeFinetuned(OursSktime):
    """The pretrained network of the package, trained further on the series."""

    options = {"strategy": "finetune"}


class OursSktimePretrained(OursSktime):
    """The pretrained network of the package as it is: its baseline and calibration are fitted."""

    trains = False
    options = {"strategy": "pretrained"}


class OursSktimeZeroShot(OursSktime):
    """The same, averaged with corrected statistics by the errors of both in the past."""

    trains = False
    options = {"strategy": "zero_shot"}


class OursSktimeLAM(OursSktime):
    """LAM through sktime."""

    name = "LAMForecaster"


class OursSktimeContiFormer(OursSktime):
    """ContiFormer through sktime."""

    name = "ContiFormerForecaster"


class OursSktimeTNP(OursSktime):
    """TNP-A through sktime."""

    name = "TNPForecaster"


class OursSktimeUNN(OursSktime):
    """UNN through sktime: with a single series, a set of its points."""

    name = "UNNForecaster"


class DartsNetwork(Entry):
    """A network of darts on values standardised by the training part."""

    standardised = True

    def build(self, common: dict[str, Any]) -> Any:
        """Construct the model."""
        raise NotImplementedError

    def fit(self, y: pd.Series) -> None:
        """Train within the budget."""
        quiet = {"enable_progress_bar": False, "logger": False, "enable_model_summary": False}
        trainer = {**self.settings.trainer(), **quiet, "enable_checkpointing": False}
        self.mean, self.std = (y.mean(), y.std()) if self.standardised else (0.0, 1.0)
        self.model = self.build({"random_state": self.settings.seed, "pl_trainer_kwargs": trainer})
        self.model.fit(self._scaled(y), verbose=False)

    def forecast(self, pasts: list[pd.Series]) -> np.ndarray:
        """Draw paths from all origins in one call."""
        paths = self.model.predict(
            self.task.horizon,
            series=[self._scaled(past) for past in pasts],
            num_samples=self.settings.n_paths,
            verbose=False,
            random_state=self.settings.seed,
        )
        z = np.stack([np.quantile(one.all_values()[:, 0], LEVELS, axis=1) for one in paths])
        return z * self.std + self.mean

    def _scaled(self, y: pd.Series) -> Any:
        from darts import TimeSeries

        return TimeSeries.from_series(((y - self.mean) / self.std).astype("float32"))


class OursDarts(DartsNetwork):
    """A model of this package through darts, with its defaults, on raw values: it scales windows itself."""

    name = "TaylorformerModel"
    standardised = False
    options: dict[str, Any] = {}

    def build(self, common: dict[str, Any]) -> Any:
        """Construct it with the same input length as the other networks."""
        import taylorformer_forecast.darts as hosts

        return getattr(hosts, self.name)(self.task.context, self.task.horizon, **self.options, **common)


class OursDartsFinetuned(OursDarts):
    """The pretrained network through darts, trained further on the series."""

    options = {"strategy": "finetune"}


class OursDartsLAM(OursDarts):
    """LAM through darts."""

    name = "LAMModel"


class OursDartsContiFormer(OursDarts):
    """ContiFormer through darts."""

    name = "ContiFormerModel"


class OursDartsTNP(OursDarts):
    """TNP-A through darts."""

    name = "TNPModel"


class OursDartsUNN(OursDarts):
    """UNN through darts."""

    name = "UNNModel"


class DartsPeer(DartsNetwork):
    """A network that ships with darts: its default sizes and learning rate."""

    name = ""
    options: dict[str, Any] = {}

    def build(self, common: dict[str, Any]) -> Any:
        """Construct it with quantile regression at the deciles that are scored."""
        from darts import models
        from darts.utils.likelihood_models.torch import QuantileRegression

        common["pl_trainer_kwargs"]["gradient_clip_val"] = 1.0
        likelihood = QuantileRegression([round(float(level), 1) for level in LEVELS])
        return getattr(models, self.name)(
            self.task.context,
            self.task.horizon,
            likelihood=likelihood,
            n_epochs=EPOCHS,
            **self.options,
            **common,
        )


class DLinear(DartsPeer):
    """DLinear on windows normalised one by one."""

    name, options = "DLinearModel", {"use_reversible_instance_norm": True}


class TiDE(DartsPeer):
    """TiDE on windows normalised one by one."""

    name, options = "TiDEModel", {"use_reversible_instance_norm": True}


class NHiTS(DartsPeer):
    """N-HiTS."""

    name = "NHiTSModel"


class TFT(DartsPeer):
    """The temporal fusion transformer; it needs a covariate, the relative index."""

    name, options = "TFTModel", {"add_relative_index": True}


class DeepAR(DartsNetwork):
    """DeepAR: an LSTM with a Gaussian likelihood."""

    def build(self, common: dict[str, Any]) -> Any:
        """Construct it; training sequences are as long as context and horizon together."""
        from darts.models import RNNModel
        from darts.utils.likelihood_models.torch import GaussianLikelihood

        common["pl_trainer_kwargs"]["gradient_clip_val"] = 1.0
        length = self.task.context + self.task.horizon
        return RNNModel(
            self.task.context,
            model="LSTM",
            training_length=length,
            likelihood=GaussianLikelihood(),
            n_epochs=EPOCHS,
            **common,
        )


MODELS: dict[str, type[Entry]] = {
    "naive": SeasonalNaive,
    "naive_normal": SeasonalNaiveNormal,
    "ets": Statistical,
    "theta": Theta,
    "taylorformer_sktime": OursSktime,
    "taylorformer_trained": OursSktimeTrained,
    "taylorformer_finetuned": OursSktimeFinetuned,
    "taylorformer_pretrained": OursSktimePretrained,
    "taylorformer_zero_shot": OursSktimeZeroShot,
    "lam_sktime": OursSktimeLAM,
    "taylorformer_darts": OursDarts,
    "taylorformer_darts_finetuned": OursDartsFinetuned,
    "lam_darts": OursDartsLAM,
    "contiformer_sktime": OursSktimeContiFormer,
    "contiformer_darts": OursDartsContiFormer,
    "tnp_sktime": OursSktimeTNP,
    "unn_sktime": OursSktimeUNN,
    "tnp_darts": OursDartsTNP,
    "unn_darts": OursDartsUNN,
    "dlinear": DLinear,
    "nhits": NHiTS,
    "tide": TiDE,
    "deepar": DeepAR,
    "tft": TFT,
}
