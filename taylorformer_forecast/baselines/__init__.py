"""Baseline forecasts: what is fitted in closed form, and what networks correct."""
