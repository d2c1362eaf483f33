"""State of a darts model: restored where a fit fails, calibrated in checkpoints, apart from the caller's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from taylorformer_forecast.engine.state import kept_rng, own_state, private_rng
from taylorformer_forecast.engine.training import interruptible


@contextmanager
def in_own_state() -> Iterator[None]:
    """Run a block whatever the caller has set in torch; interrupts of users are raised."""
    with own_state(), interruptible():
        yield


@contextmanager
def evaluating(net: torch.nn.Module) -> Iterator[None]:
    """Put a network into evaluation mode for a block, and back into its mode afterwards.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.darts._state import evaluating
    >>> net = torch.nn.Dropout()
    >>> with evaluating(net):
    ...     net.training
    False
    >>> net.training
    True
    """
    before = net.training
    net.eval()
    try:
        yield
    finally:
        net.train(before)


def repeatable(wanted: bool) -> AbstractContextManager[None]:
    """Draw the same random numbers in a block at every call, if that is wanted."""
    return private_rng(0) if wanted else nullcontext()


@contextmanager
def as_before_a_failure(model: Any) -> Iterator[None]:
    """Leave a darts model as it was if anything is raised, a keyboard interrupt too.

    Parameters
    ----------
    model : TorchForecastingModel
        The model. Its weights, which training changes in place, are copied.
    """
    restore = _restorer(model)
    try:
        with in_own_state():
            yield
    except BaseException:
        restore()
        raise


@contextmanager
def as_before(model: Any) -> Iterator[None]:
    """Leave a darts model as it was, whatever happens; see :func:`as_before_a_failure`."""
    restore = _restorer(model)
    try:
        with in_own_state():
            yield
    finally:
        restore()


def _restorer(model: Any) -> Callable[[], None]:
    """What makes a model again what it is now."""
    before = {name: _copied(value) for name, value in vars(model).items()}
    module = model.model
    inside = {} if module is None else dict(vars(module))
    weights = {} if module is None else copy.deepcopy(module.state_dict())

    def restore() -> None:
        model.__dict__ = before
        if module is not None:
            module.on_fit_end()  # a loss that was made to keep its terms apart is put together again
            vars(module).update(inside)
            module.load_state_dict(weights)

    return restore


def calibrated_state(module: Any) -> dict[str, Any]:
    """State that a module would have if its training ended now; the training can go on.

    Parameters
    ----------
    module : ForecastModule
        In training.

    Returns
    -------
    dict
        Copies of parameters and buffers, after calibration.
    """
    loader, before = module.trainer.train_dataloader, copy.deepcopy(module.state_dict())
    with kept_rng():
        module.calibrate(loader.dataset, loader.collate_fn)
    found = copy.deepcopy(module.state_dict())
    module.load_state_dict(before)
    module.calibrated = False
    return found


def _copied(value: Any) -> Any:
    """A copy of what darts writes into: dicts, and the state of random numbers."""
    if isinstance(value, dict):
        return dict(value)
    return copy.deepcopy(value) if hasattr(value, "get_state") else value
