"""Rows of results: which of them are the same run, and which are compared with each other."""

from __future__ import annotations

from typing import Any

from models import MODELS

__all__ = ["budgets", "key", "rows_at", "trains"]


def trains(model: str) -> bool:
    """Tell whether a model has a training, which a budget bounds."""
    return model not in MODELS or MODELS[model].trains


def key(row: dict[str, Any]) -> tuple[str, str, int, float | None]:
    """Return model, series, seed and budget; None for the budget of a model that does not train."""
    return row["model"], row["series"], row["seed"], row["budget_s"] if trains(row["model"]) else None


def budgets(book: dict[str, Any]) -> list[float]:
    """Budgets of the models that train, the largest last."""
    return sorted({row["budget_s"] for row in book["rows"] if trains(row["model"])})


def rows_at(book: dict[str, Any], budget: float | None = None) -> list[dict[str, Any]]:
    """Rows of one budget, with those of the models that do not train.

    Parameters
    ----------
    book : dict
        What ``run.py`` writes.
    budget : float, optional
        Seconds of training; the largest of the book by default.

    Returns
    -------
    list of dict
        Rows in the order of the book.
    """
    chosen = max(budgets(book), default=None) if budget is None else budget
    return [row for row in book["rows"] if not trains(row["model"]) or row["budget_s"] == chosen]
