"""Strategies of darts models, which weights of a file bring along."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import exists
from typing import Any

from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.darts._state import as_before_a_failure
from taylorformer_forecast.engine.strategy import Strategy


class AdoptingModel(BaseForecastModel):
    """Base of models with the parameter ``strategy``: "auto" adopts that of loaded weights."""

    _strategy: Strategy | None
    _settings: Mapping[str, Any] | None  # of the pretrained network, once they are known

    def _adopt(self, strategy: Strategy | None) -> None:
        """Take a strategy, and the epochs that belong to it."""
        self._strategy = strategy
        if strategy is not None and not strategy.kind.trains:
            self.n_epochs = 0
        elif self._arguments["n_epochs"] is None:
            self.n_epochs = self.spec.num_epochs
        else:
            self.n_epochs = self._arguments["n_epochs"]

    def load_weights(
        self,
        path: str,
        load_encoders: bool = True,
        skip_checks: bool = False,
        trusted: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Load weights of a file; see darts. Without checks too, "auto" looks up their strategy."""
        with as_before_a_failure(self):
            if skip_checks and self._arguments["strategy"] == "auto" and exists(path):
                place = kwargs.get("map_location")
                self._adopt(type(self).load(path, trusted=trusted, map_location=place)._strategy)
            return super().load_weights(path, load_encoders, skip_checks, trusted, **kwargs)

    def _load_encoders(self, tfm_save: Any, load_encoders: bool) -> Any:
        """Encoders; see darts. They depend on the strategy, which is that of the weights."""
        asked = self._arguments["strategy"]
        found = "train" if tfm_save._strategy is None else tfm_save._strategy.name
        alike = {"finetune": "pretrained"}
        if asked != "auto" and alike.get(asked, asked) != alike.get(found, found):
            raise ValueError(
                f"the weights are those of a model with strategy={found!r}, and fit no model with "
                f"strategy={asked!r}: their networks differ"
            )
        self._adopt(tfm_save._strategy)
        self._settings = tfm_save._settings
        return super()._load_encoders(tfm_save, load_encoders)

    @property
    def _ckpt_skipped_params(self) -> list[str]:
        """Parameters that need not be those of the saved model: weights may come from another file."""
        return [*super()._ckpt_skipped_params, "pretrained", "strategy"]
