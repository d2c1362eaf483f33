"""What a further fit of a darts model goes on from: the weights of its network, and nothing else."""

from __future__ import annotations

import warnings
from functools import wraps
from typing import Any

from darts.models.forecasting.torch_forecasting_model import MixedCovariatesTorchModel
from torch import Tensor, nn

from taylorformer_forecast.darts._state import as_before_a_failure
from taylorformer_forecast.engine.pretrained import OWN
from taylorformer_forecast.engine.strategy import Strategy


class Refitted(MixedCovariatesTorchModel):
    """Base of the package's darts models: every fit to series begins anew, but for the network.

    Seasons, units, effects, the strategy and the baseline are those of the series of the latest fit. darts
    trains on where a model was trained before: the network has the weights of the fit before, if they fit.
    """

    model: Any
    trainer_params: dict[str, Any]
    _strategy: Strategy | None
    _weights_before: dict[str, Tensor] | None = None  # of the network, until it is trained

    @wraps(MixedCovariatesTorchModel.fit)
    def fit(self, *args: Any, **kwargs: Any) -> Any:
        with as_before_a_failure(self):
            return super().fit(*args, **kwargs)

    @property
    def _is_statistical(self) -> bool:
        """Whether there is no network, or is to be none."""
        return False

    @property
    def _trains(self) -> bool:
        """Whether a network is trained, as far as the strategy goes."""
        return self._strategy is None or self._strategy.kind.trains

    def _forget_the_fit(self) -> None:
        """As before the first fit, but for the weights of a network that was trained.

        A training that resumes from a checkpoint goes on with all that it had, and so does a model that
        ``enable_finetuning=False`` keeps from training.
        """
        untrained = not (self._requires_training or self._is_statistical)
        if self.model is None or self.load_ckpt_path is not None or untrained:
            return
        if self._trains:
            self._weights_before = self.model.net.state_dict()
        self.model = self.train_sample = self.training_series = None
        self.past_covariate_series = self.future_covariate_series = self.static_covariates = None
        for kind in ("past", "future", "static"):
            setattr(self, f"_uses_{kind}_covariates", False)
            setattr(self, f"_expect_{kind}_covariates", False)
        if "precision" not in (self.model_params.get("pl_trainer_kwargs") or {}):  # it was that of the series
            self.trainer_params = {k: v for k, v in self.trainer_params.items() if k != "precision"}

    def _setup_for_train(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        before, self._weights_before = self._weights_before, None
        setup = super()._setup_for_train(*args, **kwargs)
        if before is not None and self._trains:
            _go_on_from(setup["model"].net, before)
        elif before is not None:
            warnings.warn(
                "the network that was trained or loaded is left out: no network is trained on this series "
                "(see summary()). With strategy='train', or 'finetune' after it, training goes on",
                stacklevel=2,
            )
        return setup


def _go_on_from(net: nn.Module, before: dict[str, Tensor]) -> None:
    """Give a network the weights of another, all but what every fit sets anew, if all of them fit."""
    own, other = (
        {name: value for name, value in state.items() if not name.startswith(OWN)}
        for state in (net.state_dict(), before)
    )
    if {name: v.shape for name, v in own.items()} == {name: v.shape for name, v in other.items()}:
        net.load_state_dict(other, strict=False)
    else:
        warnings.warn(
            "the network begins anew: weights that it had are for other seasons, covariates or components",
            stacklevel=2,
        )
