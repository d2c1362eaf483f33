"""Forecasts fitted in closed form: what networks are built around. Tensors in, tensors out.

Start with :func:`~taylorformer_forecast.baselines.forecast.forecast`.
"""
