"""Measure how many synthetic series one core draws in a second.

OMP_NUM_THREADS=1 python examples/pretrain/synthetic_speed.py
python examples/pretrain/synthetic_speed.py --lengths 200 --series 1024
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

from taylorformer_forecast.synthetic import SyntheticGenerator


def main(argv: list[str] | None = None) -> None:
    """Print series for a second of process time, the median over batches, for each length."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[50, 200, 500, 2000])
    parser.add_argument("--series", type=int, default=512, help="of a batch")
    parser.add_argument("--batches", type=int, default=7)
    arguments = parser.parse_args(argv)
    generator = SyntheticGenerator(0, arguments.series)
    generator.batch(0, arguments.lengths[0])  # tables of the calendar are made once
    for length in arguments.lengths:
        seconds = []
        for number in range(arguments.batches):
            start = time.process_time()
            generator.batch(number, length)
            seconds.append(time.process_time() - start)
        rate = arguments.series / max(statistics.median(seconds), 1e-9)
        print(json.dumps({"length": length, "series": arguments.series, "series_per_second": round(rate)}))


if __name__ == "__main__":
    main()
