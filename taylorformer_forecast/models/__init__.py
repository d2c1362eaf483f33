"""Networks that follow :mod:`taylorformer_forecast.core.protocol`, and their specifications."""
