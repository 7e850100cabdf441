"""The weights of a page in fewer bytes, without losing a bit.

Of a 32-bit number the exponent is nearly always one of a few, and the rest looks random. So the
numbers are stored by bytes: first the exponents of all numbers, which compress to a third, then the
rest of them. A file is a gzip stream of

    the length of the header, 4 bytes    the header, JSON    four planes of bytes
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from struct import pack
from typing import Any

import numpy as np
from numpy.typing import NDArray

GZIP = b"\x1f\x8b\x08" + bytes(5) + b"\x02\xff"
"""The beginning of a gzip stream without name and time."""
TEXT, NUMBERS = zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY
"""Texts repeat themselves; among numbers, looking for repetitions makes the result larger."""


def packed(header: Mapping[str, Any], tensors: Iterable[NDArray[np.float32]]) -> bytes:
    r"""A header and the numbers of tensors, one after the other, in one file.

    >>> import gzip
    >>> file = packed({"a": 1}, [np.array([1.0, -2.0], dtype=np.float32)])
    >>> gzip.decompress(file)[4:]
    b'{"a":1}\x7f\x80\x00\x00\x00\x00\x00\x01'
    """
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    begin, numbers = pack("<I", len(text)) + text, planes(tensors)
    checksum, size = zlib.crc32(numbers, zlib.crc32(begin)), len(begin) + len(numbers)
    parts = _deflated(begin, TEXT, zlib.Z_FULL_FLUSH), _deflated(numbers, NUMBERS, zlib.Z_FINISH)
    return b"".join([GZIP, *parts, pack("<II", checksum, size % 2**32)])


def planes(tensors: Iterable[NDArray[np.float32]]) -> bytes:
    """The bits of all numbers, turned left by one so that each exponent is a byte, byte by byte."""
    bits = np.concatenate([np.ravel(tensor) for tensor in tensors]).astype("<f4").view("<u4")
    turned = bits << np.uint32(1) | bits >> np.uint32(31)
    return turned.astype(">u4").view(np.uint8).reshape(-1, 4).T.tobytes()


def _deflated(content: bytes, strategy: int, end: int) -> bytes:
    """Compressed without a frame, so that another part may follow."""
    level, memory = zlib.Z_BEST_COMPRESSION, zlib.DEF_MEM_LEVEL
    compressor = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, memory, strategy)
    return compressor.compress(content) + compressor.flush(end)
