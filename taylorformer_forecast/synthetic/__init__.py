"""Generator of synthetic series, for training networks that forecast series which they have not seen."""

from taylorformer_forecast.synthetic.archetypes import ARCHETYPES as ARCHETYPES
from taylorformer_forecast.synthetic.archetypes import Archetype as Archetype
from taylorformer_forecast.synthetic.generator import SyntheticBatch as SyntheticBatch
from taylorformer_forecast.synthetic.generator import SyntheticGenerator as SyntheticGenerator
from taylorformer_forecast.synthetic.processes import PROCESSES as PROCESSES

__all__ = ["ARCHETYPES", "PROCESSES", "Archetype", "SyntheticBatch", "SyntheticGenerator"]
