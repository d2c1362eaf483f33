"""darts models and likelihoods; models for other networks."""

import datetime
from importlib.util import find_spec

if find_spec("darts") is None:
    raise ModuleNotFoundError(
        'darts is not installed: pip install "taylorformer-forecast[darts]"', name="darts"
    )

from darts.utils.serialization import add_safe_globals

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.cycles import SeasonalFeatures
from taylorformer_forecast.calendar.open_hours import OpenHours
from taylorformer_forecast.core.attention.autocorrelation import AutoCorrelation
from taylorformer_forecast.core.attention.kernels import Full
from taylorformer_forecast.core.attention.local import Local, log_window
from taylorformer_forecast.core.attention.prob import Prob
from taylorformer_forecast.darts._business_hours import ForwardFuture, ForwardPast
from taylorformer_forecast.darts.contiformer import ContiFormerModel as ContiFormerModel
from taylorformer_forecast.darts.lam import LAMModel as LAMModel
from taylorformer_forecast.darts.likelihoods import FamilyLikelihood as FamilyLikelihood
from taylorformer_forecast.darts.likelihoods import StudentTLikelihood as StudentTLikelihood
from taylorformer_forecast.darts.own_network import make_model as make_model
from taylorformer_forecast.darts.taylorformer import TaylorformerModel as TaylorformerModel
from taylorformer_forecast.darts.tnp import TNPModel as TNPModel
from taylorformer_forecast.darts.unn import UNNModel as UNNModel
from taylorformer_forecast.engine.strategy import Strategy

__all__ = [
    "ContiFormerModel",
    "FamilyLikelihood",
    "LAMModel",
    "StudentTLikelihood",
    "TNPModel",
    "TaylorformerModel",
    "UNNModel",
    "make_model",
]

# darts unpickles only what it knows to be safe, unless called with trusted=True.
add_safe_globals([FamilyLikelihood, StudentTLikelihood])
add_safe_globals([ContiFormerModel, LAMModel, TaylorformerModel, TNPModel, UNNModel])
add_safe_globals([OpenHours, SeasonalFeatures, Strategy, TimeAxis])
add_safe_globals([datetime.time, ForwardFuture, ForwardPast])  # of frequencies of business hours
add_safe_globals([AutoCorrelation, Full, Local, Prob, log_window])
