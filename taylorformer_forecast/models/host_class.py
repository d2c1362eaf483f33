"""Classes of hosts that are made for a network, as users add one: constructors by a template."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from taylorformer_forecast.models.spec import ModelSpec

__all__ = ["make_class", "signature_of"]


def signature_of(
    template: Callable[..., Any], spec: ModelSpec, defaults: dict[str, Any]
) -> inspect.Signature:
    """Signature of a template, where the options of a model stand in the place of ``options``.

    Parameters
    ----------
    template : callable
        Has a parameter ``options``, which no class has.
    spec : ModelSpec
        The model.
    defaults : dict
        Default values that are not those of the template.

    Raises
    ------
    ValueError
        If an option of the model has the name of a parameter of the template.

    Examples
    --------
    >>> from taylorformer_forecast.models.host_class import signature_of
    >>> from taylorformer_forecast.models.spec import ModelSpec
    >>> def template(self, length, options=(), lr=0.1): ...
    >>> def build(task, *, width=8): ...
    >>> signature_of(template, ModelSpec("eight", build), {"lr": 0.01})
    <Signature (self, length, width=8, lr=0.01)>
    """
    parameters: list[inspect.Parameter] = []
    shared = inspect.signature(template).parameters
    if taken := sorted(shared.keys() & spec.defaults.keys()):
        raise ValueError(
            f"the network has an option {taken[0]!r}, but all classes have a parameter of this name"
        )
    for name, one in shared.items():
        if name == "options":
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters += [
                inspect.Parameter(own, kind, default=value) for own, value in spec.defaults.items()
            ]
        else:
            parameters.append(one.replace(default=defaults.get(name, one.default)))
    return inspect.Signature(parameters)


def make_class(
    base: type,
    name: str,
    module: str,
    signature: inspect.Signature,
    set_up: Callable[[Any, dict[str, Any]], None],
    **attributes: Any,
) -> type:
    """Class with a constructor of the given signature.

    The options of the model may be anything, whatever the package's own models call by their names.

    Parameters
    ----------
    base : type
        Its base.
    name, module : str
        Where it will be found: pickles name it.
    signature : Signature
        Of the constructor, with ``self``.
    set_up : callable
        What the constructor does with its arguments, by name.
    **attributes
        Attributes of the class.
    """

    def __init__(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        set_up(args[0], bound.arguments)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__, __init__.__module__ = f"{name}.__init__", module
    return type(name, (base,), {"__module__": module, "__init__": __init__, **attributes})
