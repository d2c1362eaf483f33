"""The site is built without a warning; the code of its pages is run by the tests of pages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_site_is_built_without_a_warning(tmp_path):
    """Links, pictures, lists of contents, reference; built of a copy, as Sphinx writes beside pages."""
    pytest.importorskip("myst_nb")  # an environment made before the extra `test` had it
    ignored = shutil.ignore_patterns("generated")
    docs = shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=ignored)
    for part in ("CONTRIBUTING.md", "CHANGELOG.md"):  # of a page
        shutil.copy(ROOT / part, tmp_path)
    for shown in ("examples", "taylorformer_forecast"):
        (tmp_path / shown).symlink_to(ROOT / shown)
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-D", "nb_execution_mode=off"]
    options += ["-D", "suppress_warnings=myst-nb.lexer"]  # it is told by the kernel, which is not started
    command = [sys.executable, "-W", "ignore", "-m", "sphinx", *options, str(docs), str(tmp_path / "site")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for page in docs.rglob("*.md"):
        assert (tmp_path / "site" / page.relative_to(docs)).with_suffix(".html").exists(), page
    for name, methods in (
        ("sktime.TaylorformerForecaster", ("fit", "predict", "predict_interval", "save", "summary")),
        ("darts.TaylorformerModel", ("fit", "predict", "historical_forecasts", "backtest", "save", "load")),
    ):
        page = (tmp_path / f"site/generated/taylorformer_forecast.{name}.html").read_text()
        for method in methods:  # what users call is there, what only hosts call is not
            assert f'id="taylorformer_forecast.{name}.{method}"' in page
        assert f'id="taylorformer_forecast.{name}.spec"' not in page
