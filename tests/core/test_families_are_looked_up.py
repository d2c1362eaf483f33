"""No module asks of what kind a distribution, a family or a likelihood is: the registry and one table do."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch.distributions

import taylorformer_forecast

ROOT = Path(taylorformer_forecast.__file__).parent
KINDS = ("torch.distributions", "taylorformer_forecast.core.families", "darts.utils.likelihood_models")
LIKELIHOODS = ROOT / "darts" / "likelihoods.py"
FILES = sorted(path for path in ROOT.rglob("*.py") if "families" not in path.parts)


OWN = {
    node.name
    for path in (ROOT / "core" / "families").glob("*.py")
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ClassDef)
}


def imported_kinds(tree):
    """Names of classes of distributions, families and likelihoods, however a module comes by them."""
    found = {"FamilyLikelihood", "StudentTLikelihood", "LikelihoodDistribution", "LikelihoodFamily"}
    found |= OWN | set(torch.distributions.__all__)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(KINDS):
            found |= {alias.asname or alias.name for alias in node.names}
    return {name for name in found if name[0].isupper() and not name.isupper()} | {"distributions"}


def names_in(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | {
        part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)
    }


def questions(tree):
    """Lines that ask of what kind an object is."""
    kinds = imported_kinds(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            asks = node.func.id in ("isinstance", "issubclass") and names_in(node.args[1]) & kinds
            guesses = node.func.id in ("hasattr", "getattr") and "distribution" in ast.unparse(node.args[0])
            if asks or guesses:
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Compare):
            asks = any(
                isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "type"
                for part in [node.left, *node.comparators]
            )
            if asks and names_in(node) & kinds:
                yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_asks_what_a_distribution_is(path):
    assert list(questions(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(d, Normal)",
        "isinstance(d, (int, Normal))",
        "type(d) is Normal",
        "type(d) in (int, Normal)",
        "getattr(distribution, 'score', None)",
        "isinstance(x, FamilyLikelihood)",
        "isinstance(d, td.StudentT)",
        "issubclass(type(f), families.NormalFamily)",
    ],
)
def test_such_questions_are_found(line):
    assert list(questions(ast.parse(f"from torch.distributions import Normal\n{line}")))


def test_classes_of_likelihoods_are_listed_in_one_table():
    tree = ast.parse(LIKELIHOODS.read_text())
    table = next(
        node
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "ADAPTERS"
    )
    own = {name for name in imported_kinds(tree) if name.endswith(("Likelihood", "Regression"))}
    own -= {"TorchLikelihood", "FamilyLikelihood", "StudentTLikelihood"}  # bases and annotations
    outside = [node for node in tree.body if node is not table and not isinstance(node, ast.ImportFrom)]
    assert not own & set().union(*(names_in(node) for node in outside))
    assert own <= names_in(table)
    for path in FILES:
        if path != LIKELIHOODS:
            assert "darts.utils.likelihood_models.torch" not in path.read_text()
