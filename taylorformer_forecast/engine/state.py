"""What a block and its caller keep from each other: random numbers, gradients, precision, default dtype."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

_LOCK = threading.RLock()
_DTYPE_LOCK = threading.Lock()
_CALLERS: list[tuple[int, torch.dtype]] = []  # thread of every block that shields, and the caller's dtype


def _forget_other_threads() -> None:
    """End the blocks of all threads that a forked process does not have."""
    global _LOCK, _DTYPE_LOCK
    _LOCK, _DTYPE_LOCK = threading.RLock(), threading.Lock()
    own = [block for block in _CALLERS if block[0] == threading.get_ident()]
    if _CALLERS and not own:
        torch.set_default_dtype(_CALLERS[0][1])
    _CALLERS[:] = own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


@contextmanager
def kept_rng() -> Iterator[None]:
    """Restore the states of torch's global generators after a block.

    CUDA that is not in use is not started for that: it takes seconds, and a forked process cannot do it.
    When it starts, in the block or later, it has the caller's seed.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.engine.state import kept_rng
    >>> before = torch.get_rng_state()
    >>> with kept_rng():
    ...     _ = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    used = torch.cuda.is_initialized()
    try:
        with torch.random.fork_rng(range(torch.cuda.device_count()) if used else []):
            yield
    finally:
        if not used:
            torch.cuda.manual_seed_all(torch.initial_seed())


@contextmanager
def private_rng(seed: int) -> Iterator[None]:
    """Seed torch's global generator for a block, and restore it afterwards.

    Initialisation and dropout draw from the global generator, so blocks in different threads wait for each
    other: a threaded backtest gives what a sequential one gives. A block within a block of the same thread
    leaves the random state of the outer one as it was.

    Parameters
    ----------
    seed : int
        Seed within the block.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.engine.state import private_rng
    >>> before = torch.get_rng_state()
    >>> with private_rng(0):
    ...     _ = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    with _LOCK, kept_rng():
        torch.manual_seed(seed)
        yield


@contextmanager
def own_state() -> Iterator[None]:
    """Shield a block from what the caller has set in torch: gradients, automatic precision, defaults.

    New tensors are float32 on the processor, unless code says otherwise. The default dtype is that of all
    threads: it is float32 while any of them is in such a block.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.engine.state import own_state
    >>> with torch.inference_mode(), own_state():
    ...     torch.is_grad_enabled()
    True
    """
    with _DTYPE_LOCK:
        before = _CALLERS[0][1] if _CALLERS else torch.get_default_dtype()
        block = threading.get_ident(), before
        _CALLERS.append(block)
        torch.set_default_dtype(torch.float32)
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
            if torch.get_default_device().type != "cpu":
                stack.enter_context(torch.device("cpu"))
            for kind in ("cpu", *(["cuda"] if torch.cuda.is_available() else [])):
                stack.enter_context(torch.autocast(kind, enabled=False))
            yield
    finally:
        with _DTYPE_LOCK:
            if len(_CALLERS) == 1:  # the last block restores it
                torch.set_default_dtype(before)
            _CALLERS.remove(block)


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
