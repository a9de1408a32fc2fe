"""Helpers for tokenizer plugins: an import check, and pieces of long texts."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nexus_core.host.calls import describe_exception
from nexus_core.tokens.count_cache import CountCache, get_shared_cache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.machinery import ModuleSpec

NOT_INSTALLED = "is not installed"


def find_import_error(package: str, name: str) -> str:
    """Return why a name cannot be imported from a package, or "" if it can.

    A success is cached on disk until a file of the package changes, so that the common case imports nothing: importing
    a tokenizer takes longer than counting most prompts. A failure is cached by this process.

    Args:
        package: A top-level package: `tiktoken`.
        name: The attribute that is used: `Encoding`.

    Returns:
        Half a sentence that the package's name can precede: "is not installed", "cannot be imported: …".
    """
    try:
        spec = find_spec(package)
    except (ImportError, ValueError) as error:  # another module put something odd into sys.modules
        return f"cannot be imported: importing it {describe_exception(error)}"
    if spec is None:
        return NOT_INSTALLED
    files = _build_fingerprint(spec)
    key = CountCache.key(f"import {package}.{name}", files)
    if get_shared_cache().find(key):
        return ""
    error_text = _try_import(package, name, files)
    if not error_text:
        get_shared_cache().keep(key, 1)
    return error_text


@cache
def _try_import(package: str, name: str, files: str) -> str:  # noqa: ARG001 - part of the cache key
    try:
        getattr(import_module(package), name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - an extension may raise anything, and a panic is not an Exception
        return f"cannot be imported: importing it {describe_exception(error)}"
    return ""


def _build_fingerprint(spec: ModuleSpec) -> str:
    """Identify the files of a package, and the interpreter they are for."""
    found = [f"{sys.implementation.cache_tag} {sys.platform} {os.path.realpath(sys.prefix)} {spec.origin}"]
    for directory in spec.submodule_search_locations or ():
        try:
            with os.scandir(directory) as entries:
                files = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
        except OSError:  # an import from an archive, or a missing directory: identified by its name alone
            files = []
        found += [f"{file} {status.st_size} {status.st_mtime_ns}" for file, status in sorted(files)]
    return "\n".join(found)


MAX_PIECE_BYTES = 64 * 1024
"""Longer texts make some tokenizers fail, or take quadratic time."""

# No token of the GPT family crosses these: a blank after something, a line end after a word, the border between
# letters and digits, a full stop after Chinese, Japanese or Korean.
_BORDER_PATTERN = (
    r"(?<=\S)(?= )|(?<=[A-Za-z0-9])(?=[\r\n]|(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z])"
    r"|(?<=[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3])(?=[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f])"
)
_SEARCH_WINDOWS = (256, 4096)
"""Characters before the limit that are searched for a border first."""


def cut_pieces(text: str, max_bytes: int = MAX_PIECE_BYTES) -> Iterator[str]:
    """Yield consecutive pieces of a text, each at most `max_bytes` in UTF-8, but at least one character.

    The sum of their counts is the count of the text, unless a piece has no position where a token surely ends.
    """
    # A multiple of three, because tokens have up to three digits: so a long number may be cut anywhere.
    limit = max(max_bytes // (1 if text.isascii() else 4) // 3 * 3, 1)
    start = 0
    while len(text) - start > limit:
        end = _find_last_border(text, start, start + limit)
        yield text[start:end]
        start = end
    yield text[start:]


def _find_last_border(text: str, start: int, end: int) -> int:
    borders = re.compile(_BORDER_PATTERN)  # here, because most texts are short
    for window in (*_SEARCH_WINDOWS, end - start):
        place = 0
        for border in borders.finditer(text, max(start + 1, end - window), end + 1):
            place = border.start()
        if place:
            return place
    return end
