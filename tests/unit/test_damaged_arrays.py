"""Arrays and HDF5 files that a program wrote wrongly: each is a sentence."""

import io
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

import sixjars
from sixjars.data.media.arrays import read_array
from sixjars.data.media.files import MediaFiles
from sixjars.errors import DataError

from .test_given_features import values, written


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,",
        b"-" * 9000,
        b"(" * 9000,
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"9" * 4000 + b",)}",
        b"{'descr': [1], 'fortran_order': False, 'shape': (2,)}",
        b"\xff\x00",
    ],
    ids=["cut", "many signs", "many brackets", "truth", "huge", "type", "bytes"],
)
def test_a_damaged_header_is_a_sentence(header: bytes) -> None:
    whole = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n" + bytes(8)
    told = r"^a\.npy is not a \.npy file of numbers, or is damaged from its first bytes\.$"
    with pytest.raises(DataError, match=told):
        read_array(io.BytesIO(whole), "a.npy", max_numbers=100)


def test_hdf5_objects_that_hold_no_numbers(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["null"] = h5py.Empty("f4")
        file["type"] = np.dtype("f4")
        file["good"] = np.zeros(2)
    found = MediaFiles([tmp_path / "a.h5"], memory=tmp_path, largest=1000)
    told = r"^null in .*a\.h5 is an empty dataset \(of no shape\); write an array of numb"
    with pytest.raises(DataError, match=told):
        found.open("null")
    assert not found.has("type")
    assert found.has("good")


def test_the_commonest_shape_decides(tmp_path: Path) -> None:
    """Wherever the odd file is: here it is the first."""
    written(tmp_path, (None, 6))
    np.save(tmp_path / "feat" / "0.npy", np.zeros((2, 5)))
    recipe = values(tmp_path)
    told = r"feat/0\.npy has vectors of 5 numbers, but feat/\d+\.npy has vectors of 6 num"
    with pytest.raises(DataError, match=told):
        sixjars.train(recipe, out=tmp_path / "run")
    recipe["data"]["on_bad_row"] = "skip"
    assert sixjars.train(recipe, out=tmp_path / "run").skipped == 1
