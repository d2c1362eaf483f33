"""Attention between functions of time: dynamics, solvers, interpolation."""
