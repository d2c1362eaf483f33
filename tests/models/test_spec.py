"""Models and their host classes: one specification, short classes, complete documentation."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from outside_hosts import LevelForecaster, LevelModel
from sktime.datasets import load_airline

import taylorformer_forecast.darts as darts_host
import taylorformer_forecast.sktime as sktime_host
from taylorformer_forecast.core.attention.registry import KERNELS
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.darts._base import BaseForecastModel
from taylorformer_forecast.models import specs
from taylorformer_forecast.models.documentation import document
from taylorformer_forecast.models.spec import ModelSpec, Task

# --- what a specification says is what the host classes have ------------------------------------------------

FORECASTERS = {name: getattr(sktime_host, name) for name in sktime_host.__all__ if "Forecaster" in name}
MODELS = {name: getattr(darts_host, name) for name in darts_host.__all__ if name.endswith("Model")}
HOSTS = {**FORECASTERS, **MODELS, "LevelForecaster": LevelForecaster, "LevelModel": LevelModel}
SPECS = [getattr(specs, name) for name in specs.__all__]


def test_default_options_are_copies():
    options = specs.TNP.defaults
    options["d_model"] = -1
    assert specs.TNP.defaults["d_model"] > 0


def parameters(host):
    """Parameters of the constructor."""
    return {name: p for name, p in inspect.signature(host.__init__).parameters.items() if name != "self"}


def spec_of(host):
    """Specification of the model of a host class."""
    return host._module_class.spec if issubclass(host, BaseForecastModel) else host.spec


def test_every_model_is_offered_by_both_hosts():
    for hosts in (FORECASTERS, MODELS):
        assert sorted(spec_of(host).name for host in hosts.values()) == sorted(spec.name for spec in SPECS)


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_defaults_of_host_classes_are_those_of_the_specification(host):
    spec, own = spec_of(host), {name: p.default for name, p in parameters(host).items()}
    offered = spec.options(own)
    assert offered == {name: spec.defaults[name] for name in offered}
    assert set(spec.defaults) - set(own) <= {"order"}  # training in random order is sktime's alone
    for name in ("max_steps", "num_epochs"):
        assert own.get(name, getattr(spec, name)) == getattr(spec, name)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_hosts_agree_on_defaults(spec):
    first, second = (
        {name: p.default for name, p in parameters(host).items()}
        for host in (*FORECASTERS.values(), *MODELS.values())
        if spec_of(host) is spec
    )
    shared = set(first) & set(second)
    assert {*spec.defaults, "lr", "time_features"} - {"order"} <= shared
    assert {name: first[name] for name in shared} == {name: second[name] for name in shared}


def code_lines(node, source):
    """Lines of code of a class: without docstrings, comments and blank lines."""
    kept = set(range(node.lineno, node.end_lineno + 1))
    for part in ast.walk(node):
        if isinstance(part, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(part) is not None:
            kept -= set(range(part.body[0].lineno, part.body[0].end_lineno + 1))
    lines = source.splitlines()
    return sum(1 for number in kept if (line := lines[number - 1].strip()) and not line.startswith("#"))


WRITTEN = {**FORECASTERS, **MODELS}


@pytest.mark.parametrize("host", WRITTEN.values(), ids=WRITTEN)
def test_a_host_class_has_at_most_sixty_lines_of_code(host):
    source = Path(inspect.getfile(host)).read_text()
    (node,) = (n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == host.__name__)
    assert code_lines(node, source) <= 60


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_constructors_and_public_methods_are_typed(host):
    own = [each for each in host.__mro__ if each.__module__.startswith("taylorformer_forecast.")]
    for each in own:
        for name, method in vars(each).items():
            method = getattr(method, "__func__", method)
            if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
                signature = inspect.signature(method)
                given = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
                untyped = [p.name for p in given if p.annotation is p.empty]
                assert not untyped, (each, name)
                assert signature.return_annotation is not signature.empty, (each, name)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_model_takes_full_and_local_attention(spec):
    n_columns = 2 if spec.shares_windows else 1
    task = Task(n_context=60, horizon=4, n_columns=n_columns)
    torch.manual_seed(0)
    t = torch.arange(-59.0, 5.0).expand(3, -1) / 60
    w = Window(t, torch.randn(3, 64, n_columns), n_context=60)
    found = []
    for attention in ("full", "local"):
        torch.manual_seed(0)
        net = spec.build(task, attention=attention).eval()
        for parameter in net.parameters():
            parameter.data += 0.2 * torch.randn_like(parameter)
        found.append(net(w))
    assert not torch.allclose(found[0].mean, found[1].mean)


STEPWISE = [name for name, kernel in KERNELS.items() if kernel.has("one_query")]
WRONG = [
    (specs.TAYLORFORMER, {"d_model": 5, "n_heads": 2}, "d_model=5 is not a multiple of n_heads=2"),
    (specs.TAYLORFORMER, {"n_layers": 1}, "n_layers=1, but each stream needs at least 2"),
    (specs.TAYLORFORMER, {"taylor_order": 2}, "taylor_order=2, but it must be 0 or 1"),
    (specs.TAYLORFORMER, {"attention": "prob"}, "attention='prob' does not answer one query at a time"),
    (
        specs.TAYLORFORMER,
        {"attention": "fast"},
        f"attention='fast' is neither a kernel nor one of {STEPWISE}",
    ),
    (specs.LAM, {"d_model": 5}, "d_model=5 must be even and a multiple of n_heads=2"),
    (specs.LAM, {"attention": "fast"}, "attention='fast' is neither a kernel nor one of"),
    (specs.LAM, {"preset": "paper"}, "preset='paper' is neither 'modern' nor 'faithful'"),
    (specs.CONTIFORMER, {"d_model": 5}, "d_model=5 is not a multiple of n_heads=2"),
    (specs.CONTIFORMER, {"dynamics": "cubic"}, "dynamics='cubic' is not one of"),
    (specs.CONTIFORMER, {"joint": True, "dynamics": "mlp"}, "dynamics='mlp' with solver=None"),
    (specs.CONTIFORMER, {"attention": "prob"}, "a score is an average over the way between two points"),
    (specs.CONTIFORMER, {"attention": "local", "joint": True}, "='local': paths "),
    (specs.TNP, {"attention": "prob"}, "does not answer one query at a time"),
    (specs.UNN, {"attention": "prob"}, "gives no weights before the values are known"),
    (specs.TNP, {"d_model": 5}, "d_model=5 is not a multiple of n_heads=2"),
    (specs.UNN, {"d_model": 5}, "d_model=5 is not a multiple of n_heads=8"),
]


@pytest.mark.parametrize(("spec", "settings", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_errors_name_options_of_the_model_alone(spec, settings, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        spec.build(Task(n_context=8, horizon=4), **settings)
    text = str(caught.value)
    assert set(re.findall(r"(\w+)=", text)) <= set(spec.defaults)
    assert "head_dim" not in text


# --- documentation ------------------------------------------------------------------------------------------


def documented(host):
    """Parameters in the docstring, in order: name and what follows it."""
    text = re.search(r"\nParameters\n-+\n(.*?)(?=\n\n\w[\w ]*\n---|\Z)", inspect.getdoc(host), re.S)[1]
    return re.findall(r"^(\S+)(?: : (.*))?\n    \S", text, re.M)


@pytest.mark.parametrize(
    "host",
    [
        *HOSTS.values(),
        sktime_host.TaylorformerImputer,
        sktime_host.ContiFormerImputer,
        sktime_host.ContiFormerClassifier,
    ],
    ids=lambda h: h.__name__,
)
def test_every_parameter_is_documented_once_in_order_with_its_default(host):
    found = documented(host)
    assert [name.lstrip("*") for name, _ in found] == list(parameters(host))
    for (name, text), parameter in zip(found, parameters(host).values(), strict=True):
        if parameter.default is parameter.empty:
            assert "default" not in text, name
        elif text.endswith(", optional"):
            assert parameter.default is None, name
        else:
            assert ast.literal_eval(re.search(r", default=(.*)$", text)[1]) == parameter.default, name


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_no_placeholder_is_left_in_the_parameters(host):
    text = host.__doc__[host.__doc__.index("Parameters\n---") :]
    assert not re.search(r"\{[a-z_]+\}", text)


@pytest.mark.parametrize("host", [*HOSTS.values(), sktime_host.TaylorformerImputer])
def test_statistical_forecasts_are_promised_by_classes_that_have_them(host):
    has_them = "strategy" in parameters(host)
    assert ("Easter" in host.__doc__) == ("tatistical forecasts" in host.__doc__) == has_them


def test_help_shows_the_complete_text():
    shown = subprocess.run(
        [sys.executable, "-m", "pydoc", "taylorformer_forecast.sktime.tnp.TNPForecaster"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "value_noise : float, default=0.0" in shown
    assert "Peak learning rate" in shown
    assert "Attributes" in shown


def test_the_docstring_of_a_class_comes_before_those_of_its_model_and_of_its_bases():
    def build(task, *, a=1, b=2):
        """Build.

        Parameters
        ----------
        a : int
            Of {name}.

            More.
        b : int
            Not this.
        """

    class Base:
        """Base.

        Parameters
        ----------
        a : int
            Not this.
        c : str
            Last.

        Attributes
        ----------
        z : int
            Own.
        """

    class Small(Base):
        """Short.

        Parameters
        ----------
        b : int
            Own.

        Examples
        --------
        >>> 1
        1
        """

        def __init__(self, a: int, b: int = 2, c: str | None = None, d: float = 0.5) -> None: ...

    spec = ModelSpec("three", build)
    document(Small, spec)
    lines = [*("Short.", "", "Parameters", "----------", "a : int", "    Of three.", "", "    More.")]
    lines += [*("b : int, default=2", "    Own.", "c : str, optional", "    Last.", "")]
    lines += ["Attributes", "----------", "z : int", "    Own.", ""]
    assert Small.__doc__ == "\n".join([*lines, "Examples", "--------", ">>> 1", "1"])

    class Smaller(Small):
        """Shorter."""

    document(Smaller, spec)
    assert Smaller.__doc__.count("default=2") == Smaller.__doc__.count("optional") == 1


def test_a_class_without_docstring_stays_without():
    class Bare:
        def __init__(self, a: int = 1) -> None: ...

    document(Bare, specs.TNP)
    assert Bare.__doc__ is None


def test_a_subclass_that_names_no_model_keeps_its_docstring_and_the_parameters_that_it_fixes():
    class Narrow(LevelForecaster):
        """Narrow."""

        def __init__(self, max_steps=2, random_state=None):
            super().__init__(width=2, max_steps=max_steps, random_state=random_state)

    assert Narrow.__doc__ == "Narrow."
    forecaster = Narrow(random_state=0).fit(load_airline())
    assert (forecaster.width, forecaster.max_steps) == (2, 2)
    assert forecaster.network_.layers[0].out_features == 2


def test_the_context_of_joined_columns_shrinks_with_their_number():
    assert [specs.UNN.context(n) for n in (1, 2, 4, 100)] == [192, 192, 96, 32]
    assert specs.TNP.context(100) == 192
