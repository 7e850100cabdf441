"""Tables that grow while they are made: in memory while small, then in a file without a name."""

import tempfile
from typing import Any, Final, final

import pyarrow

from sixjars.data.flat import batches_of, mapped
from sixjars.data.storage.cache import cache_folder, disk_faults

IN_MEMORY: Final = 1 << 25  # bytes of a table that is not put into a file


@final
class Spool:
    """Collects the pieces of a table. Its file has no name, so that it ends with this process.

    >>> spool = Spool()
    >>> spool.add(pyarrow.table({"text": ["one"]}))
    >>> spool.add(pyarrow.table({"text": ["two"]}))
    >>> spool.table().to_pydict()
    {'text': ['one', 'two']}
    """

    def __init__(self) -> None:
        self._pieces: list[Any] = []
        self._bytes = 0
        self._file: Any = None
        self._writer: Any = None

    def add(self, table: Any) -> None:
        """Add a piece, a `pyarrow.Table`."""
        self._bytes += table.nbytes
        self._pieces.append(table)
        if self._bytes > IN_MEMORY:
            with disk_faults("Data that is being read", cache_folder()):
                self._write()

    def _write(self) -> None:
        """Move the pieces in memory to the file."""
        if self._file is None:
            cache_folder().mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=cache_folder())
            self._writer = pyarrow.ipc.new_file(self._file, self._pieces[0].schema)
        for piece in self._pieces:
            self._writer.write_table(piece)
        self._pieces.clear()

    def table(self) -> Any:
        """All pieces as one `pyarrow.Table`, memory-mapped where they are in a file."""
        if self._file is None:
            return pyarrow.concat_tables(self._pieces)
        with disk_faults("Data that is being read", cache_folder()):
            self._write()
            self._writer.close()
            self._file.flush()
            content = mapped(self._file)
        self._file.close()  # the map stays
        pyarrow.default_memory_pool().release_unused()
        return pyarrow.ipc.open_file(pyarrow.py_buffer(content)).read_all()


def filtered(table: Any, kept: Any) -> Any:
    """The rows of a table where `kept` is true, some at a time."""
    spool = Spool()
    at = 0
    for batch in batches_of(table):
        rows = batch.filter(pyarrow.array(kept[at : at + len(batch)]))
        spool.add(pyarrow.Table.from_batches([rows]))
        at += len(batch)
    return spool.table() if at else table
