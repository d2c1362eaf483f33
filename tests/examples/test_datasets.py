"""Files in the published formats are read, split and scaled; others are refused with the reason."""

import numpy as np
import pytest

ETT = ["HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT"]
WEATHER = ["Visibility", *[f"w{k}" for k in range(10)], "WetBulbCelsius"]
POWER = ["Global_active_power", "Global_reactive_power", "Voltage", "Global_intensity"]
POWER += ["Sub_metering_1", "Sub_metering_2", "Sub_metering_3"]
SMALL = (60, 80, 100)


@pytest.fixture
def load(script):
    return script("datasets").load


def write(path, header, values, time="2016-07-01 00:00:00", separator=","):
    lines = [separator.join(header)] if header else []
    for row in values:
        lines.append(separator.join([*([time] if time else []), *[f"{value:.6g}" for value in row]]))
    path.write_text("\n".join(lines) + "\n")
    return path


def numbers(n, width, seed=0):
    return np.random.default_rng(seed).normal(3.0, 2.0, (n, width)).round(3)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        *[(name, ["date", *ETT]) for name in ("ETTh1", "ETTh2", "ETTm1", "ETTm2")],
        ("ECL", ["date", *[f"MT_{k:03d}" for k in range(321)]]),
        ("WTH", ["date", *WEATHER]),
        ("exchange_rate", ["date", *"0123456", "OT"]),
        ("NYTaxi", ["pickup_datetime", "trips"]),
        ("RPB", ["timestamp", "a", "b"]),
        ("TiNA", ["Time", "a", "b", "c"]),
    ],
)
def test_each_csv_format_is_read_without_its_time(load, tmp_path, name, header):
    values = numbers(100, len(header) - 1)
    data = load(name, write(tmp_path / "file.csv", header, values), ends=SMALL)
    assert data.columns == tuple(header[1:])
    np.testing.assert_allclose(data.values, values, rtol=1e-6)


def test_household_power_has_two_time_columns_and_question_marks(load, tmp_path):
    rows = ["16/12/2006;17:24:00;4.216;0.418;234.84;18.4;0;1;17", "16/12/2006;17:25:00;?;?;?;?;?;?;"]
    path = tmp_path / "household_power_consumption.txt"
    path.write_text("\n".join([";".join(["Date", "Time", *POWER]), *rows * 50]))
    data = load("IHEP", path)
    assert data.columns == tuple(POWER)
    np.testing.assert_allclose(data.values[0], [4.216, 0.418, 234.84, 18.4, 0, 1, 17], rtol=1e-6)
    assert np.isnan(data.values[1]).all()
    assert data.ends == (59, 70, 100)
    assert np.isfinite(data.standardised()[::2]).all()


@pytest.mark.parametrize("header", [None, list("01234567")], ids=["no header", "numbered"])
def test_exchange_rates_need_neither_dates_nor_names(load, tmp_path, header):
    values = numbers(100, 8)
    data = load("exchange_rate", write(tmp_path / "exchange_rate.txt", header, values, time=None))
    np.testing.assert_allclose(data.values, values, rtol=1e-6)
    assert data.ends == (69, 80, 100)


def test_electricity_is_mapped_into_memory_with_time_first(load, tmp_path):
    values = numbers(100, 5)
    np.save(tmp_path / "electricity_training.npy", values.T)
    data = load("electricity", tmp_path / "electricity_training.npy")
    assert isinstance(data.values, np.memmap)
    assert data.values.shape == (100, 5)
    assert data.ends == (69, 80, 100)
    one = data.standardised(slice(3, 4))
    np.testing.assert_allclose(one, data.standardised()[:, 3:4])


def test_hourly_and_quarter_hourly_transformers_are_split_by_months_of_30_days(script):
    formats = script("datasets").FORMATS
    assert formats["ETTh2"].ends == (8640, 11520, 14400)
    assert formats["ETTm1"].ends == (4 * 8640, 4 * 11520, 4 * 14400)


