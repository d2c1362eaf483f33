"""sktime forecasters, imputers, a classifier, and skpro distributions; forecasters for other networks."""

from importlib.util import find_spec

if find_spec("sktime") is None:
    raise ModuleNotFoundError(
        'sktime is not installed: pip install "taylorformer-forecast[sktime]"', name="sktime"
    )

from taylorformer_forecast.sktime.contiformer import ContiFormerForecaster as ContiFormerForecaster
from taylorformer_forecast.sktime.contiformer_classifier import ContiFormerClassifier as ContiFormerClassifier
from taylorformer_forecast.sktime.distributions import PathMixture as PathMixture
from taylorformer_forecast.sktime.imputer import ContiFormerImputer as ContiFormerImputer
from taylorformer_forecast.sktime.imputer import TaylorformerImputer as TaylorformerImputer
from taylorformer_forecast.sktime.lam import LAMForecaster as LAMForecaster
from taylorformer_forecast.sktime.own_network import make_forecaster as make_forecaster
from taylorformer_forecast.sktime.sample_paths import SamplePaths as SamplePaths
from taylorformer_forecast.sktime.taylorformer import TaylorformerForecaster as TaylorformerForecaster
from taylorformer_forecast.sktime.tnp import TNPForecaster as TNPForecaster
from taylorformer_forecast.sktime.unn import UNNForecaster as UNNForecaster

__all__ = [
    "ContiFormerClassifier",
    "ContiFormerForecaster",
    "ContiFormerImputer",
    "LAMForecaster",
    "PathMixture",
    "SamplePaths",
    "TNPForecaster",
    "TaylorformerForecaster",
    "TaylorformerImputer",
    "UNNForecaster",
    "make_forecaster",
]
