"""The bundled rank tables, their encoders, and the encoding of a model."""

from __future__ import annotations

import json
from binascii import crc32
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import FileError, NexusError, UnknownNameError
from nexus_core.plugin import find_import_error

if TYPE_CHECKING:
    from tiktoken import Encoding

RANKS_DIRECTORY = Path(__file__).parent / "ranks"

RANK_SEPARATOR = b"\xff"
"""Separates the tokens in a file; no UTF-8 text has this byte."""
_SHARED_TABLES = {"o200k_harmony": "o200k_base"}
"""Encodings that differ only in special tokens, which are counted as text."""
_REINSTALL_HINT = "reinstall nexusctx"
REINSTALL_TIKTOKEN_HINT = "pip install --force-reinstall tiktoken"


class RankTable(NamedTuple):
    """A bundled table, built by scripts/build_ranks.py.

    Attributes:
        name: The name of the encoding.
        crc32: The checksum of its file; importing hashlib would cost more time than a digest itself.
        origin_sha256: The digest of tiktoken's file from which it was built.
        pattern: The regular expression that splits text before the lookup.
        special_tokens: The special tokens and their ids.
        index_crc32: The checksum of its index, for short texts.
    """

    name: str
    crc32: int
    origin_sha256: str
    pattern: str
    special_tokens: dict[str, int]
    index_crc32: int


@cache
def load_tables() -> dict[str, RankTable]:
    """Return the tables by the name of the encoding."""
    try:
        tables = {
            name: RankTable(name, **fields)
            for name, fields in json.loads((RANKS_DIRECTORY / "tables.json").read_bytes()).items()
        }
    except (OSError, ValueError, TypeError) as error:
        raise FileError("the rank tables are damaged", where=str(RANKS_DIRECTORY), hint=_REINSTALL_HINT) from error
    return tables | {name: tables[same] for name, same in _SHARED_TABLES.items()}


def get_table(encoding: str) -> RankTable:
    """Return the table of an encoding. Raises UnknownNameError if it is not bundled."""
    try:
        return load_tables()[encoding]
    except KeyError:
        raise UnknownNameError("encoding", encoding, load_tables()) from None


def require_tiktoken() -> None:
    """Raise NexusError if tiktoken cannot be imported or the tables cannot be read."""
    if reason := find_import_error("tiktoken", "Encoding"):
        raise NexusError(f"tiktoken {reason}", hint=REINSTALL_TIKTOKEN_HINT)
    load_tables()


def read_ranks(table: RankTable) -> bytes:
    """Return the file of a table. Raises FileError if it is missing or its checksum is wrong."""
    return _read_file(f"{table.name}.ranks", table.crc32)


def read_index(table: RankTable) -> bytes:
    """Return the index of a table. Raises FileError if it is missing or its checksum is wrong."""
    return _read_file(f"{table.name}.index", table.index_crc32)


def _read_file(name: str, checksum: int) -> bytes:
    path = RANKS_DIRECTORY / name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read: {error.strerror}", where=str(path), hint=_REINSTALL_HINT) from error
    if crc32(content) != checksum:
        raise FileError("the rank table is damaged", where=str(path), hint=_REINSTALL_HINT)
    return content


@cache
def load_encoder(table_name: str) -> Encoding:
    """Return tiktoken's encoder of a table, loaded once per process.

    Raises:
        NexusError: The table is damaged, or tiktoken cannot be used.
    """
    table = load_tables()[table_name]
    ranks = _parse_ranks(read_ranks(table))
    try:
        from tiktoken import Encoding

        return Encoding(
            table.name, pat_str=table.pattern, mergeable_ranks=ranks, special_tokens=dict(table.special_tokens)
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic in the extension is not an Exception
        raise NexusError(f"tiktoken cannot be used: {error}", hint=REINSTALL_TIKTOKEN_HINT) from error


def _parse_ranks(content: bytes) -> dict[bytes, int]:
    tokens = content.split(RANK_SEPARATOR)
    tokens[tokens.index(b"")] = RANK_SEPARATOR  # the only token with this byte consists of nothing else
    return {token: rank for rank, token in enumerate(tokens)}


DEFAULT_ENCODING = "cl100k_base"
"""The encoding if no model is named."""
FALLBACK_ENCODING = "o200k_base"
"""The encoding for models whose tokenizer is not public or not bundled."""


def find_encoding(model: str, encoding: str) -> tuple[str, bool]:
    """Return the encoding to count with, and True if it is the model's own."""
    if not model and not encoding:
        return DEFAULT_ENCODING, False  # the model that gets the text may count differently
    name = encoding or _find_tiktoken_encoding(model)
    return (name, True) if name in load_tables() else (FALLBACK_ENCODING, False)


def _find_tiktoken_encoding(model: str) -> str:
    """Return the encoding in tiktoken's own list, or "" if the model is not in it."""
    try:
        from tiktoken.model import encoding_name_for_model

        return encoding_name_for_model(model.rpartition("/")[2])
    except Exception:  # noqa: BLE001 - it is not in the list, or tiktoken cannot be imported
        return ""
