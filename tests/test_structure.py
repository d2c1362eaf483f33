"""What the design asks of the code: layers without cycles, no probing, plain words, short files."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
import pytest

import taylorformer_forecast

ROOT = Path(taylorformer_forecast.__file__).parent
NAME = ROOT.name
FILES = {
    ".".join([NAME, *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}
TREES = {module: ast.parse(path.read_text()) for module, path in FILES.items()}
# Every layer may import those before it, and itself. The hosts import neither each other nor are imported.
# Pictures are above them.
LAYERS = ("defaults", "core", "baselines", "models", "calendar", "engine", "host", "plot")
HOSTS = ("sktime", "darts")
# Words that the glossary replaces: those of the left column that have no other use here, as parts of names.
PRIVATE_WORDS = (
    "anchor",
    "answers",
    "best_continuation",
    "best_repetition",
    "best_smoothing",
    "corrected_forecast",
    "drafts",
    "fills",
    "gentle",
    "honest",
    "look",
    "made_up",
    "on_lines",
    "overlap",
    "stretch",
    "styles",
    "time_courses",
    "timemap",
    "told",
    "trial",
    "trust",
    "widen",
)
# Where the value of a number in ``defaults`` may come from, and numbers that stay beside their use.
SOURCES = ("published", "by definition", "measured", "by hand")
NO_DEFAULTS = {
    "tolerances of rounding": ("FLAT", "JITTER", "LARGEST", "PARTS", "ROUNDING", "TIE", "TINY", "TOLERANCE"),
    "points of quadrature": ("NODES", "PANELS", "PIECES", "REACH", "STEPS", "TAIL"),
    "ends of a search": ("LAST_STEP", "ROUGH_STEP"),
    "derived from the defaults": ("BASE", "MOST_PAST"),
    "a single value": (
        "CERTAIN",
        "POINT_MASS",
    ),
    "units": (
        "CYCLES",
        "DAYS_OF_MONTH",
        "LONGEST_MONTH",
        "MOST_RATIO",
        "SHORTEST_MONTH",
        "UNITS",
        "UNIT_SCALE",
        "WEEK",
        "YEAR",
        "WEEKDAYS",
        "YEARS_OF_DATES",
    ),
    "rounds that more would not change": ("N_ITERATIONS", "N_ROUNDS", "N_STEPS"),
    "bounds of what is divided by": (
        "FARTHEST_LOG",
        "LEAST_VARIANCE",
        "SETTLED",
        "MOST_VARIANCE",
        "RIDGE",
        "SMALLEST_PART",
    ),
    "speed alone": (
        "FEW_SCORES",
        "FUSED_WIDTH",
        "LONGEST_CONTEXT_PERIOD",
        "MOST_COMPARED_SERIES",
        "N_COMPARED_ORIGINS",
        "SEGMENT",
        "SHORT",
    ),
    "memory alone": ("MOST_CORRECTED_STEPS",),
    "what a file may hold": ("FILE_LIMITS",),
    "what stands for missing values or errors": ("CODES", "FAR_IN_RANGES"),
    "checkpoints of TensorFlow": ("FOOTER_SIZE", "HANDLES_SIZE", "POLYNOMIAL", "PUBLISHED_HEADS"),
    "sizes of tokens": (
        "BOUNDED",
        "DIM_STEP",
        "DIM_VALUES",
        "N_OF_STEP",
        "N_PHASES",
        "N_SEEN",
        "PATCH",
        "SIGNED_VALUES",
    ),
    "settings of sktime's own tests": ("ONE_SEASON", "SMALL", "VALIDATED"),
}
# darts' own argument of ``load``, which says that a file is safe to unpickle.
FOREIGN_WORDS = ("trusted",)


def layer(module: str) -> str:
    """Layer of a module; the package itself is above all."""
    part = module.split(".")[1] if "." in module else "host"
    return "host" if part in HOSTS else part


def imported(module: str) -> set[str]:
    """Modules of the package that a module imports anywhere: in functions and for type checking too."""
    found = set()
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(NAME):
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & set(FILES)
            found |= inner or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith(NAME)}
    return found & set(FILES) - {module}


def functions(tree: ast.AST) -> list[ast.FunctionDef]:
    """All functions and methods."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def code_lines(node: ast.AST, source: str) -> int:
    """Lines of a node with code: neither docstrings nor comments nor blank lines."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = set(
        chain.from_iterable(
            range(inner.body[0].lineno, inner.body[0].end_lineno + 1)
            for inner in ast.walk(node)
            if isinstance(inner, documented) and ast.get_docstring(inner) is not None
        )
    )
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", len(source.splitlines()))
    lines = source.splitlines()[first - 1 : last]
    return sum(
        1
        for number, line in enumerate(lines, first)
        if line.strip() and not line.strip().startswith("#") and number not in docs
    )


@pytest.mark.parametrize("module", [m for m in FILES if m != NAME and layer(m) != "synthetic"])
def test_a_module_imports_its_own_layer_and_those_below(module):
    own = LAYERS.index(layer(module))
    for other in imported(module):
        assert other != NAME, "the package itself imports lazily, for users"
        assert layer(other) in LAYERS, f"{module} imports {other}"
        assert LAYERS.index(layer(other)) <= own, f"{module} imports {other}"
        if layer(other) == layer(module) == "host":
            assert other.split(".")[1] == module.split(".")[1], f"{module} imports {other}"


def test_there_are_no_cycles():
    graph = {module: imported(module) for module in FILES if module != NAME}
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join([*above[above.index(module) :], module])
        if module not in done:
            for other in sorted(graph.get(module, ())):
                visit(other, (*above, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize(
    "module", [m for m in FILES if layer(m) in ("core", "baselines", "models", "engine")]
)
def test_pandas_and_hosts_stay_at_the_edge(module):
    outside = {"pandas", "sktime", "skpro", "darts", "sklearn"}
    for node in ast.walk(TREES[module]):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not {name.split(".")[0] for name in names} & outside, f"{module}: {names}"


@pytest.mark.parametrize("module", [m for m in FILES if m != f"{NAME}.core.protocol"])
def test_networks_are_asked_and_never_probed(module):
    """Callers ask a network for what its class says; they do not look whether it has something."""
    asked = re.compile(r"(hasattr|getattr|isinstance)\((\w+\.)*(net|network_?)\b")
    assert not asked.findall(FILES[module].read_text()), module


@pytest.mark.parametrize("module", FILES)
def test_names_are_those_of_the_field(module):
    names = set(module.split("."))
    for node in ast.walk(TREES[module]):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    own = {n for n in names if n.lower() not in FOREIGN_WORDS}
    spelt = {n: re.sub(r"([a-z])([A-Z])", r"\1_\2", n).lower().strip("_") for n in own}
    assert not {n: w for n, parts in spelt.items() for w in PRIVATE_WORDS if f"_{w}_" in f"_{parts}_"}


@pytest.mark.parametrize("module", FILES)
def test_files_and_functions_are_short(module):
    source = FILES[module].read_text()
    assert len(source.splitlines()) <= 300 or layer(module) == "defaults"  # a list
    for function in functions(TREES[module]):
        assert code_lines(function, source) <= 60, f"{module}.{function.name}"


def is_number(node: ast.expr | None) -> bool:
    """Whether an expression has constants, and they are numbers; keys of dictionaries are no matter."""
    parts = node.values if isinstance(node, ast.Dict) else [node] if node is not None else []
    values = [n.value for part in parts for n in ast.walk(part) if isinstance(n, ast.Constant)]
    return bool(values) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def numbers(tree: ast.Module) -> dict[str, ast.stmt]:
    """Constants of a module and of its classes that are numbers, by name."""
    found = {}
    for body in [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        for node in body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [n.id for t in targets if t is not None for n in ast.walk(t) if isinstance(n, ast.Name)]
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and is_number(node.value):
                found |= {name: node for name in names if name.isupper()}
    return found


@pytest.mark.parametrize("module", [m for m in FILES if layer(m) not in ("defaults", "synthetic")])
def test_numbers_that_shape_a_forecast_stand_among_the_defaults(module):
    allowed = set(chain.from_iterable(NO_DEFAULTS.values()))
    own = {name for name in numbers(TREES[module]) if not name.endswith("_AT_ONCE")}
    assert not own - allowed


def test_a_default_has_one_name_and_a_line_on_where_its_value_comes_from():
    module = f"{NAME}.defaults"
    lines, found = FILES[module].read_text().splitlines(), numbers(TREES[module])
    assigned = [node for node in TREES[module].body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    assert len(found) == len(assigned), "one name for each, assigned once, and a number"
    for name, node in found.items():
        above, beside = lines[node.lineno - 2], lines[node.end_lineno - 1].partition("#")[2]
        comment = beside or (above if above.startswith("# ") and not above.startswith("# ---") else "")
        assert any(source in comment for source in SOURCES), name


def test_every_default_is_used():
    names = (node for module in FILES for node in ast.walk(TREES[module]) if isinstance(node, ast.Name))
    used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    assert not set(numbers(TREES[f"{NAME}.defaults"])) - used


def public_methods(host: str) -> list[Callable[..., object]]:
    """Constructors and public methods of the public classes of a host, as far as they are the package's."""
    module = importlib.import_module(f"{NAME}.{host}")
    classes = [one for one in (getattr(module, name) for name in module.__all__) if inspect.isclass(one)]
    found = [member for cls in classes for member in inspect.getmembers(cls, inspect.isroutine)]
    public = [one for name, one in found if name == "__init__" or not name.startswith("_")]
    return [one for one in public if str(getattr(one, "__module__", None)).startswith(NAME)]