def test_scaling_is_by_mean_and_population_deviation_of_the_training_part(load, tmp_path):
    values = numbers(120, 7)
    values[:60, 2] = 5.0  # constant in training
    values[70, 4] += 1000.0  # outside of it
    data = load("ETTh1", write(tmp_path / "ETTh1.csv", ["date", *ETT], values), ends=SMALL)
    scaled = data.standardised()
    assert scaled.shape == (100, 7)
    np.testing.assert_allclose(scaled[:60].mean(0), 0.0, atol=1e-6)
    np.testing.assert_allclose(np.delete(scaled[:60].std(0), 2), 1.0)
    np.testing.assert_allclose(scaled[60:, 2], data.values[60:100, 2] - 5.0, atol=1e-6)


def test_parts_follow_each_other_and_the_first_context_reaches_back(load, tmp_path):
    data = load("ETTh1", write(tmp_path / "f.csv", ["date", *ETT], numbers(100, 7)), ends=SMALL)
    assert [data.part(which) for which in ("train", "validation", "test")] == [
        slice(0, 60),
        slice(60, 80),
        slice(80, 100),
    ]
    assert data.part("test", before=24) == slice(56, 100)
    assert data.part("train", before=24) == slice(0, 60)


def test_text_longer_than_a_piece_is_read_whole(script, monkeypatch, load, tmp_path):
    monkeypatch.setattr(script("datasets"), "PIECE", 7)
    values = numbers(100, 7)
    data = load("ETTh1", write(tmp_path / "f.csv", ["date", *ETT], values), ends=SMALL)
    np.testing.assert_allclose(data.values, values, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "header", "says"),
    [
        ("ETTh1", ["date", "a", "b"], r"expected .*'HUFL'.*found 3 columns: \['date', 'a', 'b'\]"),
        ("ETTh1", ["time", *ETT], r"time columns \['date'\].*found 8 columns"),
        ("ETTh1", ["date", *ETT, "extra"], "7 numeric columns.*found 9 columns"),
        ("ECL", ["date", "MT_320"], "321 numeric columns.*found 2 columns"),
        ("IHEP", ["Date,Time", *POWER], "separated by ';'"),
        ("exchange_rate", ["date", "a"], "8 numeric columns"),
        ("TiNA", ["a", "b"], r"time columns \['date', 'time'.*found 2 columns: \['a', 'b'\]"),
    ],
)
def test_a_wrong_file_is_refused_with_what_was_expected_and_found(load, tmp_path, name, header, says):
    path = write(tmp_path / "wrong.csv", header, numbers(5, len(header) - 1))
    with pytest.raises(ValueError, match=rf"wrong.csv is not {name}: (?s:.*){says}"):
        load(name, path)


def test_an_array_of_another_shape_is_refused(load, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(5))
    with pytest.raises(ValueError, match=r"\(series, time\) was expected, found float64 of shape \(5,\)"):
        load("electricity", tmp_path / "a.npy")


def test_a_cell_that_is_no_number_is_named_with_its_column(load, tmp_path):
    path = write(tmp_path / "f.csv", ["date", *ETT], numbers(3, 7))
    path.write_text(path.read_text() + "2016-07-01,1,2,x,4,5,6,7\n")
    with pytest.raises(ValueError, match=r"column 'MUFL': .*'x'"):
        load("ETTh1", path)


def test_a_broken_line_is_named_by_its_number(load, tmp_path):
    path = write(tmp_path / "f.csv", ["date", *ETT], numbers(3, 7))
    path.write_text(path.read_text() + "2016-07-01,1,2\n")
    with pytest.raises(ValueError, match="line 5: 8 cells were expected, found 3"):
        load("ETTh1", path)


def test_too_few_rows_for_the_split_are_refused(load, tmp_path):
    path = write(tmp_path / "f.csv", ["date", *ETT], numbers(100, 7))
    with pytest.raises(ValueError, match="has 100 rows, but the parts of ETTh1 end at rows"):
        load("ETTh1", path)


def test_an_unknown_name_is_answered_with_the_known_ones(load, tmp_path):
    with pytest.raises(ValueError, match=r"'ETTh3' is not one of .*'ETTh1'"):
        load("ETTh3", tmp_path / "f.csv")
