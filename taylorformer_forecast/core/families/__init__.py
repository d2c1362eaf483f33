"""Families of predictive distributions, one file each, found by name.

To add one, write a :class:`LocationScaleFamily` (or another :class:`Family`) and register it: both hosts
then know its name.
"""

from taylorformer_forecast.core.families.base import Components as Components
from taylorformer_forecast.core.families.base import Described as Described
from taylorformer_forecast.core.families.base import Family as Family
from taylorformer_forecast.core.families.location_scale import LocationScaleFamily as LocationScaleFamily
from taylorformer_forecast.core.families.mixture import MixtureFamily
from taylorformer_forecast.core.families.normal import NormalFamily
from taylorformer_forecast.core.families.point import PointFamily
from taylorformer_forecast.core.families.quantile import QuantileFamily
from taylorformer_forecast.core.families.registry import FAMILIES as FAMILIES
from taylorformer_forecast.core.families.registry import affine as affine
from taylorformer_forecast.core.families.registry import components as components
from taylorformer_forecast.core.families.registry import draw as draw
from taylorformer_forecast.core.families.registry import family_of as family_of
from taylorformer_forecast.core.families.registry import find_component as find_component
from taylorformer_forecast.core.families.registry import find_family as find_family
from taylorformer_forecast.core.families.registry import gives_points as gives_points
from taylorformer_forecast.core.families.registry import point_forecast as point_forecast
from taylorformer_forecast.core.families.registry import register as register
from taylorformer_forecast.core.families.registry import register_component
from taylorformer_forecast.core.families.studentt import StudentTFamily
from taylorformer_forecast.core.families.uniform import UniformFamily

register("normal", NormalFamily)
register("studentt", StudentTFamily)
register("mixture", MixtureFamily)
register("quantile", QuantileFamily)
register("mse", PointFamily, power=2)
register("mae", PointFamily, power=1)
register_component("uniform", UniformFamily)
