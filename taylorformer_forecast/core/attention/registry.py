"""Kernels by name, and what a network may demand of a kernel.

Networks take a name in :data:`KERNELS`, a kernel or a plain function as their ``attention`` argument:
``attention="local"`` or ``attention=Local(window=16)``. They refuse one without the forms that they need.
ContiFormer, whose keys move in time, takes "full" and "local" alone.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from taylorformer_forecast.core.attention.autocorrelation import AutoCorrelation
from taylorformer_forecast.core.attention.kernels import Full, FunctionKernel, Kernel
from taylorformer_forecast.core.attention.local import Local
from taylorformer_forecast.core.attention.prob import Prob

Attention = str | Callable[..., Tensor]

KERNELS: dict[str, Kernel] = {
    "full": Full(),
    "local": Local(),
    "prob": Prob(),
    "autocorrelation": AutoCorrelation(),
}

LACKS = {  # what it means not to have a form, where a network needs it
    "one_query": "does not answer one query at a time, so that the likelihood of a point given earlier ones "
    "would not be exact",
    "weigh": "gives no weights before the values are known, which this network needs",
}


def register(name: str, kernel: Kernel) -> Kernel:
    """Give a kernel a name, which networks accept, and return it.

    Parameters
    ----------
    name : str
        Name, for ``attention=name``.
    kernel : Kernel
        The kernel.

    Returns
    -------
    Kernel
        The kernel.

    Raises
    ------
    ValueError
        If the name is taken.
    TypeError
        If the kernel is none: a class, for example.

    Examples
    --------
    >>> from taylorformer_forecast.core.attention.local import Local
    >>> from taylorformer_forecast.core.attention.registry import KERNELS, find_kernel, register
    >>> register("local-8", Local(window=8)) is find_kernel("local-8")
    True
    >>> del KERNELS["local-8"]
    """
    if name in KERNELS:
        raise ValueError(f"there is a kernel named {name!r} already")
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel={kernel!r}, but it must be an instance of a subclass of Kernel")
    KERNELS[name] = kernel
    return kernel


def find_kernel(attention: Attention, needs: str | None = None) -> Kernel:
    """Return a kernel by its name in :data:`KERNELS`; a kernel itself passes, a function becomes one.

    Parameters
    ----------
    attention : str, Kernel or callable
        Name, kernel, or function ``f(q, k, v, mask, scale)``, which has the whole-sequence form only.
    needs : {"one_query", "weigh"}, optional
        Form that the kernel must have
        (:meth:`~taylorformer_forecast.core.attention.kernels.Kernel.has`).

    Returns
    -------
    Kernel
        The kernel.

    Raises
    ------
    ValueError
        If there is no kernel of that name, or it lacks the form, or it holds weights.

    Examples
    --------
    >>> from taylorformer_forecast.core.attention.registry import find_kernel
    >>> find_kernel("local", needs="one_query").reach(720)
    28
    >>> find_kernel(lambda q, k, v, mask, scale: v).has("one_query")
    False
    """
    suitable = [name for name, known in KERNELS.items() if needs is None or known.has(needs)]
    if isinstance(attention, str):
        if attention not in KERNELS:
            raise ValueError(f"attention={attention!r} is neither a kernel nor one of {suitable}")
        kernel = KERNELS[attention]
    else:
        kernel = attention if isinstance(attention, Kernel) else FunctionKernel(attention)
    if _holds_weights(kernel):
        raise ValueError(
            f"attention={attention!r} holds weights, which would not be trained: one kernel serves all layers"
        )
    if needs is not None and not kernel.has(needs):
        raise ValueError(
            f"attention={attention!r} {LACKS[needs]}: take {' or '.join(map(repr, suitable))}, or a kernel "
            f"whose class defines both __call__ and {needs}"
        )
    return kernel


def _holds_weights(kernel: Kernel) -> bool:
    """Whether a kernel is or has a module with weights, or has a weight."""
    held = [kernel, *vars(kernel).values()]
    modules = [part for part in held if isinstance(part, nn.Module)]
    return any(isinstance(part, nn.Parameter) for part in held) or any(
        True for module in modules for _ in module.parameters()
    )
