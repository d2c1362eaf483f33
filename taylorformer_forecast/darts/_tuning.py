"""Tuning and loading of weights that leave a darts model as it was: always, or where they fail."""

from __future__ import annotations

from typing import Any

from darts.models.forecasting.torch_forecasting_model import MixedCovariatesTorchModel

from taylorformer_forecast.darts._state import as_before, as_before_a_failure


class Tuned(MixedCovariatesTorchModel):
    """Base of the package's darts models: what was fitted outlives a search for training parameters."""

    batch_size: int
    _tuning = False  # whether such a search goes on, which trains a network however short the series

    def lr_find(self, *args: Any, **kwargs: Any) -> Any:
        """Look for a learning rate; see darts. What was fitted stays.

        Without ``early_stop_threshold`` all rates are tried: Lightning would stop at a loss of four times the
        best, which is all losses where log-likelihoods are negative.
        """
        with as_before(self):
            self._tuning = True
            return super().lr_find(*args, **{"early_stop_threshold": None, **kwargs})

    def scale_batch_size(self, *args: Any, **kwargs: Any) -> Any:
        """Look for a batch size; see darts. What was fitted stays."""
        with as_before(self):
            self._tuning = True
            found = super().scale_batch_size(*args, **kwargs)
            size = self.batch_size
        self.batch_size = size
        return found

    def load_weights(self, *args: Any, **kwargs: Any) -> Any:
        """Load weights of a file; see darts. What is refused leaves the model as it was."""
        with as_before_a_failure(self):
            return super().load_weights(*args, **kwargs)

    def load_weights_from_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        """Load weights of a checkpoint; see darts. What is refused leaves the model as it was."""
        with as_before_a_failure(self):
            return super().load_weights_from_checkpoint(*args, **kwargs)
