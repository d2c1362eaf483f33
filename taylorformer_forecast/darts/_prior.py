"""How darts models start from a network that was trained on other series."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
from darts import TimeSeries
from darts.utils.ts_utils import series2seq
from torch import nn

from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.darts._dataset import DatasetWindows
from taylorformer_forecast.darts._module import ForecastModule
from taylorformer_forecast.darts.likelihoods import LikelihoodHead, StudentTLikelihood
from taylorformer_forecast.engine.pretrained import (
    GENTLE,
    Prior,
    adapt,
    adapt_beside,
    asks_for_training,
    load_prior,
    too_few,
)
from taylorformer_forecast.models.direct import DirectTaylorformer

__all__ = ["DISTRIBUTION", "StartingModel", "StartingModule"]

DISTRIBUTION = "studentt"  # of a prior, whose raw numbers StudentTLikelihood reads alike
# What constructors and fits may say of how a network is trained, and for what, with values that say nothing.
TRAINING = {
    "n_epochs": None,
    "batch_size": 32,
    "likelihood": None,
    "loss_fn": None,
    "add_encoders": None,
    "optimizer_cls": None,
    "optimizer_kwargs": None,
    "lr_scheduler_cls": None,
    "lr_scheduler_kwargs": None,
    "enable_finetuning": None,
    "save_checkpoints": False,
}
OF_FIT = ("past_covariates", "future_covariates", "sample_weight", "val_series", "epochs", "trainer")


def _inside(net: nn.Module) -> DirectTaylorformer:
    """The prior's network, which forecasts alone or corrects the linear forecast of another."""
    return net if isinstance(net, DirectTaylorformer) else net.linear.forecast.direct  # type: ignore[union-attr,return-value]


class StartingModule(ForecastModule):
    """Base of modules whose network may start from a prior."""

    prior_trust: float | None = None  # in a prior that the network holds, until it is adapted

    def begin(self, dataset: Sequence[Any], collate: Callable[..., Any]) -> None:
        """Adapt the prior, if there is one, then fit the linear part, once."""
        if self.prior_trust is not None:
            own = _inside(self.net)
            net = copy.deepcopy(own).cpu().float()
            windows = DatasetWindows(self, dataset, collate)
            if own is self.net:
                adapt(net, windows, 1, self.prior_trust)
            else:
                adapt_beside(net, windows, 1)
            own.load_state_dict(net.state_dict())
            self.prior_trust = None
        super().begin(dataset, collate)


