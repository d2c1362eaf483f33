"""Dropout that stays on in forecasts where darts is asked for it (``mc_dropout=True``)."""

from __future__ import annotations

from darts.utils.torch import MonteCarloDropout
from torch import nn


def use_monte_carlo_dropout(module: nn.Module) -> None:
    """Put darts' dropout, which ``mc_dropout=True`` finds, in the place of torch's."""
    for name, child in module.named_children():
        if type(child) is nn.Dropout:
            setattr(module, name, MonteCarloDropout(child.p))
        else:
            use_monte_carlo_dropout(child)
