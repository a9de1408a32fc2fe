"""Finds workspace rules that were passed over although they say something of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import FileError, Finding
from nexus_core.plugin import read_text, real_path
from nexus_plugins.file_layers._discovery import RULES
from nexus_plugins.file_layers._texts import COMES_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.plugin import Loaded


def passed_over(loaded: Loaded) -> Iterator[Finding]:
    """A CLAUDE.md beside an AGENTS.md, for one, unless it is a link to it, a copy of it, or nothing but its import."""
    used = {real_path(text.path): text.text.strip() for text in loaded.texts}
    for skipped in loaded.skipped:
        if skipped.path.name in RULES and skipped.reason.endswith(COMES_FIRST) and _says_more(skipped.path, used):
            yield Finding("passed-over", f"says something else, and is not used: {skipped.reason}", skipped.path)


def _says_more(path: Path, used: dict[Path, str]) -> bool:
    if path.is_symlink():  # not read: it may lead anywhere
        return real_path(path) not in used
    try:
        text = (read_text(path) or "").strip()
    except FileError:
        return True
    return bool(text) and text not in used.values() and text.removeprefix("@").removeprefix("./") not in RULES
