"""The README and the pages of docs are true: their code runs, what they name is there."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import taylorformer_forecast
from taylorformer_forecast import darts, plot, sktime

ROOT = Path(__file__).parents[1]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text()
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
}
BLOCKS = [
    pytest.param(block, id=f"{name}-{number}")
    for name, text in PAGES.items()
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", text, re.S))
]
CELLS = {
    name: "\n".join(cells)
    for name, text in PAGES.items()
    if (cells := re.findall(r"```{code-cell}[^\n]*\n(.*?)```", text, re.S))
}


@pytest.mark.parametrize("code", [*BLOCKS, *(pytest.param(code, id=name) for name, code in CELLS.items())])
def test_code_of_a_page_runs(code):
    """Blocks run each by itself; the cells of a page run in order."""
    matplotlib.use("Agg")
    if "optuna" in code:  # an environment made before the extra `test` had it
        pytest.importorskip("optuna")
    exec(code, {"__name__": "page"})
    plt.close("all")


@pytest.mark.parametrize(
    ("code", "shown"), re.findall(r"```python\n([^`]*)```\n\n```text\n([^`]*)```", PAGES["README.md"])
)
def test_code_of_the_readme_prints_what_is_shown(code, shown, capsys):
    exec(code, {"__name__": "page"})
    printed = capsys.readouterr().out
    number = r"-?\d+\.?\d*"
    found, expected = ([float(n) for n in re.findall(number, text)] for text in (printed, shown))
    assert found == pytest.approx(expected, rel=0.03)


def test_code_with_darts_of_the_readme_needs_darts_alone():
    with_darts = PAGES["README.md"].partition("## With darts")[2].partition("\n## ")[0]
    assert "TaylorformerModel" in with_darts
    assert "sktime" not in with_darts


def test_the_readme_is_short():
    assert len(PAGES["README.md"].split()) <= 900


@pytest.mark.parametrize("name", PAGES)
def test_sentences_are_short(name):
    prose = re.sub(r"```.*?```|^---\n.*?\n---\n", "", PAGES[name], flags=re.S)
    for paragraph in re.split(r"\n\n|\n\s*- |\n\d+\. |\n#+ |\|", prose):
        for sentence in re.split(r"(?<=[.:;?!])[*\"')]*\s", re.sub(r"\]\([^)]*\)", "]", paragraph)):
            assert len(sentence.split()) <= 30, sentence


def test_the_readme_shows_the_scores_that_were_recorded():
    rows, scores = json.loads((ROOT / "docs/results/arena.json").read_text())["rows"], {}
    for row in rows:
        if row["budget_s"] == 60:
            scores.setdefault(row["model"], {}).setdefault(row["series"], []).append(row["wql"])
    mean = {model: {name: np.mean(seeds) for name, seeds in of.items()} for model, of in scores.items()}
    shown = dict(re.findall(r"^\| ([^|]+) \| (\d\.\d{3}) \|", PAGES["README.md"], re.M))
    models = {
        "Taylorformer (sktime)": "taylorformer_sktime",
        "LAM (sktime)": "lam_sktime",
        "Taylorformer (darts)": "taylorformer_darts",
        'Taylorformer, `strategy="zero_shot"`, no training': "taylorformer_zero_shot",
        "AutoETS": "ets",
    }
    for title, value in shown.items():
        own = mean[models.get(title, title.lower())]
        assert len(own) == 8
        ratio = np.exp(np.mean([np.log(own[name] / mean["naive"][name]) for name in own]))
        assert f"{ratio:.3f}" == value, title


@pytest.mark.parametrize(
    "line", sorted({line for text in PAGES.values() for line in re.findall(r"^pip install .*", text, re.M)})
)
def test_lines_that_install_are_accepted_by_pip(line):
    """As in a clone, but without a network: pip reads the requirement and the metadata of the package."""
    options = ["--dry-run", "--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
    arguments = shlex.split(line, comments=True)[1:]
    run = subprocess.run(
        [sys.executable, "-m", "pip", *arguments, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    asked = set(re.findall(r"[\w-]+", line.partition("[")[2].partition("]")[0]))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert asked <= set(extras)


@pytest.mark.parametrize("name", PAGES)
def test_pages_have_the_words_of_the_field(name):
    """Models are not persons, and parts have one name."""
    private = r"(?i)\b(anchors?|honest\w*|foretold|made.up series|knows?|believes?|tells?|wants?|is sure)\b"
    prose = re.sub(r"```.*?```|`[^`]*`", "", PAGES[name], flags=re.S)
    assert not re.findall(private, prose)


def test_no_page_recommends_a_model_for_speed_that_takes_longer():
    rows = json.loads((ROOT / "docs/results/arena.json").read_text())["rows"]
    of_60_s = {row["model"]: [] for row in rows}
    for row in rows:
        if row["budget_s"] == 60:
            of_60_s[row["model"]].append(row["fit_s"])
    assert np.mean(of_60_s["lam_sktime"]) > np.mean(of_60_s["taylorformer_trained"])
    for name, text in PAGES.items():
        assert "speed matters" not in text, name


def contents(name):
    """Pages in the lists of contents of a page."""
    lines = "\n".join(re.findall(r"```{toctree}\n(.*?)```", PAGES[name], re.S)).splitlines()
    return {str(Path(name).parent / f"{line}.md") for line in lines if line and not line.startswith(":")}


def test_every_page_is_within_two_clicks_of_the_front_page_of_the_site():
    first = contents("docs/index.md")
    second = {page for name in first for page in contents(name)}
    assert first | second == {name for name in PAGES if name.startswith("docs/")} - {"docs/index.md"}


@pytest.mark.parametrize("name", [name for name in CELLS if name.startswith("docs/guide/")])
def test_every_question_of_the_guide_has_a_picture(name):
    assert re.search(r"figure = plot|subplots|\.plot\(", CELLS[name])


def test_the_reference_lists_everything_public():
    listed = set(re.findall(r"^   (?:\w+\.)*(\w+)$", PAGES["docs/api.md"], re.M))
    public = {*taylorformer_forecast.__all__, *sktime.__all__, *darts.__all__, *plot.__all__}
    assert public - {"__version__"} <= listed


@pytest.mark.parametrize("name", PAGES)
def test_commands_files_and_links_of_a_page_exist(name):
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make (\w+)`", PAGES[name]):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for link in re.findall(r"\]\((?!https?://|#)([^)#]+)", PAGES[name]):
        target = ((ROOT / name).parent / link).resolve()
        assert target.exists(), link
        if name.startswith("docs/") and target.suffix == ".md":  # of the site there is no other page
            assert target.is_relative_to(ROOT / "docs"), link
    for script in re.findall(r"examples/[\w/]+\.py", PAGES[name]):
        assert (ROOT / script).exists(), script


def test_the_guards_and_tests_of_the_page_on_ablations_exist():
    tests = "".join(path.read_text() for path in (ROOT / "tests/baselines").glob("*.py"))
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \|.*\| `(\w+)` \|$", PAGES["docs/ablations.md"], re.M)
    assert rows
    for module, guard, test in rows:
        assert f"def {guard}(" in (ROOT / f"taylorformer_forecast/baselines/{module}.py").read_text(), guard
        assert f"def {test}(" in tests, test


def test_the_page_on_long_horizons_shows_the_speeds_that_were_recorded():
    rows = json.loads((ROOT / "docs/results/lam_speed.json").read_text())["rows"]
    for row in rows:
        for which in ("forward", "forward_backward"):
            cells = []
            for kernel in ("full", "band", "local", "prob"):
                took = row["seconds"].get(kernel, {}).get(which)
                ratio = row.get("faster_than_full", {}).get(kernel, {}).get(which)
                factor = "" if kernel == "full" or ratio is None else f" ({ratio:.1f})"
                cells.append("–" if took is None else f"{took * 1e3:.1f}{factor}")
            line = f"| {row['n']} | {row['window']} | {' | '.join(cells)} |"
            assert line in PAGES["docs/long_horizons.md"], line


def test_the_benchmark_shows_the_likelihoods_one_step_ahead_that_were_recorded():
    for row in json.loads((ROOT / "docs/results/teacher_forced.json").read_text())["rows"]:
        scores = rf"(\*\*)?{row['nll']:.3f}(\*\*)? \| {row['mse']:.5f}"
        cells = rf"\| {row['series']} \| {row['targets']} \| [^|]+ \| {scores} \|"
        assert re.search(cells, PAGES["docs/benchmark.md"]), row


def test_the_page_on_networks_shows_the_speed_of_continuous_attention_that_was_recorded():
    row = json.loads((ROOT / "docs/results/contiformer_speed.json").read_text())["rows"][-1]
    assert row["points"] == 192
    assert row["closed_by_plain"] <= 12
    assert row["pairwise_by_closed"] >= 30
    page = PAGES["docs/networks.md"]
    assert f"| ordinary attention | 1 / {row['closed_by_plain']:.1f} |" in page
    assert f"as in the published code | {row['pairwise_by_closed']:.0f} |" in page
    assert f"through all times | {row['seconds']['midpoint'] / row['seconds']['closed']:.0f} |" in page


def test_the_page_on_conditional_forecasts_shows_the_scores_that_were_recorded():
    rows, found = json.loads((ROOT / "docs/results/conditional.json").read_text())["rows"], {}
    for row in rows:
        found.setdefault((row["series"], row["model"]), []).append(row["wql"])
    mean = {key: f"{sum(values) / len(values):.3g}" for key, values in found.items()}
    for series, title in (
        ("airline", "airline"),
        ("co2", "carbon dioxide"),
        ("sunspots_yearly", "sunspots, yearly"),
    ):
        cells = " | ".join(mean[series, model] for model in ("time", "random", "given"))
        assert f"| {title} | {cells} |" in PAGES["docs/conditional.md"]


def test_the_page_on_scale_shows_the_speeds_that_were_recorded():
    for row in json.loads((ROOT / "docs/results/panel_speed.json").read_text())["rows"]:
        cells = (
            f"{row['windows_per_second']:.0f} | {row['pretrain_s']:.1f} s | {max(row['peak_mib']):.0f} MiB"
        )
        assert (
            f"| {row['forecaster']} | {cells} | {row['new_series_s']:.2f} s |" in PAGES["docs/guide/scale.md"]
        )


def test_the_page_on_the_pretrained_network_shows_the_scores_that_were_recorded():
    page = PAGES["docs/prior.md"]
    made = json.loads((ROOT / "docs/results/prior_made_up.json").read_text())["models"]
    for gone in ("pretrained, trained on the series", "defaults"):  # which are others today
        made.pop(gone)
    for name, row in made.items():
        scores = " | ".join(f"{row[key]:.3f}" for key in ("mean_crps", "median_crps", "geometric_mean_crps"))
        line = f"| {name} | {scores} | {row['coverage']:.2f} | {row['seconds_each']:.2f} |"
        assert line in page
    found = made["pretrained"]
    assert f"on {found['better_than_AutoETS']} of the 100 series" in page.replace("\n", " ")
    assert f"{found['mean_crps_without_worst']:.3f} and that of AutoETS {found['AutoETS_there']:.3f}" in page
    for file in sorted((ROOT / "docs/results").glob("prior_made_up*.json")):
        book = json.loads(file.read_text())
        names = ("AutoETS", "baseline alone", "trained on the series", "pretrained")
        scores = [book["models"][name] for name in names]
        cells = [f"{row['geometric_mean_crps']:.3f} ({row['coverage']:.2f})" for row in scores]
        assert f"| {book['length']} | {book['horizon']} | {' | '.join(cells)} |" in page
    rows = json.loads((ROOT / "docs/results/arena.json").read_text())["rows"]
    page = page[page.index("weighted quantile loss") :]
    for label, model, budget in (
        ("AutoETS", "ets", None),
        ("pretrained", "taylorformer_pretrained", None),
        ("zero shot", "taylorformer_zero_shot", None),
        ("trained", "taylorformer_trained", 60.0),
    ):
        line = next(line for line in page.splitlines() if line.startswith(f"| {label} |"))
        found = {}
        for row in rows:
            if row["model"] == model and budget in (None, row["budget_s"]):
                found.setdefault(row["series"], []).append(row)
        assert len(found) == 8
        for series, seeds in found.items():
            wql, coverage = (sum(row[score] for row in seeds) / len(seeds) for score in ("wql", "coverage"))
            assert f"| {wql:.4f} ({coverage:.2f}) |" in line, series


def test_the_page_on_strategies_shows_what_the_default_is_worth_on_whole_series():
    found, page = {}, " ".join(PAGES["docs/strategies.md"].split())
    for row in json.loads((ROOT / "docs/results/arena.json").read_text())["rows"]:
        if row["budget_s"] == 60:
            found.setdefault((row["model"], row["series"]), []).append(row)
    names = ("taxi", "sunspots", "taylor", "ili", "exchange", "etth1", "etth2", "airline")

    def means(model, score):
        rows = [found[f"taylorformer_{model}", name] for name in names]
        return np.array([np.mean([row[score] for row in seeds]) for seeds in rows])

    ratios = means("sktime", "wql") / means("trained", "wql")
    assert (ratios > 1).tolist() == [False] * 5 + [True] * 3
    by = [f"by {100 * abs(r - 1):.1f} %" for r in ratios]
    better = f"taxi rides {by[0]}, sunspots {by[1]}, electricity demand {by[2]}, influenza {by[3]}"
    assert f"It is better on {better} and exchange rates {by[4]}." in page
    worse = f"two oil temperatures {by[5]} and {by[6][3:]} and airline {by[7]}"
    assert f"It is worse on {worse}." in page
    default, alone = (means(model, "coverage").mean() for model in ("sktime", "trained"))
    assert f"Intervals of 80 % cover {default:.2f} instead of {alone:.2f} in the mean." in page
    gain = 100 - 100 * np.exp(np.log(means("zero_shot", "wql") / means("sktime", "wql")).mean())
    quick, slow = (f"{means(model, 'fit_s').mean():.0f}" for model in ("zero_shot", "sktime"))
    than = f"{gain:.0f} % better than the default there, and takes {quick} s instead of {slow} for a fit"
    assert f"`zero_shot` is {than}." in page


def test_the_page_on_pretrained_networks_shows_what_parts_of_the_correction_are_worth():
    rows = json.loads((ROOT / "docs/results/correction.json").read_text())["results"]
    names = ("m3_yearly", "m3_quarterly", "m3_monthly", "nn5_daily", "car_parts")
    lines = PAGES["docs/prior.md"].splitlines()
    shares = {
        "none, none": (0.0, 0.0),
        "a quarter, all": (0.25, 1.0),
        "a quarter, a quarter": (0.25, 0.25),
        "a third, a third": (1 / 3, 1 / 3),
        "**half, half**": (0.5, 0.5),
        "all, all": (1.0, 1.0),
    }
    for label, share in shares.items():
        found = {row["set"]: row for row in rows if (row["shift"], row["width"]) == share}
        windows = [row for name, row in found.items() if name not in names]
        mean = {
            "relative": np.exp(np.mean([np.log(row["relative"]) for row in windows])),
            "coverage": np.mean([row["coverage"] for row in windows]),
        }
        each = [*(found[name] for name in names), mean]
        cells = [f"{row['relative']:.3f} ({row['coverage']:.2f})" for row in each]
        assert f"| {label} | {' | '.join(cells)} |" in lines


def test_the_page_on_ablations_shows_the_losses_that_were_recorded():
    found = {}
    for row in json.loads((ROOT / "docs/results/ablations.json").read_text())["rows"]:
        found.setdefault((row["forecaster"], row["without"]), {})[row["series"], row["seed"]] = row
    lines = {}
    for (forecaster, part), rows in found.items():
        whole = found[forecaster, "nothing"]
        pairs = [(rows.get(key, base), base) for key, base in whole.items()]
        ratio = np.exp(np.mean([np.log(row["wql"] / base["wql"]) for row, base in pairs]))
        change = np.mean([row["coverage"] - base["coverage"] for row, base in pairs])
        lines.setdefault(part, {})[forecaster] = f"{ratio:.3f} ({change:+.2f})"
    del lines["nothing"]
    for part, of in lines.items():
        cells = [of.get(name, "not used there") for name in ("Taylorformer", "LAM", "short series")]
        assert f"| {part} | {' | '.join(cells)} |" in PAGES["docs/ablations.md"], part
