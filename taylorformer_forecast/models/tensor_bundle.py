"""Arrays of a TensorFlow checkpoint, read without TensorFlow.

A checkpoint is a table of entries (``NAME.index``) and their bytes (``NAME.data-00000-of-00001``). The table
is that of LevelDB: blocks of sorted keys, each key without what it shares with the one before, and a footer
that points to the index of the blocks. Values are protocol buffers, ``BundleHeaderProto`` for the empty key
and ``BundleEntryProto`` for all others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

MAGIC_FOOTER = bytes.fromhex("57fb808b247547db")
FOOTER_SIZE, HANDLES_SIZE = 48, 40
POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed
DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8", 19: "<f2"}  # strings and others are left out


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """Castagnoli's cyclic redundancy check.

    Examples
    --------
    >>> from taylorformer_forecast.models.tensor_bundle import crc32c
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """A check as tables store it: turned by 15 bits, plus a constant.

    Examples
    --------
    >>> from taylorformer_forecast.models.tensor_bundle import masked
    >>> hex(masked(0))
    '0xa282ead8'
    """
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(data: bytes, at: int) -> tuple[int, int]:
    r"""An integer of seven bits a byte, the lowest first, and where it ends.

    Examples
    --------
    >>> from taylorformer_forecast.models.tensor_bundle import varint
    >>> varint(b"\xac\x02", 0)
    (300, 2)
    """
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of the fields of a protocol buffer."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        value: int | bytes
        kind = key & 7
        if kind == 0:
            value, at = varint(message, at)
        elif kind == 2:
            length, at = varint(message, at)
            value, at = message[at : at + length], at + length
        else:
            size = {1: 8, 5: 4}[kind]
            value, at = int.from_bytes(message[at : at + size], "little"), at + size
        yield key >> 3, value


def _block(table: bytes, handle: bytes, at: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of the block that a handle points to."""
    start, at = varint(handle, at)
    size, _ = varint(handle, at)
    content, kind = table[start : start + size], table[start + size]
    (check,) = struct.unpack_from("<I", table, start + size + 1)
    if masked(crc32c(table[start : start + size + 1])) != check:
        raise ValueError("the index of the checkpoint is damaged: a block does not match its check")
    if kind:
        raise ValueError("the index of the checkpoint is compressed, which TensorFlow does not do")
    (n_restarts,) = struct.unpack_from("<I", content, size - 4)
    end, at, key = size - 4 - 4 * n_restarts, 0, b""
    while at < end:
        shared, at = varint(content, at)
        new, at = varint(content, at)
        length, at = varint(content, at)
        key = key[:shared] + content[at : at + new]
        yield key, content[at + new : at + new + length]
        at += new + length


def _entries(table: bytes) -> dict[str, bytes]:
    """Messages of a table by their keys."""
    footer = table[-FOOTER_SIZE:]
    if len(footer) < FOOTER_SIZE or footer[HANDLES_SIZE:] != MAGIC_FOOTER:
        raise ValueError("the index of the checkpoint is no table of TensorFlow")
    _, at = varint(footer, 0)
    _, at = varint(footer, at)  # the first handle points to filters, of which there are none
    return {
        key.decode(): value for _, handle in _block(table, footer, at) for key, value in _block(table, handle)
    }


def _shape(message: bytes) -> tuple[int, ...]:
    """Sizes in a ``TensorShapeProto``."""
    sizes = []
    for number, dimension in _fields(message):
        if number == 2 and isinstance(dimension, bytes):
            sizes.append(int(dict(_fields(dimension)).get(1, 0)))
    return tuple(sizes)


def read_checkpoint(path: str | Path) -> Mapping[str, np.ndarray]:
    """Read the arrays of a TensorFlow checkpoint.

    Parameters
    ----------
    path : str or Path
        What its files have in common, such as ``"weights/ckpt-37"``; the path of the index will do.

    Returns
    -------
    dict of str to ndarray
        Arrays by their names in the checkpoint. Strings and other types that are no numbers are left out.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file is damaged or of another kind.
    """
    prefix = str(path).removesuffix(".index")
    entries = _entries(Path(f"{prefix}.index").read_bytes())
    header = dict(_fields(entries.pop("", b"")))
    if header.get(2):
        raise ValueError("the checkpoint was written on a big-endian machine")
    n_shards = int(header.get(1, 1))
    shards = [Path(f"{prefix}.data-{k:05d}-of-{n_shards:05d}").read_bytes() for k in range(n_shards)]
    arrays = {}
    for name, message in entries.items():
        entry = dict(_fields(message))
        dtype = DTYPES.get(int(entry.get(1, 0)))
        if dtype is None:
            continue
        if 7 in entry:
            raise ValueError(f"the checkpoint keeps {name!r} in slices, which are not read")
        start, size = int(entry.get(4, 0)), int(entry.get(5, 0))
        data = shards[int(entry.get(3, 0))][start : start + size]
        if masked(crc32c(data)) != entry.get(6, 0):
            raise ValueError(f"the data of the checkpoint are damaged: {name!r} does not match its check")
        arrays[name] = np.frombuffer(data, dtype).reshape(_shape(entry.get(2, b"")))  # type: ignore[arg-type]
    return arrays
