"""Findings of `nexus doctor` about workspace rules that are not used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import FileError, Finding
from nexus_core.plugin import read_text
from nexus_core.plugin.files import real_path
from nexus_plugins.file_layers._discovery import RULES_FILES
from nexus_plugins.file_layers._files import PRECEDENCE_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.plugin import LoadedLayers


def find_passed_over_rules(loaded: LoadedLayers) -> Iterator[Finding]:
    """Yield findings about rules that another file overrides, such as a CLAUDE.md beside an AGENTS.md.

    Links, copies, and files that only import the other one are not reported.
    """
    used = {real_path(text.path): text.text.strip() for text in loaded.texts}
    for skipped in loaded.skipped:
        if (
            skipped.path.name in RULES_FILES
            and skipped.reason.endswith(PRECEDENCE_SUFFIX)
            and _has_other_text(skipped.path, used)
        ):
            yield Finding("passed-over", f"says something else, and is not used: {skipped.reason}", skipped.path)


def _has_other_text(path: Path, used: dict[Path, str]) -> bool:
    if path.is_symlink():  # not read, because its target may be any file
        return real_path(path) not in used
    try:
        text = (read_text(path) or "").strip()
    except FileError:
        return True
    return bool(text) and text not in used.values() and text.removeprefix("@").removeprefix("./") not in RULES_FILES
