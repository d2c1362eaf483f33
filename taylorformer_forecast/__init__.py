"""Probabilistic transformer forecasters for sktime and darts."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taylorformer_forecast.darts.contiformer import ContiFormerModel as ContiFormerModel
    from taylorformer_forecast.darts.lam import LAMModel as LAMModel
    from taylorformer_forecast.darts.taylorformer import TaylorformerModel as TaylorformerModel
    from taylorformer_forecast.darts.tnp import TNPModel as TNPModel
    from taylorformer_forecast.darts.unn import UNNModel as UNNModel
    from taylorformer_forecast.models.contiformer import ContiFormer as ContiFormer
    from taylorformer_forecast.models.lam import LAMTransformer as LAMTransformer
    from taylorformer_forecast.models.taylorformer import Taylorformer as Taylorformer
    from taylorformer_forecast.models.tnp import TNPA as TNPA
    from taylorformer_forecast.models.unn import UNN as UNN
    from taylorformer_forecast.sktime.contiformer import ContiFormerForecaster as ContiFormerForecaster
    from taylorformer_forecast.sktime.contiformer_classifier import (
        ContiFormerClassifier as ContiFormerClassifier,
    )
    from taylorformer_forecast.sktime.imputer import ContiFormerImputer as ContiFormerImputer
    from taylorformer_forecast.sktime.imputer import TaylorformerImputer as TaylorformerImputer
    from taylorformer_forecast.sktime.lam import LAMForecaster as LAMForecaster
    from taylorformer_forecast.sktime.taylorformer import TaylorformerForecaster as TaylorformerForecaster
    from taylorformer_forecast.sktime.tnp import TNPForecaster as TNPForecaster
    from taylorformer_forecast.sktime.unn import UNNForecaster as UNNForecaster

__version__ = "0.1.0"

# Public names -> module that has them. Resolved on first access (PEP 562), so that importing the package
# loads neither torch nor pandas nor a host library.
_MODELS = ("Taylorformer", "LAM", "ContiFormer", "UNN", "TNP")
_LAZY = {
    **{f"{name}Forecaster": f"{__name__}.sktime" for name in _MODELS},
    **{f"{name}Model": f"{__name__}.darts" for name in _MODELS},
    "ContiFormerClassifier": f"{__name__}.sktime",
    "ContiFormerImputer": f"{__name__}.sktime",
    "TaylorformerImputer": f"{__name__}.sktime",
    "ContiFormer": f"{__name__}.models.contiformer",
    "LAMTransformer": f"{__name__}.models.lam",
    "TNPA": f"{__name__}.models.tnp",
    "Taylorformer": f"{__name__}.models.taylorformer",
    "UNN": f"{__name__}.models.unn",
}
_HOSTS = ("sktime", "darts")


def _missing_host(name: str) -> str | None:
    """The library that a public name needs, if it is not installed."""
    part = _LAZY[name].split(".")[1]
    return part if part in _HOSTS and importlib.util.find_spec(part) is None else None


__all__ = ["__version__", *(name for name in _LAZY if _missing_host(name) is None)]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    host = _missing_host(name)
    if host is not None:
        text = f'{name} needs {host}, which is not installed: pip install "taylorformer-forecast[{host}]"'
        # ``from taylorformer_forecast import ...`` puts words of its own in the place of an AttributeError's.
        imported = sys._getframe(1).f_code.co_name == "_handle_fromlist"
        raise ImportError(text, name=host) if imported else AttributeError(text)
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    """Names that tab completion offers."""
    return sorted(__all__)