@pytest.mark.parametrize("host", HOSTS)
def test_users_call_nothing_that_has_no_types(host):
    """``mypy --strict`` finds no call to an untyped function in the code of a user."""
    methods = public_methods(host)
    assert len(methods) > 10
    for method in methods:
        signature = inspect.signature(method)
        given = [p for name, p in signature.parameters.items() if name not in ("self", "cls")]
        assert all(p.annotation is not p.empty for p in given), method.__qualname__
        assert signature.return_annotation is not signature.empty, method.__qualname__


def passed(work: Callable[[], object]) -> set[tuple[str, str]]:
    """Files and names of the functions of the package that are called."""
    found = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_qualname
        if event == "call" and path.is_relative_to(ROOT) and not name.endswith(">"):
            found.add((str(path.relative_to(ROOT)), name))

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def test_the_map_of_the_baselines_has_every_module():
    named = importlib.import_module(f"{NAME}.baselines").__doc__
    for path in (ROOT / "baselines").glob("[!_]*.py"):
        assert re.search(rf"^    {path.stem} |``{path.stem}``", named, re.M), path.stem


def test_a_reader_of_the_default_fit_and_forecast_passes_few_files():
    """144 months of airline-like data; what was loaded or compiled by a fit before does not count."""
    month = np.arange(144)
    values = np.exp(5 + month / 100 + 0.2 * np.sin(month * np.pi / 6) + 0.02 * np.sin(month**2))
    y = pd.Series(values, pd.period_range("1949-01", periods=144, freq="M"))
    forecaster = importlib.import_module(f"{NAME}.sktime").TaylorformerForecaster(random_state=0)
    forecaster.fit(y, fh=range(1, 13)).predict_interval()
    fit = passed(lambda: forecaster.clone().fit(y, fh=range(1, 13)))
    predict = passed(forecaster.predict_interval)
    assert 0 < len({path for path, _ in fit}) <= 22, sorted(fit)
    assert len(fit) <= 110, sorted(fit)
    assert 0 < len({path for path, _ in predict}) <= 36, sorted(predict)
    assert len(predict) <= 175, sorted(predict)


def test_no_test_but_that_of_all_models_lists_them():
    """Else a new model is left out; lists of some of them are meant."""
    folder, names = Path(__file__).parent, taylorformer_forecast._MODELS
    kinds = [{name + kind for name in names} for kind in ("", "Forecaster", "Model")]
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
                parts = node.keys if isinstance(node, ast.Dict) else node.elts
                found = {getattr(p, "id", getattr(p, "attr", getattr(p, "value", None))) for p in parts}
                assert not any(kind <= found for kind in kinds), f"{path.relative_to(folder)}:{node.lineno}"


def test_files_of_tests_have_names_of_their_own():
    """pytest imports them by name, whatever their folder."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
