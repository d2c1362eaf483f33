"""Networks built from :mod:`taylorformer_forecast.core`, all with the protocol of ``models.base``."""
