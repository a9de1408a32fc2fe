"""Which files may be read on behalf of a layer: none outside its project, and none that a stranger could have written.

Whoever can put a file into a directory above yours could otherwise speak to your agent, and whoever can put a link
into a project could have it read any file of yours. What is judged is the file that was opened, not its name: between
a look at a name and its use, it may have come to mean another file.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.files.beneath import HAS_DIRECTORY_DESCRIPTORS, names_beneath, open_beneath
from nexus_core.files.ownership import accepted_owners, are_accepted, has_owners, is_foreign
from nexus_core.files.reading import MAX_BYTES, READING, cannot_open, decode_text, read_opened
from nexus_core.files.repository import repository_root
from nexus_core.values.layer import Skipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.values.layer import Layer

MISSING = "not there"
WRITABLE = "anybody may write to it"
FOREIGN = "belongs to somebody else"
PRIVATE = "may hold your secrets"

_EXAMPLES = (".example", ".sample", ".template")

# What systems say when a name is a link that must not be one.
_IS_LINK = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}


class Admission:
    """Reads the files of one layer, those that may be read.

    Args:
        layer: Layers of the user's own may link to anywhere; those of a project stay inside it.

    Attributes:
        repository: The repository that the layer lies in, if any.
        root: What the files of a project must not lie outside of: its repository, else its directory.
    """

    def __init__(self, layer: Layer) -> None:
        self._is_own = layer.is_own
        self._project = layer.project
        self.repository: Path | None = None
        self.root = layer.boundary or layer.project
        if layer.in_repository:
            self.repository = layer.boundary
        elif layer.boundary is None and not layer.is_own:
            project = real_path(layer.project)
            self.repository = repository_root(project)
            self.root = self.repository or project

    def read_text(self, path: Path, *, max_bytes: int = MAX_BYTES) -> str | Skipped:
        """The content of a UTF-8 file without its byte order mark, or why it is not read.

        Raises:
            FileError: It is not a regular file, larger than `max_bytes` (1 MiB), not UTF-8, or cannot be read.
        """
        data = self.read_bytes(path, max_bytes=max_bytes)
        return data if isinstance(data, Skipped) else decode_text(path, data)

    def read_bytes(self, path: Path, *, root: Path | None = None, max_bytes: int = MAX_BYTES) -> bytes | Skipped:
        """The bytes of a regular file, or why it is not read: not there, outside, or perhaps a stranger's.

        Args:
            path: The file; links on the way are followed if they stay inside.
            root: What it must not lie outside of, without links, when that is not `self.root`.
            max_bytes: How large it may be.

        Raises:
            FileError: It is not a regular file, larger than `max_bytes`, or cannot be read.
        """
        try:
            opened = self._open(str(path), root)
        except (FileNotFoundError, NotADirectoryError):
            return Skipped(path, MISSING)
        except (OSError, ValueError) as error:
            # A file that you must not open would otherwise be a way to stop your work.
            if not self._is_own and is_foreign(accepted_owners(self._project), path.parent, path):
                return Skipped(path, FOREIGN)
            raise cannot_open(path, error) from error
        if isinstance(opened, str):
            return Skipped(path, opened)
        descriptor, owner = opened
        try:
            facts = os.fstat(descriptor)
            reason = self._distrust(facts, owner)
            return Skipped(path, reason) if reason else read_opened(path, descriptor, facts, max_bytes=max_bytes)
        finally:
            os.close(descriptor)

    def _open(self, path: str, root: Path | None) -> tuple[int, int | None] | str:
        """The file, and whom its directory belongs to; or in a few words why it must not be read."""
        if root is None and self._is_own:
            return os.open(path, READING), None
        if not os.path.lexists(path):  # as is most of what is looked for
            return MISSING
        limit = str(root or self.root)
        names = names_beneath(limit, path)
        if names and HAS_DIRECTORY_DESCRIPTORS and not _is_private(names):
            try:
                return open_beneath(limit, names)
            except OSError as error:
                if error.errno not in _IS_LINK:
                    raise
        # Else there is a link on the way. It is followed here, once: one that turns up afterwards is not.
        names = names_beneath(limit, os.path.realpath(path))
        if not names or _is_private(names):
            return PRIVATE if names else f"leads outside {limit}"
        # Of a link, too, the owner decides what it means.
        owners = accepted_owners(self._project)
        if not self._is_own and is_foreign(owners, os.path.dirname(path), path):  # noqa: PTH120 - a name
            return FOREIGN
        return open_beneath(limit, names)

    def _distrust(self, facts: os.stat_result, owner: int | None) -> str:
        """Who else could have written a file, in a few words; "" when nobody."""
        # The owner of the directory decides what lies in it.
        owners = {facts.st_uid} if owner is None else {facts.st_uid, owner}
        if not self._is_own and not are_accepted(owners, self._project):
            return FOREIGN
        return WRITABLE if facts.st_mode & stat.S_IWOTH and has_owners() else ""


def _is_private(names: Sequence[str]) -> bool:
    """Whether a file in a project is the user's own: git's, or one for the environment."""
    # Some file systems do not tell capital letters from small ones.
    small = [name.lower() for name in names]
    if ".git" in small:
        return True
    file = small[-1]
    return file in {".env", ".envrc"} or (file.startswith(".env.") and not file.endswith(_EXAMPLES))


def real_path(path: Path) -> Path:
    """The path without links; of a link that leads nowhere or in a circle, as far as it can be followed."""
    return Path(os.path.realpath(path))  # Path.resolve() fails on circles before Python 3.13
