"""Random cases for hours: ``python tests/fuzz/fuzz_run.py --seed 1 --n 1000``, or one again by ``--case``.

Cases that are not as they should be are printed as JSON, which ``--case`` takes.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from hypothesis import Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1]))  # of what tests share, which pytest finds by itself
from fuzz_cases import Case, cases
from fuzz_darts import DartsWalk
from fuzz_oracle import kind_of_error
from fuzz_sktime import ClassifierWalk, ForecasterWalk, ImputerWalk

WALKS = {"sktime": ForecasterWalk, "darts": DartsWalk, "imputer": ImputerWalk, "classifier": ClassifierWalk}
KINDS = ("ok", "refused", "host", "no data", "raw", "wrong")
CASES_OF_A_SEED = 10**6
SLOWEST = 180.0  # seconds of processor time of a case; up to 100,000 steps are asked for, several times


@dataclass
class Report:
    """How many cases of each host ended how."""

    counts: Counter = field(default_factory=Counter)
    messages: Counter = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, case: Case, kind: str, message: str) -> None:
        """Count a case."""
        self.counts[case["host"], kind] += 1
        self.messages[kind, message] += 1
        if kind in ("raw", "wrong"):
            self.failures.append(f"{kind}: {message}\n  {json.dumps(case)}")

    def table(self) -> str:
        """A row for each host, a column for each end."""
        rows = [f"{'':12}" + "".join(f"{kind:>9}" for kind in KINDS)]
        for host in [*WALKS, "all"]:
            hosts = WALKS if host == "all" else [host]
            numbers = [sum(self.counts[one, kind] for one in hosts) for kind in KINDS]
            rows.append(f"{host:12}" + "".join(f"{number:9,}" for number in numbers))
        return "\n".join(rows)


def end_of(case: Case) -> tuple[str, str]:
    """How a case ends, and with which message."""
    start = time.process_time()
    try:
        walk = WALKS[case["host"]](case)
    except Exception as error:
        return ("no data" if kind_of_error(error) in ("host", "raw") else kind_of_error(error)), _message(
            error
        )
    try:
        walk.run()
    except Exception as error:
        return kind_of_error(error), _message(error)
    seconds = time.process_time() - start
    return ("wrong", f"{seconds:.0f} seconds") if seconds > SLOWEST else ("ok", "")


def _message(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {place.filename.split('/')[-1]}:{place.lineno}: {str(error)[:300]}"


def random_case(number: int) -> Case:
    """The case that follows from a number."""
    drawn: list[Case] = []
    # The first example of hypothesis is its simplest; later ones than the second are like those before.
    rules = settings(max_examples=2, database=None, deadline=None, phases=[Phase.generate])
    seed(number)(rules(given(cases())(lambda case: drawn.append(case))))()
    return drawn[-1]


def explore(first: int, n: int, watch: bool = False) -> Report:
    """Run the cases of n numbers."""
    report = Report()
    for done in range(n):
        case = random_case(first + done)
        report.add(case, *(end := end_of(case)))
        if watch and end[0] in ("raw", "wrong"):
            print(f"{first + done} {report.failures[-1]}", flush=True)
        if watch and done % 500 == 499:
            print(report.table(), flush=True)
    return report


def main() -> None:
    """Run the cases of a seed, or one again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--case", type=json.loads, help="a case as it was printed, or its number")
    parser.add_argument("--messages", action="store_true", help="count all messages too")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with quiet():
        if args.case is not None:
            case = random_case(args.case) if isinstance(args.case, int) else args.case
            WALKS[case["host"]](case).run()
            return
        report = explore(args.seed * CASES_OF_A_SEED, args.n, watch=True)
    if args.messages:
        for (kind, message), count in report.messages.most_common():
            print(f"{count:6} {kind}: {message}")
    print(report.table())


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the warnings and hints of all libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


if __name__ == "__main__":
    main()
