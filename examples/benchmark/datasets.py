"""Read the data sets of the Taylorformer and LAM papers from files in their published formats.

Nothing is downloaded: give the path of a file. :data:`FORMATS` says what is expected of each; a file that
does not fit is refused with what was expected and what was found::

    from datasets import load

    data = load("ETTh1", "ETTh1.csv")
    scaled = data.standardised()        # by mean and deviation of the training part
    scaled[data.part("test", before=96)]  # 96 rows before the test part belong to its first context

Text is read in pieces and kept as float32; an .npy file is mapped into memory and read where it is used.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

__all__ = ["FORMATS", "Data", "Format", "load"]

MONTH = 30 * 24  # rows of a month in the splits of hourly ETT data
ETT = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
POWER = (
    "Global_active_power",
    "Global_reactive_power",
    "Voltage",
    "Global_intensity",
    "Sub_metering_1",
    "Sub_metering_2",
    "Sub_metering_3",
)
PARTS = ("train", "validation", "test")
PIECE = 50_000  # lines of text that are converted at once


@dataclass(frozen=True)
class Format:
    """What a file must look like, and how its rows are split.

    Parameters
    ----------
    ends : tuple of (int or float)
        Ends of the training, validation and test parts: row numbers, or fractions of all rows.
    time : tuple of str
        Columns of the time, left out of the values. Compared without regard to case.
    columns : tuple of str
        Names that must be among the columns of values.
    n_columns : int, optional
        How many columns of values there must be, any number by default.
    separator : str
        Between cells.
    missing : tuple of str
        Cells that stand for a missing value; NaN in the result.
    time_required, header : bool
        Whether the time columns, and a line of names, must be there.
    binary : bool
        Whether the file is an .npy array of shape (series, time) instead of text.
    """

    ends: tuple[float, float, float]
    time: tuple[str, ...] = ("date",)
    columns: tuple[str, ...] = ()
    n_columns: int | None = None
    separator: str = ","
    missing: tuple[str, ...] = ("", "NA", "NaN", "nan", "null")
    time_required: bool = True
    header: bool = True
    binary: bool = False

    def __str__(self) -> str:
        """Return the columns that are expected, in words."""
        time = f"time columns {list(self.time)}" + ("" if self.time_required else " (if any)")
        count = "any number of" if self.n_columns is None else str(self.n_columns)
        names = f", among them {list(self.columns)}" if self.columns else ""
        return f"{time} and {count} numeric columns{names}, separated by {self.separator!r}"


# The LAM paper names 28/10/10 and 15/3/4 months for WTH and ECL, its experiments split 70/10/20 %. Its own
# long series: 70 % for training, of which the last 15 % are for validation.
LONG = (0.595, 0.7, 1.0)
TAYLORFORMER = (0.69, 0.8, 1.0)
# Of these three, files with times under one of these names and numbers in the other columns are accepted.
TIMES = ("date", "time", "datetime", "timestamp", "ds", "pickup_datetime", "tpep_pickup_datetime")
FORMATS: dict[str, Format] = {
    **{f"ETTh{k}": Format((12 * MONTH, 16 * MONTH, 20 * MONTH), columns=ETT, n_columns=7) for k in (1, 2)},
    **{f"ETTm{k}": Format((48 * MONTH, 64 * MONTH, 80 * MONTH), columns=ETT, n_columns=7) for k in (1, 2)},
    "ECL": Format((0.7, 0.8, 1.0), columns=("MT_320",), n_columns=321),
    "WTH": Format((0.7, 0.8, 1.0), columns=("WetBulbCelsius",), n_columns=12),
    "exchange_rate": Format(TAYLORFORMER, n_columns=8, time_required=False, header=False),
    "electricity": Format(TAYLORFORMER, binary=True),
    "IHEP": Format(LONG, ("Date", "Time"), POWER, 7, ";", ("?", "")),
    **{name: Format(LONG, TIMES) for name in ("NYTaxi", "RPB", "TiNA")},
}


@dataclass(frozen=True)
class Data:
    """Series on a common regular grid.

    Parameters
    ----------
    name : str
        Name in :data:`FORMATS`.
    values : ndarray of shape (n, D)
        Values, NaN where missing.
    columns : tuple of str
        Names of the columns.
    ends : tuple of int
        Rows at which the training, validation and test parts end.
    """

    name: str
    values: np.ndarray
    columns: tuple[str, ...]
    ends: tuple[int, int, int]

    def part(self, which: str, before: int = 0) -> slice:
        """Rows of a part, and some before it for the first context (never before row 0)."""
        number = PARTS.index(which)
        start = self.ends[number - 1] if number else 0
        return slice(max(0, start - before), self.ends[number])

    def standardised(self, columns: slice = slice(None)) -> np.ndarray:
        """Values by mean and population deviation of the training part, up to the end of the test part.

        Parameters
        ----------
        columns : slice, optional
            Columns to return, all by default; of a mapped file only those are read.

        Returns
        -------
        float64 ndarray
            Columns that do not vary in the training part are only centred.
        """
        values = np.asarray(self.values[: self.ends[2], columns], dtype=np.float64)
        train = values[self.part("train")]
        deviation = np.nanstd(train, axis=0)
        return (values - np.nanmean(train, axis=0)) / np.where(deviation > 0, deviation, 1.0)


def load(name: str, path: str | Path, ends: tuple[float, float, float] | None = None) -> Data:
    """Read a data set.

    Parameters
    ----------
    name : str
        Name in :data:`FORMATS`.
    path : str or Path
        The file.
    ends : tuple of (int or float), optional
        Another split than the one of the format.

    Returns
    -------
    Data
        Its values and split.

    Raises
    ------
    ValueError
        If the name is unknown, the file does not have the expected columns, a cell is no number, or there
        are too few rows for the split.
    """
    if name not in FORMATS:
        raise ValueError(f"{name!r} is not one of {sorted(FORMATS)}")
    form = FORMATS[name]
    values, columns = (read_binary if form.binary else read_text)(name, Path(path), form)
    ends = ends or form.ends
    factor = len(values) if ends[2] <= 1 else 1
    rows = int(ends[0] * factor), int(ends[1] * factor), int(ends[2] * factor)
    if not 0 < rows[0] < rows[1] < rows[2] <= len(values):
        raise ValueError(f"{path} has {len(values)} rows, but the parts of {name} end at rows {rows}")
    return Data(name, values, columns, rows)


def read_binary(name: str, path: Path, form: Format) -> tuple[np.ndarray, tuple[str, ...]]:
    """Map an array of shape (series, time) into memory."""
    array = np.load(path, mmap_mode="r")
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise ValueError(
            f"{path} is not {name}: a numeric array of shape (series, time) was expected, "
            f"found {array.dtype} of shape {array.shape}"
        )
    return array.T, tuple(str(number) for number in range(len(array)))


def read_text(name: str, path: Path, form: Format) -> tuple[np.ndarray, tuple[str, ...]]:
    """Check the columns of a text file, then convert its lines piece by piece."""
    with path.open(newline="") as file:
        lines = csv.reader(file, delimiter=form.separator)
        first = next(lines, [])
        if not form.header and is_data(first):
            file.seek(0)
            first = [str(number) for number in range(len(first))]
        keep = check(name, path, form, [cell.strip() for cell in first])
        pieces = list(convert(lines, keep, len(first), form, path))
    return np.concatenate(pieces or [np.empty((0, len(keep)), np.float32)]), tuple(keep)


def is_data(cells: list[str]) -> bool:
    """Whether a first line holds values: all numbers, and not those of the columns (0, 1, 2, ...)."""
    try:
        return [float(cell) for cell in cells] != list(range(len(cells)))
    except ValueError:
        return False


def check(name: str, path: Path, form: Format, found: list[str]) -> dict[str, int]:
    """Positions of the columns of values, if the names are those of the format."""
    times = {time.lower() for time in form.time}
    keep = {column: k for k, column in enumerate(found) if column.lower() not in times}
    n_times = len(found) - len(keep)
    # Of generic names one is enough; named formats have all of theirs.
    enough = n_times >= (1 if form.time is TIMES else len(form.time)) or not form.time_required
    right = form.n_columns is None or len(keep) == form.n_columns
    if not (enough and right and keep and set(form.columns) <= set(keep)):
        shown = found if len(found) <= 12 else [*found[:10], "...", found[-1]]
        raise ValueError(f"{path} is not {name}: expected {form}; found {len(found)} columns: {shown}")
    return keep


def convert(
    lines: Iterator[list[str]], keep: dict[str, int], width: int, form: Format, path: Path
) -> Iterator[np.ndarray]:
    """Yield the values of some lines at a time, in float32."""
    missing, done = dict.fromkeys(form.missing, "nan"), 0
    while piece := list(islice(lines, PIECE)):
        rows = [row for row in piece if row]  # a line may be empty, usually the last
        for number, row in enumerate(rows):
            if len(row) != width:
                raise ValueError(
                    f"{path}, line {done + number + 2}: {width} cells were expected, found {len(row)}"
                )
        done += len(rows)
        block = np.empty((len(rows), len(keep)), np.float32)
        for k, (column, position) in enumerate(keep.items()):
            cells = [row[position].strip() for row in rows]
            try:
                block[:, k] = np.array([missing.get(cell, cell) for cell in cells], dtype=np.float64)
            except ValueError as error:
                raise ValueError(f"{path}, column {column!r}: {error}") from None
        yield block
