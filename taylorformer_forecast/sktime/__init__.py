"""sktime forecasters and skpro distributions."""

from taylorformer_forecast.sktime.distributions import PathMixture as PathMixture
from taylorformer_forecast.sktime.distributions import SamplePaths as SamplePaths
from taylorformer_forecast.sktime.forecasters import TaylorformerForecaster as TaylorformerForecaster

__all__ = ["PathMixture", "SamplePaths", "TaylorformerForecaster"]
