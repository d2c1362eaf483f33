"""Parameters that are documented once and shown by every class that has them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from textwrap import dedent
from typing import Any

# Sizes that most networks have.
SIZES = """
d_model : int
    Width of the network.
n_heads : int
    Attention heads.
n_layers : int
    Layers.
dropout : float
    Dropout in training.
"""

RULED = re.compile(r"^(\w[\w ]*)\n-+$", re.M)  # titles of sections
ENTRY = re.compile(r"^(\S+)(?: : (.*))?\n((?:[ ]+.*(?:\n|$)|\n)*)", re.M)
PLACEHOLDER = re.compile(r"\{([a-z_]\w*)\}")


def document(cls: type, texts: Iterable[str], facts: Mapping[str, Any], sections: str = "") -> None:
    r"""Complete the section "Parameters" of the docstring of a class, in the order of its constructor.

    Each parameter is described by the first text that has it; the docstring itself comes before the others.
    Default values are those of the constructor. A parameter that is in none of them is left out.

    Parameters
    ----------
    cls : type
        The class, whose ``__doc__`` is set.
    texts : iterable of str
        Sections "Parameters" without title and without default values. ``{name}`` stands for a fact.
    facts : mapping of str to Any
        What placeholders stand for.
    sections : str, default=""
        Further sections, which follow the parameters.

    Examples
    --------
    >>> from taylorformer_forecast.models.documentation import document
    >>> class Forecaster:
    ...     '''Forecast.'''
    ...
    ...     def __init__(self, width: int = 8): ...
    >>> document(Forecaster, ["width : int\n    Width, at most {most}."], {"most": 64})
    >>> Forecaster.__doc__.splitlines()[-2:]
    ['width : int, default=8', '    Width, at most 64.']
    """
    if not cls.__doc__:  # python -OO leaves none
        return
    before, own, after = _split(inspect.cleandoc(cls.__doc__))
    known: dict[str, tuple[str, str]] = {}
    for text in (own, *texts):
        for name, kind, body in ENTRY.findall(dedent(text)):
            known.setdefault(name, (kind, body.rstrip()))
    lines = []
    for parameter in list(inspect.signature(inspect.getattr_static(cls, "__init__")).parameters.values())[1:]:
        name = f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
        if name in known:
            kind, body = known[name]
            lines.append(f"{name} : {kind}{_default(kind, parameter)}" if kind else name)
            lines.append(body)
    text = "\n".join(["Parameters", "----------", *lines])
    text = PLACEHOLDER.sub(lambda found: str(facts[found[1]]), text)
    parts = (before, text, dedent(sections).strip(), after)
    cls.__doc__ = "\n\n".join(part for part in parts if part)


def _split(doc: str) -> tuple[str, str, str]:
    """What precedes the parameters, the parameters, and the sections after them."""
    titles = list(RULED.finditer(doc))
    if not titles:
        return doc, "", ""
    first = titles[0]
    if first[1] != "Parameters":
        return doc[: first.start()].strip(), "", doc[first.start() :]
    end = titles[1].start() if len(titles) > 1 else len(doc)
    return doc[: first.start()].strip(), doc[first.end() : end], doc[end:]


def _default(kind: str, parameter: inspect.Parameter) -> str:
    """What a docstring adds to the type of a parameter that has a default value."""
    value = parameter.default
    if value is parameter.empty:
        return ""
    if value is None and "None" not in kind:
        return ", optional"
    return f', default="{value}"' if isinstance(value, str) else f", default={value!r}"
