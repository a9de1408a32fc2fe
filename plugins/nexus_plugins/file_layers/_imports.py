"""Puts the content of other files in the place of `@path`, as other tools do it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import FileError
from nexus_core.plugin import Skipped, real_path, repository_root
from nexus_plugins.file_layers._fragments import Cutter, joined, without_last_newlines
from nexus_plugins.file_layers._tokens import find_tokens

if TYPE_CHECKING:
    from nexus_core.plugin import Admission, Layer, Piece
    from nexus_plugins.file_layers._fragments import Fragment

MAX_DEPTH = 5
LONGEST_NAME = 4096
MAX_FILES = 64
MAX_BYTES = 4 * 1024 * 1024
MAX_LOOKUPS = 4_000
"""How many words after an @ are looked up; without a limit, a file of nothing else would take ten seconds."""


class Expanded(NamedTuple):
    """A text with its imports in place, where its parts come from, and the imports that were left as they are."""

    text: str
    pieces: tuple[Piece, ...]
    imports: tuple[Path, ...]
    skipped: tuple[Skipped, ...]


def expand_imports(path: Path, text: str, layer: Layer, admission: Admission) -> Expanded:
    """Put the content of every file that a text imports in the place of the import.

    What is not the name of a file stays as it is, so that handles and decorators survive.

    Raises:
        FileError: Files import each other in a circle, a file cannot be read, or there is too much to import.
    """
    importer = _Importer(path, text, layer, admission)
    fragments = importer.expand(Cutter(path, text), (real_path(path),))
    imports = tuple(importer.imports)
    whole, pieces = joined(fragments) if imports else (text, ())
    return Expanded(whole, pieces, imports, tuple(importer.skipped.values()))


class _Importer:
    def __init__(self, path: Path, text: str, layer: Layer, admission: Admission) -> None:
        self._path = path
        self._layer = layer
        self._admission = admission
        self._size = len(text.encode())
        self._lookups = 0
        self._not_text: set[Path] = set()
        # Dictionaries for their order: each file is imported, and each reason given, once.
        self.imports: dict[Path, None] = {}
        self.skipped: dict[tuple[Path, str], Skipped] = {}

    def expand(self, cutter: Cutter, chain: tuple[Path, ...]) -> list[Fragment]:
        """The text of the last file of `chain`, each file of which imports the next."""
        reach = self._reach(chain[-1], is_text=len(chain) == 1)
        fragments: list[Fragment] = []
        position = 0
        for token in find_tokens(cutter.text):
            self._lookups += 1
            if self._lookups > MAX_LOOKUPS:
                reason = f"more than {MAX_LOOKUPS} words after an @; the others stay as they are"
                self.skipped[self._path, reason] = Skipped(self._path, reason)
                break
            content = self._content(_Mention(token.path, chain[-1], cutter.text, token.start), chain, reach)
            if content is not None:
                fragments += cutter.cut(position, token.start), *content
                position = token.end
        return [*fragments, cutter.cut(position, len(cutter.text))]

    def _reach(self, importer: Path, *, is_text: bool) -> _Reach:
        if not self._layer.is_own:
            return _Reach((self._admission.root,))
        directory = real_path(self._layer.directory)
        if is_text or importer.is_relative_to(directory):
            home = _home()
            # Links in the user's home are the user's own doing, wherever they lead.
            return _Reach((home, real_path(home), self._layer.directory, directory, importer.parent), links=True)
        # A project that the user imports from must not get the user's reach.
        return _Reach((repository_root(importer.parent) or importer.parent,))

    def _content(self, mention: _Mention, chain: tuple[Path, ...], reach: _Reach) -> list[Fragment] | None:
        """What to put in the place of an import; None leaves it as it is."""
        if (
            len(mention.name) > LONGEST_NAME
        ):  # no file has such a name, and some versions of pathlib take long to see it
            return None
        path = _named_path(mention.name, chain[-1].parent)
        real = _target(path, reach)
        if isinstance(real, str):
            self._skip(path, real, mention)
            return None
        if real is None or real == chain[-1]:  # a file may speak of itself
            return None
        if real in chain:
            circle = " -> ".join(map(str, (*chain[chain.index(real) :], real)))
            raise FileError(f"imports form a circle: {circle}", where=str(chain[-1]), hint="remove one of the imports")
        if real in self.imports:
            self._skip(path, "imported already", mention)
            return []
        if len(chain) > MAX_DEPTH:
            self._skip(path, f"imports nested deeper than {MAX_DEPTH}", mention)
            return None
        text = self._read(path, real, reach, mention)
        return None if text is None else without_last_newlines(self.expand(Cutter(real, text), (*chain, real)))

    def _read(self, path: Path, real: Path, reach: _Reach, mention: _Mention) -> str | None:
        if len(self.imports) == MAX_FILES:
            self._refuse(f"imports more than {MAX_FILES} files")
        if real in self._not_text:
            return None
        data = self._admission.read_bytes(path, root=reach.limit)
        if isinstance(data, Skipped):
            self._skip(path, data.reason, mention)
            return None
        self._size += len(data)
        if self._size > MAX_BYTES:
            self._refuse(f"larger than {MAX_BYTES >> 20} MiB with its imports")
        try:
            text = data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            self._not_text.add(real)
            self._skip(path, "not UTF-8", mention)
            return None
        self.imports[real] = None
        return text

    def _skip(self, path: Path, reason: str, mention: _Mention) -> None:
        if (path, reason) not in self.skipped:
            self.skipped[path, reason] = Skipped(path, f"{reason} ({mention.place(self._layer.project)})")

    def _refuse(self, what: str) -> None:
        raise FileError(what, where=str(self._path), hint="import less")


class _Mention(NamedTuple):
    """A word after an @, and where it stands."""

    name: str
    path: Path
    text: str
    offset: int

    def place(self, directory: Path) -> str:
        """The file, by a name that is short inside `directory`, and the line."""
        file = self.path.relative_to(directory) if self.path.is_relative_to(directory) else self.path
        return f"{file}:{self.text.count(chr(10), 0, self.offset) + 1}"


class _Reach(NamedTuple):
    """The directories that a file may import from, and whether links in them may lead elsewhere."""

    roots: tuple[Path, ...]
    links: bool = False

    @property
    def limit(self) -> Path | None:
        """What an imported file must not lie outside of; None where links may lead anywhere."""
        return None if self.links else self.roots[0]

    @property
    def objection(self) -> str:
        return f"import leads outside {self.roots[0]}"

    def has(self, path: Path) -> bool:
        return any(map(path.is_relative_to, self.roots))


def _target(path: Path, reach: _Reach) -> Path | str | None:
    """The file that a path means, without links, or why it is not imported; None when it means no file."""
    # Most words after an @ are not meant as files; those that plainly are deserve an answer.
    if not reach.has(path):
        # Not even looked at: that alone may open a connection where directories are mounted on demand.
        return reach.objection if path.suffix else None
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return "import not there" if path.suffix == ".md" else None
    if stat.S_ISDIR(mode):
        return None
    real = real_path(path)
    if not reach.links and not reach.has(real):
        return reach.objection
    return real if stat.S_ISREG(mode) else "not a regular file"


def _named_path(written: str, directory: Path) -> Path:
    if written.startswith("~/"):
        return Path(os.path.normpath(_home() / written[2:]))
    # Without `..`, so that what is checked is what is read, whatever links lie on the way.
    return Path(os.path.normpath(directory / written))


def _home() -> Path:
    return Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() fails without a home
