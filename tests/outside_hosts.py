"""Classes of hosts for a baseline and a model that users add to the package."""

from __future__ import annotations

from outside import LAST_VALUE, LEVEL, TOGETHER, WALK

from taylorformer_forecast.darts import make_model
from taylorformer_forecast.sktime import make_forecaster

LastValueForecaster = make_forecaster(LAST_VALUE, "LastValueForecaster", __name__)
LastValueModel = make_model(LAST_VALUE, "LastValueModel", __name__)
LevelForecaster = make_forecaster(LEVEL, "LevelForecaster", __name__)
LevelModel = make_model(LEVEL, "LevelModel", __name__)
WalkForecaster = make_forecaster(WALK, "WalkForecaster", __name__)
WalkModel = make_model(WALK, "WalkModel", __name__)
TogetherForecaster = make_forecaster(TOGETHER, "TogetherForecaster", __name__)
TogetherModel = make_model(TOGETHER, "TogetherModel", __name__)
