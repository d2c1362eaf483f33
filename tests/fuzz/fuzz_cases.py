"""Random cases as plain JSON: what is fitted, what is asked, in which order, and what the caller has set."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from taylorformer_forecast import _MODELS as MODELS

Case = dict[str, Any]

JOINT = ("Taylorformer", "LAM", "TNP")  # whose paths of several series can be drawn together
FREQUENCIES = ("Y", "Q", "M", "W", "D", "B", "h", "15min", "min", "s", "ms", "2D", "3M")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")
SHAPES = ("noise", "walk", "trend", "season", "growth", "decay", "steps", "alternating", "counts", "sparse")
SHAPES += ("constant", "zeros", "one step", "outliers", "season and trend", "heavy tails")
SCALES = (1.0, 1.0, 1.0, 1e-8, 1e8, 1e-160, 1e140, 1e30)
LEVELS = (0.0, 0.0, 10.0, -3.0, 1e3, 1e9)
SPOILED = ("gaps", "gaps", "block", "start", "end", "last outlier", "all", "one left", "inf", "huge")
DTYPES = ("float32", "int64", "bool", "Float64", "Int64", "object", "complex", "str")
ENVIRONMENTS = ("float64", "inference_mode", "no_grad", "autocast")


def usually(value: Any, *others: Any) -> st.SearchStrategy:
    """A value in eight of nine cases, else one of others."""
    return st.sampled_from([value] * (8 * len(others)) + list(others))


USUAL_INDEX = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.just("period"),
            "freq": st.sampled_from(FREQUENCIES),
            "start": usually("2000-01-03", "1700-01-03", "2250-01-03", "1969-12-30"),
        }
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("dates"),
            "freq": st.sampled_from(FREQUENCIES),
            "start": usually("2000-01-03", "1700-01-03", "2240-01-03", "2024-02-28"),
            "zone": usually(None, *ZONES),
            "unit": usually("ns", "s", "us"),
            "has_freq": st.booleans(),
        }
    ),
    st.fixed_dictionaries({"kind": st.just("range"), "start": st.sampled_from([0, 0, 1, 100])}),
    st.fixed_dictionaries(
        {
            "kind": st.just("integers"),
            "start": st.sampled_from([0, -20, 7, 2**53 + 1, 10**17]),
            "step": st.sampled_from([1, 1, 1, 3, 12]),
        }
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("irregular"),
            "dates": st.booleans(),
            "start": st.just("2001-05-06"),
            "spread": st.sampled_from([2, 10, 1000]),
        }
    ),
)
STRANGE_INDEX = st.fixed_dictionaries({"kind": st.sampled_from(["floats", "strings", "timedelta"])})
INDEX = st.one_of(*[USUAL_INDEX] * 30, STRANGE_INDEX)

VALUES = st.fixed_dictionaries(
    {
        "shape": st.sampled_from(SHAPES),
        "scale": st.sampled_from(SCALES),
        "level": st.sampled_from(LEVELS),
        "period": st.sampled_from([2, 4, 7, 12]),
        "seed": st.integers(0, 10**6),
        "spoiled": st.one_of(st.none(), st.none(), st.sampled_from(SPOILED)),
        "dtype": usually("float64", *DTYPES),
    }
)

FH = st.one_of(
    st.fixed_dictionaries({"kind": st.just("next"), "steps": st.integers(1, 12)}),
    st.fixed_dictionaries({"kind": st.just("absolute"), "steps": st.integers(1, 8)}),
    st.fixed_dictionaries(
        {
            "kind": st.just("list"),
            "steps": st.lists(st.integers(1, 40), min_size=1, max_size=5, unique=True),
        }
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("list"),
            "steps": st.lists(st.integers(-6, 4), min_size=1, max_size=4, unique=True),
        }
    ),
    st.fixed_dictionaries({"kind": st.just("far"), "steps": st.sampled_from([60, 200, 10**6])}),
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["fractions", "nothing", "double", "strings", "other index", "time span"])}
    ),
)
AHEAD = st.fixed_dictionaries({"kind": st.just("next"), "steps": st.integers(1, 12)})

EXOGENOUS = st.fixed_dictionaries(
    {
        "columns": st.integers(1, 2),
        "seed": st.integers(0, 10**6),
        "spoiled": usually(None, "gaps", "inf", "constant", "bool", "huge", "text", "short"),
        "later": usually(None, "missing", "other columns", "far"),
    }
)

STEPS = (
    *("predict", "copy", "pickle", "save", "update", "update", "update_predict", "update_predict_single"),
    *("refused fit", "fit again", "clone", "other fh", "other fh", "whole paths"),
)


@st.composite
def forecasters(draw: st.DrawFn) -> Case:
    """A forecaster of sktime: statistical ones nine times in ten, as networks take longer."""
    trained = draw(st.integers(0, 9)) == 0
    untrained = ["auto", "auto", "baseline", "baseline", "pretrained", "zero_shot"]
    strategy = ["train", "averaged", "finetune"] if trained else untrained
    name = draw(st.sampled_from(MODELS)) if trained else "Taylorformer"
    options = {"strategy": draw(st.sampled_from(strategy))} if name == "Taylorformer" else {}
    if name in JOINT:
        options["joint"] = draw(st.booleans())
    if trained:
        options["distribution"] = draw(st.sampled_from(["studentt", "normal", "mixture", "quantile", "mse"]))
        options["context_length"] = draw(usually(None, 3, 8))
    return {
        "host": "sktime",
        "model": name,
        "options": options,
        "index": draw(INDEX),
        "n": draw(st.one_of(st.integers(1, 12), st.integers(3, 60))),
        "values": draw(VALUES),
        "columns": draw(usually(1, 2)),
        "panel": draw(usually(None, [2], [3], [2, 2])),
        "flaw": draw(usually(None, "rows missing", "unsorted", "duplicated", "unequal")),
        "X": draw(st.one_of(st.none(), st.none(), EXOGENOUS)) if trained else None,
        "fh": draw(st.one_of(AHEAD, FH)),
        "fh_in_fit": draw(st.booleans()),
        "methods": draw(st.lists(st.sampled_from(["var", "interval", "proba"]), max_size=1)),
        "walk": draw(st.lists(st.sampled_from(STEPS), max_size=2)),
        "other_fh": draw(FH),
        "new": draw(st.integers(1, 5)),
        "fit_in": draw(usually(None, "threads", *ENVIRONMENTS)),
        "predict_in": draw(usually(None, *ENVIRONMENTS)),
    }


@st.composite
def darts_models(draw: st.DrawFn) -> Case:
    """A model of darts."""
    trained = draw(st.integers(0, 9)) == 0
    name = draw(st.sampled_from(MODELS)) if trained else "Taylorformer"
    untrained = ["auto", "baseline", "zero_shot"]
    strategy = draw(st.sampled_from(["train", "averaged", "finetune"] if trained else untrained))
    options = {"strategy": strategy} if name == "Taylorformer" else {}
    if name in JOINT:
        options["joint"] = draw(st.booleans())
    chunk = draw(st.sampled_from([1, 4, 8]))
    steps = ("copy", "pickle", "save", "refused fit", "fit again", "other series", "parameters", "history")
    return {
        "host": "darts",
        "model": name,
        "options": options,
        "chunks": [chunk, draw(st.sampled_from([1, 3]))],
        "index": draw(INDEX),
        "n": draw(st.one_of(st.integers(1, 12), st.integers(12, 60))),
        "values": draw(VALUES),
        "columns": draw(usually(1, 2)),
        "series": draw(usually(1, 2)),
        "dtype": draw(usually("float64", "float32", "float16")),
        "covariates": draw(st.sampled_from([[], [], ["past"], ["future"], ["static"]])) if trained else [],
        "steps": draw(usually(5, 1, 30, 0, -1)),
        "walk": draw(st.lists(st.sampled_from(steps), max_size=2)),
        "fit_in": draw(usually(None, "threads", *ENVIRONMENTS)),
        "predict_in": draw(usually(None, *ENVIRONMENTS)),
    }


@st.composite
def imputers(draw: st.DrawFn) -> Case:
    """The imputer, on a series with gaps."""
    return {
        "host": "imputer",
        "index": draw(INDEX),
        "n": draw(st.integers(2, 40)),
        "values": draw(VALUES),
        "columns": draw(usually(1, 2)),
        "panel": draw(usually(None, [2])),
        "flaw": draw(usually(None, "rows missing", "unsorted", "duplicated")),
        "logarithm": draw(st.sampled_from([None, False, False, True])),
        "walk": draw(
            st.lists(st.sampled_from(["copy", "pickle", "save", "refused fit", "sample"]), max_size=2)
        ),
        "fit_in": draw(usually(None, "threads", *ENVIRONMENTS)),
        "predict_in": draw(usually(None, *ENVIRONMENTS)),
    }


@st.composite
def classifiers(draw: st.DrawFn) -> Case:
    """The classifier, on a panel of whole series."""
    return {
        "host": "classifier",
        "index": draw(INDEX),
        "n": draw(st.integers(1, 20)),
        "values": draw(VALUES),
        "columns": draw(usually(1, 2)),
        "panel": [draw(st.integers(2, 5))],
        "flaw": draw(usually(None, "unequal", "unsorted")),
        "classes": draw(usually(2, 1)),
        "walk": draw(st.lists(st.sampled_from(["copy", "pickle", "save", "refused fit"]), max_size=2)),
        "fit_in": draw(usually(None, "threads", *ENVIRONMENTS)),
        "predict_in": draw(usually(None, *ENVIRONMENTS)),
    }


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any of them; imputers and classifiers seldom, as each trains a network."""
    kinds = [forecasters] * 28 + [darts_models] * 10 + [imputers, classifiers]
    return draw(draw(st.sampled_from(kinds))())
