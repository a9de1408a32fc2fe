"""The bundled rank tables, and the encoders made of them."""

from __future__ import annotations

from binascii import crc32
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import FileError, NexusError, UnknownNameError
from nexus_core.plugin import find_import_error

if TYPE_CHECKING:
    from tiktoken import Encoding

FOLDER = Path(__file__).parent / "ranks"

SEPARATOR = b"\xff"
"""Stands between the tokens of a file; no text in UTF-8 has this byte."""
_SAME_TABLE = {"o200k_harmony": "o200k_base"}
"""Encodings that differ only in special tokens, which are counted as text."""
_REINSTALL = "reinstall nexusctx"
REINSTALL_TIKTOKEN = "pip install --force-reinstall tiktoken"


class Table(NamedTuple):
    """A bundled table; scripts/build_ranks.py makes it.

    Attributes:
        name: The encoding.
        crc32: The checksum of its file; a digest would take longer to import than to compute.
        origin_sha256: The digest of tiktoken's own file, which it was made of.
        pattern: How text is split before it is looked up.
        special_tokens: Tokens that are no text.
    """

    name: str
    crc32: int
    origin_sha256: str
    pattern: str
    special_tokens: dict[str, int]


@cache
def tables() -> dict[str, Table]:
    """The tables by the encodings they serve."""
    import json  # noqa: PLC0415 - not needed while another counter answers

    try:
        own = {name: Table(name, **facts) for name, facts in json.loads((FOLDER / "tables.json").read_bytes()).items()}
    except (OSError, ValueError, TypeError) as error:
        raise FileError("the rank tables are damaged", where=str(FOLDER), hint=_REINSTALL) from error
    return own | {name: own[same] for name, same in _SAME_TABLE.items()}


def table_for(encoding: str) -> Table:
    """The table of an encoding; an UnknownNameError when it is not bundled."""
    try:
        return tables()[encoding]
    except KeyError:
        raise UnknownNameError("encoding", encoding, tables()) from None


def ensure_available() -> None:
    """Raise a NexusError if tiktoken cannot be imported, or there are no tables."""
    if reason := find_import_error("tiktoken", "Encoding"):
        raise NexusError(f"tiktoken {reason}", hint=REINSTALL_TIKTOKEN)
    tables()


def read_ranks(table: Table) -> bytes:
    """The file of a table, once its checksum is right."""
    path = FOLDER / f"{table.name}.ranks"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read: {error.strerror}", where=str(path), hint=_REINSTALL) from error
    if crc32(content) != table.crc32:
        raise FileError("the rank table is damaged", where=str(path), hint=_REINSTALL)
    return content


@cache
def load_encoder(table_name: str) -> Encoding:
    """The encoder of a table, made once for the process.

    Raises:
        NexusError: The table is damaged, or tiktoken cannot be used.
    """
    table = tables()[table_name]
    ranks = _parse(read_ranks(table))
    try:
        from tiktoken import Encoding  # noqa: PLC0415 - heavy; not needed while all counts are cached

        return Encoding(
            table.name, pat_str=table.pattern, mergeable_ranks=ranks, special_tokens=dict(table.special_tokens)
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic in the extension is no Exception
        raise NexusError(f"tiktoken cannot be used: {error}", hint=REINSTALL_TIKTOKEN) from error


def _parse(content: bytes) -> dict[bytes, int]:
    tokens = content.split(SEPARATOR)
    tokens[tokens.index(b"")] = SEPARATOR  # the one token that has it, and is nothing else
    return {token: rank for rank, token in enumerate(tokens)}
