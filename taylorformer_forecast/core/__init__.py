"""Torch building blocks: tensors in, tensors out. Knows neither pandas nor a host library.

Start with :mod:`~taylorformer_forecast.core.window`, which holds the shape legend.
"""
