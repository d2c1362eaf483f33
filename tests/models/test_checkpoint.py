"""TensorFlow checkpoints of the published code, written here by the format's description and read back."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.published import PUBLISHED_HEADS, reference_names
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.models.tensor_bundle import crc32c, masked, read_checkpoint, varint

ENUMS = {"<f4": 1, "<f8": 2, "<i8": 9}
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def number(value):
    """Write a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(key, value):
    """Write a field of a protocol buffer: numbers as varints, others with their length."""
    if isinstance(value, bytes):
        return number(key << 3 | 2) + number(len(value)) + value
    return number(key << 3) + number(value)


def block(pairs, restart_interval=4):
    """Write a block of a table: keys share what they begin with, but for one in a few."""
    content, restarts, before = b"", [], b""
    for i, (key, value) in enumerate(pairs):
        shared = 0
        if i % restart_interval == 0:
            restarts.append(len(content))
        else:
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
        content += number(shared) + number(len(key) - shared) + number(len(value)) + key[shared:] + value
        before = key
    content += b"".join(struct.pack("<I", at) for at in [*restarts, len(restarts)])
    return content + b"\0" + struct.pack("<I", masked(crc32c(content + b"\0")))


def write_checkpoint(prefix: Path, arrays):
    """Write a checkpoint of two shards, in several blocks, with a string as TensorFlow adds it."""
    shards, messages = [b"", b""], {b"": field(1, 2) + field(3, field(1, 1))}
    for i, (name, array) in enumerate(sorted(arrays.items())):
        shape = b"".join(field(2, field(1, size)) for size in array.shape)
        data, shard = array.tobytes(), i % 2
        entry = field(1, ENUMS[array.dtype.str]) + field(2, shape) + field(3, shard)
        entry += field(4, len(shards[shard])) + field(5, len(data))
        messages[name.encode()] = entry + number(6 << 3 | 5) + struct.pack("<I", masked(crc32c(data)))
        shards[shard] += data
    messages[b"_CHECKPOINTABLE_OBJECT_GRAPH"] = field(1, 7) + field(5, 0)
    table, index, pairs = b"", [], sorted(messages.items())
    for at in range(0, len(pairs), 7):
        written = block(pairs[at : at + 7])
        index.append((pairs[at : at + 7][-1][0], number(len(table)) + number(len(written) - 5)))
        table += written
    handles = b""
    for part in (block([]), block(index)):
        handles += number(len(table)) + number(len(part) - 5)
        table += part
    table += handles.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    Path(f"{prefix}.index").write_bytes(table)
    for shard, data in enumerate(shards):
        Path(f"{prefix}.data-{shard:05d}-of-00002").write_bytes(data)


def as_published(net, root):
    """Arrays of a network under the names that a checkpoint has them, and what training puts beside them."""
    arrays = {}
    for tensor, name, transposed in reference_names(net):
        name = name.replace("DE/batch_norm", "_DE/batch_norm_layer") if name[:2] == "DE" else f"{root}/{name}"
        array = (tensor.T if transposed else tensor).detach().numpy().copy()
        arrays[f"net/{name}{SUFFIX}"] = array
        arrays[f"net/{name}/.OPTIMIZER_SLOT/optimizer/m{SUFFIX}"] = array
    arrays[f"step{SUFFIX}"] = np.array(7)
    return arrays


@pytest.fixture
def net():
    torch.manual_seed(0)
    net = Taylorformer(preset="code", d_model=8, n_heads=2, n_layers=3, dim_encoding=8)
    for tensor, _, _ in reference_names(net):
        tensor.data.copy_(torch.rand_like(tensor))
    return net.eval()


@pytest.mark.parametrize("root", ["_atp", "_taylorformer"])
def test_a_checkpoint_is_read_and_predicts_as_the_network_that_wrote_it(net, tmp_path, root):
    write_checkpoint(tmp_path / "ckpt-37", as_published(net, root))
    found = Taylorformer.from_reference(tmp_path / "ckpt-37", num_heads=2)
    w = Window(torch.linspace(-1, 1, 12).repeat(3, 1), torch.randn(3, 12, 1), n_context=8)
    torch.testing.assert_close(found(w).mean, net(w).mean, rtol=0, atol=0)
    torch.testing.assert_close(found(w).stddev, net(w).stddev, rtol=0, atol=0)


def test_every_array_comes_back_whatever_its_type_and_shape(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {f"a/{i}": rng.normal(size=(i, 300, 2)[: i % 4]).astype("<f4") for i in range(1, 20)}
    arrays |= {"scalar": np.array(2**40), "wide": rng.normal(size=(3, 200))}
    write_checkpoint(tmp_path / "ckpt", arrays)
    found = read_checkpoint(tmp_path / "ckpt.index")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31, 2**63])
def test_integers_of_any_size_are_read(value):
    assert varint(b"\xff" + number(value) + b"\x01", 1) == (value, 1 + len(number(value)))


@pytest.mark.parametrize(
    ("file", "at", "message"),
    [
        ("ckpt.data-00001-of-00002", 5, "data of the checkpoint are damaged: "),
        ("ckpt.index", 30, "a block does not match"),
        ("ckpt.index", -1, "no table"),
    ],
)
def test_a_damaged_file_is_refused(net, tmp_path, file, at, message):
    write_checkpoint(tmp_path / "ckpt", as_published(net, "_atp"))
    data = bytearray((tmp_path / file).read_bytes())
    data[at] ^= 1
    (tmp_path / file).write_bytes(data)
    with pytest.raises(ValueError, match=message):
        Taylorformer.from_reference(tmp_path / "ckpt", num_heads=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda a: a.update({f"net/_atp/spare/bias{SUFFIX}": np.zeros(3)}),
            "that the network has not: spare",
        ),
        (lambda a: a.update({f"net/_atp/linear_layer/bias{SUFFIX}": np.zeros(3)}), r"needs \(8,\)"),
    ],
)
def test_arrays_that_do_not_fit_are_named(net, change, message):
    arrays = as_published(net, "_atp")
    change(arrays)
    with pytest.raises(ValueError, match=message):
        Taylorformer.from_reference(arrays, num_heads=2)


def test_the_number_of_heads_is_known_of_published_sizes_and_wrong_ones_are_refused(net):
    arrays = as_published(net, "_atp")
    with pytest.raises(ValueError, match="num_heads does not follow"):
        Taylorformer.from_reference(arrays)
    with pytest.raises(ValueError, match="num_heads=3 does not divide"):
        Taylorformer.from_reference(arrays, num_heads=3)
    for (width, d_model, n_layers), heads in PUBLISHED_HEADS.items():
        published = Taylorformer(
            preset="code", d_model=d_model, n_layers=n_layers, n_heads=heads, head_dim=width // heads
        )
        arrays = as_published(published, "_atp")
        assert Taylorformer.from_reference(arrays).streams.x_blocks[0].attention.n_heads == heads
        for wrong in {1, 2, 3, 11, 22, 33} - {heads}:
            with pytest.raises(ValueError, match=f"num_heads={wrong}"):
                Taylorformer.from_reference(arrays, num_heads=wrong)
