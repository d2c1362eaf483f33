"""Parameters that are documented once and shown by every class that has them."""

from __future__ import annotations

import inspect
import re
from typing import Any

from taylorformer_forecast.models.spec import ModelSpec

RULED = re.compile(r"^(\w[\w ]*)\n-+$", re.M)  # titles of sections
ENTRY = re.compile(r"^(\S+)(?: : (.*))?\n((?:[ ]+.*(?:\n|$)|\n)*)", re.M)
DEFAULT = re.compile(r", (optional|default=.*)$")
INHERITED = ("Attributes", "Notes")  # sections that classes take from their bases
PLACEHOLDER = re.compile(r"\{([a-z_]\w*)\}")


class Documented:
    """Base of the classes of hosts: their docstrings are completed where they name a model.

    Parameters
    ----------
    d_model : int
        Width of the network.
    n_heads : int
        Attention heads.
    n_layers : int
        Layers.
    dropout : float
        Dropout in training.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if (spec := cls._named_model()) is not None:
            document(cls, spec)

    @classmethod
    def _named_model(cls) -> ModelSpec | None:
        """The model that the class itself names."""
        return vars(cls).get("spec")


def document(cls: type, spec: ModelSpec) -> None:
    r"""Complete the section "Parameters" of the docstring of a class, in the order of its constructor.

    Each parameter is described by the first docstring that has it: that of the class, of the function that
    builds its network, and of the bases of the class. Default values are those of the constructor, and
    ``{name}`` stands for a field of the specification. Sections "Attributes" and "Notes" of bases follow.

    Parameters
    ----------
    cls : type
        The class, whose ``__doc__`` is set.
    spec : ModelSpec
        Its model.

    Examples
    --------
    >>> from taylorformer_forecast.models.documentation import document
    >>> from taylorformer_forecast.models.spec import ModelSpec
    >>> def build(task, *, width=8):
    ...     '''Build.
    ...
    ...     Parameters
    ...     ----------
    ...     width : int
    ...         Width, by default of {name}.
    ...     '''
    >>> class Forecaster:
    ...     '''Forecast.'''
    ...
    ...     def __init__(self, width: int = 8): ...
    >>> document(Forecaster, ModelSpec("eight", build))
    >>> Forecaster.__doc__.splitlines()[-2:]
    ['width : int, default=8', '    Width, by default of eight.']
    """
    if not cls.__doc__:  # python -OO leaves none
        return
    own = _sections(cls)
    others = [_sections(getattr(spec.build, "func", spec.build)), *map(_sections, cls.__mro__[1:])]
    known: dict[str, tuple[str, str]] = {}
    for sections in (own, *others):
        for name, kind, body in ENTRY.findall(sections.get("Parameters", "")):
            known.setdefault(name, (DEFAULT.sub("", kind), body.rstrip()))
    lines = []
    for parameter in list(inspect.signature(inspect.getattr_static(cls, "__init__")).parameters.values())[1:]:
        name = f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
        if name in known:
            kind, body = known[name]
            lines.append(f"{name} : {kind}{_default(kind, parameter)}" if kind else name)
            lines.append(body)
    own["Parameters"] = PLACEHOLDER.sub(lambda found: str(vars(spec)[found[1]]), "\n".join(lines))
    for sections in others:
        own |= {title: sections[title] for title in INHERITED if title in sections and title not in own}
    titles = dict.fromkeys(["", "Parameters", *INHERITED, *own])
    parts = [f"{title}\n{'-' * len(title)}\n{own[title]}".strip() for title in titles if title in own]
    cls.__doc__ = "\n\n".join(parts)


def _sections(documented: object) -> dict[str, str]:
    """Sections of a docstring by title, what precedes them by an empty one."""
    before, *rest = RULED.split(inspect.cleandoc(documented.__doc__ or ""))
    texts = [text.strip("\n") for text in rest[1::2]]
    return {"": before.strip(), **dict(zip(rest[::2], texts, strict=True))}


def _default(kind: str, parameter: inspect.Parameter) -> str:
    """What a docstring adds to the type of a parameter that has a default value."""
    value = parameter.default
    if value is parameter.empty:
        return ""
    if value is None and "None" not in kind:
        return ", optional"
    return f', default="{value}"' if isinstance(value, str) else f", default={value!r}"
