"""The README is true: its self-contained code runs."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = [block for block in re.findall(r"```python\n(.*?)```", README, re.S) if "import" in block]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_code_of_the_readme_runs(block):
    namespace = {}
    exec(block, namespace)
    assert len(namespace["paths"]) > 0


def test_commands_of_the_readme_exist():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    for target in re.findall(r"`make (\w+)`", README):
        assert re.search(rf"^{target}:", makefile, re.M), target
