"""The examples that a newcomer runs first: they run, and save their picture."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "name", ["first_forecast_sktime", "first_forecast_darts", "irregular_times", "what_if"]
)
def test_an_example_runs_and_saves_its_picture(name, run_script, tmp_path):
    printed = run_script(EXAMPLES / f"{name}.py", "--output", tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    assert printed
