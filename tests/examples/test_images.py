"""Completion of images: what is shown and asked for, rows without training, files of EMNIST, a quick run."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, Normal

SIDE = 5


@pytest.fixture
def images(script):
    return script("images")


@pytest.fixture
def digits(script):
    return script("digits")


@pytest.fixture
def completion(script):
    return script("completion")


@pytest.fixture
def task(digits):
    """Images of 5 x 5 random pixels, a third of them black."""
    g = torch.Generator().manual_seed(0)

    def some(n):
        values = torch.rand(n, SIDE**2, generator=g) - 0.5
        return torch.where(torch.rand(values.shape, generator=g) < 1 / 3, -0.5, values)

    protocol = digits.Protocol((3, 6), (4, 8))
    return digits.Task("noise", (SIDE, SIDE), some(40), some(9), some(7), protocol)


def test_a_quick_run_writes_scores_and_a_picture_and_does_not_run_again(
    images, completion, tmp_path, monkeypatch
):
    out, picture = tmp_path / "images.json", tmp_path / "completion.png"
    command = ["images.py", "--quick", "--out", str(out), "--checkpoints", str(tmp_path / "checkpoints")]
    monkeypatch.setattr("sys.argv", [*command, "--picture", str(picture)])
    images.main()
    book = json.loads(out.read_text())
    assert [(row["network"], row["set"]) for row in book["rows"]] == [
        (network, kind)
        for network in ("joint", "pixelwise", "nearest", "taylorformer", "tnpa")
        for kind in ("train", "seen", "unseen")
    ]
    for row in book["rows"]:
        assert len(row["scores"]) == 16
        assert row["log_likelihood"] < 3.6
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert f"{book['rows'][-2]['log_likelihood']:.3f}" in completion.section(book)
    monkeypatch.setattr("sys.argv", command)
    monkeypatch.setattr(images, "evaluate", None)
    images.main()
    assert json.loads(out.read_text())["rows"] == book["rows"]
    book["task"]["repeats"] = 9
    out.write_text(json.dumps(book))
    with pytest.raises(SystemExit, match="another task"):
        images.main()


def test_networks_are_equal_in_size(images):
    sizes = [images.count_parameters(build()) for build in images.networks().values()]
    assert max(sizes) / min(sizes) < 1.01


def test_windows_hold_distinct_pixels_at_their_places_and_numbers_vary_within_the_protocol(digits, task):
    g, sizes = torch.Generator().manual_seed(0), set()
    for _ in range(60):
        w, order = digits.ask(task, task.train[:4], g)
        sizes.add((w.n_context, w.n_targets))
        assert all(len(set(line)) == len(line) for line in order.tolist())
        torch.testing.assert_close(w.y[..., 0], task.train[:4].gather(1, order))
        place = ((w.t + 1) * (SIDE - 1) / 2).round().long()
        assert torch.equal(place[..., 0] * SIDE + place[..., 1], order)
    assert {context for context, _ in sizes} == {3, 4, 5, 6}
    assert {targets for _, targets in sizes} == {4, 5, 6, 7, 8}


def test_training_batches_follow_from_seed_and_step_and_tests_show_every_image_equally_often(digits, task):
    first, again = digits.batch(task, 6, seed=1, step=7), digits.batch(task, 6, seed=1, step=7)
    assert torch.equal(first.y, again.y)
    others = [digits.batch(task, 6, seed=1, step=8), digits.batch(task, 6, seed=2, step=7)]
    assert not any(first.y.shape == w.y.shape and torch.equal(first.y, w.y) for w in others)
    rows = torch.cat([rows for _, rows, _, _ in digits.episodes(task, task.seen, repeats=3, size=4)])
    assert rows.bincount().tolist() == [3] * 9


def test_the_joint_gaussian_has_the_conditional_density_of_all_targets(images, digits, task):
    g = torch.Generator().manual_seed(0)
    a = torch.randn(SIDE**2, SIDE**2, generator=g, dtype=torch.double)
    mean, covariance = a[0], a @ a.T / SIDE**2 + 0.1 * torch.eye(SIDE**2)
    w, order = digits.ask(task, task.seen, g)
    found = images.gaussian(mean, covariance, w, order).log_prob(w.targets[0])[..., 0].sum(1)
    for row, pixels in enumerate(order):
        density = []
        for part in (pixels, pixels[: w.n_context]):
            law = MultivariateNormal(mean[part], covariance[part][:, part])
            density.append(law.log_prob(task.seen[row, part].double()))
        torch.testing.assert_close(found[row], density[0] - density[1])


def test_rows_without_training_are_fitted_to_the_training_images(images, digits, task):
    predict, g = images.untrained(task), torch.Generator().manual_seed(0)
    w, order = digits.ask(task, task.seen, g)
    d = predict["pixelwise"](w, order)
    target = order[:, w.n_context :]
    torch.testing.assert_close(d.mean[..., 0], task.train.double().mean(0)[target])
    variance = task.train.double().var(0)[target] + images.LOWEST**2
    torch.testing.assert_close(d.stddev[..., 0], variance.sqrt())
    d = predict["nearest"](w, order)
    for row in range(len(order)):
        for i in range(w.n_targets):
            before = w.n_context + i
            near = (w.t[row, :before] - w.t[row, before]).norm(dim=1)
            nearest = w.y[row, :before, 0][near < near.min() + 1e-5]
            assert d.mean[row, i, 0] in nearest


def test_scores_are_those_of_every_image_and_black_pixels_have_their_own(images, task):
    def certain(window, order):
        y = window.targets[0]
        return Normal(torch.where(y == -0.5, y, y + 0.3), 0.1)

    found = images.evaluate(certain, task, task.seen, repeats=4)
    peak = Normal(0.0, 0.1).log_prob(torch.tensor([0.0, 0.3])).tolist()
    assert found["black"] == pytest.approx(peak[0], abs=1e-3)
    assert found["other"] == pytest.approx(peak[1], abs=1e-3)
    share = (found["pooled"] - peak[1]) / (peak[0] - peak[1])
    assert found["rmse"] == pytest.approx(0.3 * (1 - share) ** 0.5, rel=1e-2)
    assert found["log_likelihood"] == pytest.approx(np.mean(found["scores"]), abs=1e-3)
    assert np.corrcoef(found["scores"], found["errors"])[0, 1] == pytest.approx(-1, abs=1e-3)
    black = (task.seen == -0.5).double().mean(1).numpy()
    assert np.corrcoef(found["scores"], black)[0, 1] > 0.8


@pytest.mark.parametrize("network", ["taylorformer", "tnpa"])
def test_completions_keep_what_is_shown_and_know_nothing_of_the_rest(images, completion, task, network):
    torch.manual_seed(0)
    net, shown = images.networks(quick=True)[network]().eval(), torch.tensor([3, 17, 8, 24])
    image = task.seen[0]
    other = torch.full_like(image, 0.4)
    other[shown] = image[shown]
    mean, deviation = completion.marginals(net, task, image, shown)
    assert torch.equal(mean[shown], image[shown])
    assert torch.equal(deviation == 0, torch.isin(torch.arange(SIDE**2), shown))
    samples = completion.completions(net, task, image, shown, 300)
    assert torch.equal(samples[:, shown], image[shown].expand(300, -1))
    blind = completion.marginals(net, task, other, shown)
    torch.testing.assert_close((mean, deviation), blind)
    torch.testing.assert_close(samples, completion.completions(net, task, other, shown, 300))
    # The pixel that is drawn first is drawn from its marginal.
    g = torch.Generator().manual_seed(0)
    hidden = [p for p in range(SIDE**2) if p not in shown.tolist()]
    first = hidden[torch.randperm(len(hidden), generator=g)[0]]
    drawn = samples[:, first]
    assert drawn.mean().item() == pytest.approx(
        mean[first].item(), abs=4 * deviation[first].item() / 300**0.5
    )
    assert drawn.std().item() == pytest.approx(deviation[first].item(), rel=0.15)


# ---- the section ----------------------------------------------------------------------------------------


def test_the_section_shows_the_best_in_bold_and_paired_differences(completion):
    values = {"taylorformer": [1.0, 2.0, 4.0], "tnpa": [0.5, 1.0, 3.0], "joint": [1.5, 3.5, 7.0]}
    rows = []
    for network, each in values.items():
        for kind in ("train", "seen", "unseen"):
            for seed in [0] if network == "joint" else [0, 1]:
                scores = np.add(each, seed / 10).tolist()
                rows.append({"network": network, "seed": seed, "set": kind, "scores": scores})
                rows[-1] |= {"log_likelihood": np.mean(scores), "black": 1.0, "other": 0.0, "rmse": 0.1}
                rows[-1]["errors"] = [0.3, 0.3, 0.3] if network == "taylorformer" else [0.3, 0.4, 0.5]
                if network != "joint":
                    rows[-1] |= {"parameters": 1, "seconds": 1, "steps": 5, "batch": 2, "lr": 0.1}
    task = {
        "name": "digits",
        "images": {"train": 3, "seen": 3, "unseen": 3},
        "n_context": [3, 20],
        "n_targets": [32, 32],
        "repeats": 1,
        "lowest_deviation": 0.011,
    }
    text = completion.section({"task": task, "rows": rows})
    differences = np.array([0.5, 1.0, 1.0])
    error = differences.std(ddof=1) / 3**0.5
    assert f"above TNP-A, {differences.mean():+.3f} ({error:.3f}); " in text
    assert "**4.000** (1.607) | **4.000** (1.607)" in text
    assert "| 2.383 (0.882) | 2.383 (0.882) |" in text
    assert "2 seeds" in text
    assert text.count("less those of TNP-A: -25.0 (14.4) %") == 2


def test_recorded_results_are_of_equal_networks_and_of_the_same_windows(images, completion, digits):
    docs = Path(__file__).parents[2] / "docs"
    book = json.loads((docs / "results" / "images.json").read_text())
    task = digits.scikit_digits()
    assert book["task"] == {**task.about(), "repeats": images.REPEATS, "lowest_deviation": images.LOWEST}
    trained = [row for row in book["rows"] if "steps" in row]
    assert {row["network"] for row in trained} == {"taylorformer", "tnpa"}
    assert len({(row["steps"], row["batch"], row["lr"]) for row in trained}) == 1
    for name, build in images.networks().items():
        assert {row["parameters"] for row in trained if row["network"] == name} == {
            images.count_parameters(build())
        }
    found = images.evaluate(images.untrained(task)["joint"], task, task.seen, images.REPEATS)
    row = next(row for row in book["rows"] if (row["network"], row["set"]) == ("joint", "seen"))
    assert row["log_likelihood"] == pytest.approx(found["log_likelihood"], abs=2e-3)
    for row in trained:
        assert f"{row['parameters']:,}" in completion.section(book)
    assert 5_000 < (docs / "images" / "completion.png").stat().st_size < 150_000


# ---- EMNIST ---------------------------------------------------------------------------------------------


def write_idx(path, array):
    """Write bytes in the format of the published files."""
    raw = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


@pytest.fixture
def emnist(tmp_path):
    """Files of four training and three test images of 4 x 3 pixels, columns before rows, some compressed."""
    rng = np.random.default_rng(0)
    upright = {
        "train": rng.integers(0, 256, (4, 4, 3), np.uint8),
        "test": rng.integers(0, 256, (3, 4, 3), np.uint8),
    }
    labels = {"train": np.array([0, 12, 9, 46], np.uint8), "test": np.array([10, 3, 20], np.uint8)}
    for part, end in (("train", ".gz"), ("test", "")):
        name = str(tmp_path / f"emnist-balanced-{part}")
        columns_first = np.ascontiguousarray(upright[part].swapaxes(1, 2))
        write_idx(tmp_path / f"{name}-images-idx3-ubyte{end}", columns_first)
        write_idx(tmp_path / f"{name}-labels-idx1-ubyte{end}", labels[part])
    return tmp_path, upright


def test_emnist_is_read_upright_and_split_by_class(digits, emnist):
    folder, upright = emnist
    task = digits.emnist(folder)
    assert task.shape == (4, 3)
    assert [len(part) for part in (task.train, task.seen, task.unseen)] == [2, 1, 2]
    for part, expected in (
        (task.train, upright["train"][[0, 2]]),
        (task.seen, upright["test"][[1]]),
        (task.unseen, upright["test"][[0, 2]]),
    ):
        torch.testing.assert_close(part.view(expected.shape), torch.tensor(expected / 255 - 0.5).float())
    assert task.grid[:4].tolist() == [[-1, -1], [-1, 0], [-1, 1], pytest.approx([-1 / 3, -1])]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, "has neither emnist-balanced-test-labels-idx1-ubyte nor"),
        (
            struct.pack(">HBBI", 0, 8, 1, 9) + b"abc",
            "should hold 9 bytes, but has 3",
        ),
        (struct.pack(">HBBI", 0, 8, 1, 2) + b"ab", "but 2 labels"),
        (b"<html>not found</html>", "is not an idx file"),
    ],
)
def test_files_that_are_missing_or_broken_are_named(digits, emnist, content, error):
    path = emnist[0] / "emnist-balanced-test-labels-idx1-ubyte"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((FileNotFoundError, ValueError), match=error):
        digits.emnist(emnist[0])


def test_digits_are_split_by_class(digits):
    task = digits.scikit_digits()
    assert (len(task.train), task.grid.shape) == (1000, (64, 2))
    assert len(task.train) + len(task.seen) + len(task.unseen) == 1797
    assert (task.train.min(), task.train.max()) == (-0.5, 0.5)
    assert len({tuple(v) for v in task.seen.tolist()} & {tuple(v) for v in task.train.tolist()}) == 0
