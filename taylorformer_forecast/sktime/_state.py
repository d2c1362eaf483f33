"""What a failure leaves as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taylorformer_forecast.engine.state import own_state


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if a block fails or is interrupted.

    The block is shielded from what the caller has set in torch.
    """
    before = {  # only sktime's own dicts are written into
        name: value.copy() if name.startswith("_") and isinstance(value, dict) else value
        for name, value in vars(estimator).items()
    }
    try:
        with own_state():
            yield
    except BaseException:  # a keyboard interrupt too
        estimator.__dict__ = before
        raise