class StartingModel(BaseForecastModel):
    """Base of models with a parameter ``pretrained``.

    The file is read by the first fit alone: checkpoints hold the weights that came of it.
    """

    @property
    def _pretrained(self) -> str | None:
        """The prior to start from. What "auto" stands for, a fit decides."""
        asked = self.model_params.get("pretrained")
        return asked if asked != "auto" else "default" if self._short else None

    @property
    def _alone(self) -> bool:
        """Whether the prior forecasts by itself: without training nothing else does."""
        return self._short or self.model_params["n_epochs"] == 0

    def _setup_for_fit_from_dataset(self, series: Any, *args: Any, **kwargs: Any) -> Any:
        before = (self.model, self.train_sample, self._short, self.n_epochs)
        if self._short:  # nothing was trained that a further fit could go on from
            self.model = self.train_sample = None
        try:
            if self.model is None:
                self._leave_to_prior(not self._tuning and self._too_short(series2seq(series), kwargs))
            return super()._setup_for_fit_from_dataset(series, *args, **kwargs)
        except Exception:
            self.model, self.train_sample, self._short, self.n_epochs = before
            raise

    def _leave_to_prior(self, short: bool) -> None:
        """Let the prior forecast alone, or a network be trained."""
        self._short = short
        if self.model_params["n_epochs"] is None:
            self.n_epochs = 0 if short else self.spec.num_epochs

    def _too_short(self, series: Sequence[TimeSeries], options: Mapping[str, Any]) -> bool:
        """Whether the prior in the package is to forecast alone.

        Not so if anything was asked for that only a network which is trained has; ``options`` are those of
        the fit.
        """
        params = self.model_params
        if params.get("pretrained") != "auto":
            return False
        signature = inspect.signature(type(self).__init__).parameters
        own = (*self.spec.options(params), "lr", "use_reversible_instance_norm")
        silent = {**{name: signature[name].default for name in own}, **TRAINING}
        if any(params.get(name, value) != value for name, value in silent.items()):
            return False
        if any(options.get(name) for name in OF_FIT):
            return False
        if asks_for_training(params.get("pl_trainer_kwargs") or {}):
            return False
        if params["use_static_covariates"] and any(one.has_static_covariates for one in series):
            return False
        observed = sum(int(np.isfinite(one.all_values(copy=False)).sum()) for one in series)
        return too_few(observed, params["output_chunk_length"])

    def lr_find(self, *args: Any, **kwargs: Any) -> Any:
        """Look for a learning rate; see darts."""
        return self._tuned(super().lr_find, *args, **kwargs)

    def scale_batch_size(self, *args: Any, **kwargs: Any) -> Any:
        """Look for a batch size; see darts."""
        return self._tuned(super().scale_batch_size, *args, **kwargs)

    def _tuned(self, tune: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Tune the training of a network, however short the series."""
        self._tuning = True
        try:
            return tune(*args, **kwargs)
        finally:
            self._tuning = False

    def _set_up(self) -> None:
        self._short = self._tuning = False
        if isinstance(self._pretrained, PathLike):  # darts loads no paths
            self.model_params["pretrained"] = fspath(self._pretrained)
        super()._set_up()
        self._settings: Mapping[str, Any] | None = None  # of the prior's network, once they are known
        if self._pretrained is None:
            return
        if self._alone and not isinstance(self.likelihood, StudentTLikelihood):
            name = "loss_fn" if self.likelihood is None else f"likelihood={type(self.likelihood).__name__}"
            raise ValueError(
                f"{name}: the network of pretrained={self._pretrained!r} was trained with "
                f"StudentTLikelihood, the default; leave likelihood and loss_fn at that, train it "
                f"(n_epochs=0 does not), or take pretrained=None"
            )
        if not LikelihoodHead(self.likelihood).has_location:
            raise ValueError(
                f"likelihood={type(self.likelihood).__name__} has no location, around which the network of "
                f"pretrained={self._pretrained!r} predicts: take another likelihood, or pretrained=None"
            )
        if not self.model_params["use_reversible_instance_norm"]:
            raise ValueError(
                f"use_reversible_instance_norm=False: the network of pretrained={self._pretrained!r} knows "
                f"normalised windows only; leave it at True, or take pretrained=None"
            )

    def _own_params(self) -> dict[str, Any]:
        params = super()._own_params()
        if self._pretrained is not None:
            if self._settings is None:  # weights are loaded unchecked
                self._settings = self._prior().full_settings
            params["network"]["prior"] = {**self._settings, "alone": self._alone}
            params["lr"] *= GENTLE if self._alone else 1.0
        return params

    def _prior(self) -> Prior:
        """The network to start from, if the parameters ask for no other."""
        assert self._pretrained is not None
        prior = load_prior(self._pretrained)
        found = prior.settings.get("distribution", DISTRIBUTION)
        if found != DISTRIBUTION:
            raise ValueError(
                f"pretrained={self._pretrained!r} was trained with distribution={found!r}, but darts models "
                f"can start from {DISTRIBUTION!r} only"
            )
        params = self.model_params if self._alone else {"linear_path": self.model_params["linear_path"]}
        defaults = inspect.signature(type(self).__init__).parameters
        prior.check(params, {name: parameter.default for name, parameter in defaults.items()})
        return prior

    def _setup_for_train(self, train_dataset: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        prior = self._prior() if self._pretrained is not None and self.model is None else None
        if prior is not None:
            self._settings = prior.full_settings
        setup = super()._setup_for_train(train_dataset, *args, **kwargs)
        if prior is not None:
            self._check_covariates(setup["model"])
            prior.write_into(_inside(setup["model"].net))
            setup["model"].prior_trust = prior.trust
        return setup

    def _check_covariates(self, module: ForecastModule) -> None:
        """Raise a ValueError if a prior is to forecast alone from what it has not seen."""
        name = f"pretrained={self._pretrained!r}"
        if self._seasonal is None:
            raise ValueError(f"{name} needs the time stamps of a series: call fit, not fit_from_dataset")
        if not self._alone:  # the network around it sees them
            return
        if module.n_static:
            raise ValueError(
                f"{name} has seen no covariates, but the series has static ones: take "
                f"use_static_covariates=False, train (n_epochs=0 does not), or take pretrained=None"
            )
        if module.n_past or module.n_future > self._seasonal.width:
            raise ValueError(
                f"{name} has seen no covariates: fit without past_covariates, future_covariates and "
                f"add_encoders, train (n_epochs=0 does not), or take pretrained=None"
            )

    @property
    def _ckpt_skipped_params(self) -> list[str]:
        return [*super()._ckpt_skipped_params, "pretrained"]

    def _check_ckpt_parameters(self, tfm_save: Any) -> None:
        """Compare with the parameters of saved weights. They may come from another prior, not from none."""
        super()._check_ckpt_parameters(tfm_save)
        own = self.model_params.get("pretrained")
        if own == "auto":
            self._leave_to_prior(tfm_save._short)
        saved, found = (None if m._pretrained is None else m._alone for m in (tfm_save, self))
        if saved != found:
            raise ValueError(
                f"the weights are those of a model with pretrained={tfm_save._pretrained!r} and "
                f"n_epochs={tfm_save.n_epochs}, and fit no model with pretrained={own!r} and "
                f"n_epochs={self.n_epochs}: a prior forecasts alone without epochs, and corrects another "
                f"network with them"
            )
        self._settings = tfm_save._settings
