"""Imports such as `@docs/style.md`, replaced by the content of the file."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import FileError
from nexus_core.plugin import SkippedFile
from nexus_core.plugin.files import Piece, find_repository_root, is_outside_path, real_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.plugin import Layer
    from nexus_core.plugin.files import LayerReader

MAX_IMPORT_DEPTH = 5
MAX_PATH_CHARACTERS = 4096
MAX_IMPORTED_FILES = 64
MAX_TEXT_BYTES = 4 * 1024 * 1024
MAX_LOOKUPS = 4_000
"""Words after an @ that are looked up; without a limit, a file with nothing else needs ten seconds."""


class ExpandedText(NamedTuple):
    """A text with expanded imports, the sources of its parts, and the imports that were skipped."""

    text: str
    pieces: tuple[Piece, ...]
    imports: tuple[Path, ...]
    skipped: tuple[SkippedFile, ...]


def expand_imports(path: Path, text: str, layer: Layer, reader: LayerReader) -> ExpandedText:
    """Replace every import in a text by the content of the file.

    Words after an @ that are not file names stay unchanged, so that handles and decorators survive.

    Raises:
        FileError: Files import each other in a circle, a file cannot be read, or there is too much to import.
    """
    importer = _ImportExpander(path, text, layer, reader)
    fragments = importer.expand(FragmentCutter(path, text), (real_path(path),))
    imports = tuple(importer.imports)
    expanded, pieces = join_fragments(fragments) if imports else (text, ())
    return ExpandedText(expanded, pieces, imports, tuple(importer.skipped.values()))


class _ImportExpander:
    def __init__(self, path: Path, text: str, layer: Layer, reader: LayerReader) -> None:
        self._path = path
        self._layer = layer
        self._reader = reader
        self._size = len(text.encode())
        self._lookups = 0
        self._not_text: set[Path] = set()
        # Dicts as ordered sets: each file is imported once, and each reason given once.
        self.imports: dict[Path, None] = {}
        self.skipped: dict[tuple[Path, str], SkippedFile] = {}

    def expand(self, cutter: FragmentCutter, chain: tuple[Path, ...]) -> list[TextFragment]:
        """Return the expanded text of the last file of `chain`, in which each file imports the next."""
        scope = self._find_scope(chain[-1], is_text=len(chain) == 1)
        fragments: list[TextFragment] = []
        position = 0
        for token in find_import_tokens(cutter.text):
            self._lookups += 1
            if self._lookups > MAX_LOOKUPS:
                reason = f"more than {MAX_LOOKUPS} words after an @; the others stay as they are"
                self.skipped[self._path, reason] = SkippedFile(self._path, reason)
                break
            content = self._import(_ImportMention(token.path, chain[-1], cutter.text, token.start), chain, scope)
            if content is not None:
                fragments += cutter.cut(position, token.start), *content
                position = token.end
        return [*fragments, cutter.cut(position, len(cutter.text))]

    def _find_scope(self, importer: Path, *, is_text: bool) -> _ImportScope:
        if not self._layer.is_own:
            return _ImportScope((self._reader.root,))
        directory = real_path(self._layer.directory)
        if is_text or importer.is_relative_to(directory):
            home = _get_home()
            # The user made the links in the user's home, so they may have any target.
            return _ImportScope((home, real_path(home), self._layer.directory, directory, importer.parent), links=True)
        # A project that the user imports from must not read all that the user may read.
        return _ImportScope((find_repository_root(importer.parent) or importer.parent,))

    def _import(
        self, mention: _ImportMention, chain: tuple[Path, ...], scope: _ImportScope
    ) -> list[TextFragment] | None:
        """Return the content that replaces an import, or None to leave the import unchanged."""
        # No file has such a long name, and some versions of pathlib are slow with it.
        if len(mention.name) > MAX_PATH_CHARACTERS:
            return None
        path = _resolve_path(mention.name, chain[-1].parent)
        real = _resolve_target(mention.name, path, scope)
        if isinstance(real, str):
            self._skip(path, real, mention)
            return None
        if real is None or real == chain[-1]:  # a file may mention itself
            return None
        if real in chain:
            circle = " -> ".join(map(str, (*chain[chain.index(real) :], real)))
            raise FileError(f"imports form a circle: {circle}", where=str(chain[-1]), hint="remove one of the imports")
        if real in self.imports:
            self._skip(path, "imported already", mention)
            return []
        if len(chain) > MAX_IMPORT_DEPTH:
            self._skip(path, f"imports nested deeper than {MAX_IMPORT_DEPTH}", mention)
            return None
        text = self._read(path, real, scope, mention)
        return None if text is None else strip_last_newlines(self.expand(FragmentCutter(real, text), (*chain, real)))

    def _read(self, path: Path, real: Path, scope: _ImportScope, mention: _ImportMention) -> str | None:
        if len(self.imports) == MAX_IMPORTED_FILES:
            self._raise_limit(f"imports more than {MAX_IMPORTED_FILES} files")
        if real in self._not_text:
            return None
        data = self._reader.read_bytes(path, root=scope.limit)
        if isinstance(data, SkippedFile):
            self._skip(path, data.reason, mention)
            return None
        self._size += len(data)
        if self._size > MAX_TEXT_BYTES:
            self._raise_limit(f"larger than {MAX_TEXT_BYTES >> 20} MiB with its imports")
        try:
            text = data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            self._not_text.add(real)
            self._skip(path, "not UTF-8", mention)
            return None
        self.imports[real] = None
        return text

    def _skip(self, path: Path, reason: str, mention: _ImportMention) -> None:
        if (path, reason) not in self.skipped:
            self.skipped[path, reason] = SkippedFile(path, f"{reason} ({mention.locate(self._layer.project)})")

    def _raise_limit(self, what: str) -> None:
        raise FileError(what, where=str(self._path), hint="import less")


class _ImportMention(NamedTuple):
    """A word after an @, and its position."""

    name: str
    path: Path
    text: str
    offset: int

    def locate(self, directory: Path) -> str:
        """Return file and line, the file relative to `directory` if it is inside."""
        file = self.path.relative_to(directory) if self.path.is_relative_to(directory) else self.path
        return f"{file}:{self.text.count(chr(10), 0, self.offset) + 1}"


class _ImportScope(NamedTuple):
    """The directories that a file may import from, and whether links may lead outside of them."""

    roots: tuple[Path, ...]
    links: bool = False

    @property
    def limit(self) -> Path | None:
        """The directory that imported files must be in, or None if links may lead outside."""
        return None if self.links else self.roots[0]

    @property
    def outside_reason(self) -> str:
        return f"import leads outside {self.roots[0]}"

    def contains(self, path: Path) -> bool:
        return any(map(path.is_relative_to, self.roots))


def _resolve_target(name: str, path: Path, scope: _ImportScope) -> Path | str | None:
    """Return the real path of an imported file, or why it is skipped, or None if no file is meant."""
    # Most words after an @ are not file names; only those that clearly are get a reason.
    if not scope.contains(path):
        # Not even checked for existence: that could open a connection to directories that are mounted on demand.
        return scope.outside_reason if path.suffix or is_outside_path(name) else None
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return "import not there" if path.suffix == ".md" else None
    if stat.S_ISDIR(mode):
        return None
    real = real_path(path)
    if not scope.links and not scope.contains(real):
        return scope.outside_reason
    return real if stat.S_ISREG(mode) else "not a regular file"


def _resolve_path(name: str, directory: Path) -> Path:
    if name.startswith("~/"):
        return Path(os.path.normpath(_get_home() / name[2:]))
    # Without `..`, so that the path that is checked is the path that is read, also with links in it.
    return Path(os.path.normpath(directory / name))


def _get_home() -> Path:
    return Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() fails without a home


# All of these run in linear time: no repetition can match the same text in two ways.
_IMPORT = re.compile(r"(?<!\S)@((?:[\w./~-]|\\ )+)")
_LINE = re.compile(r"[^\n]+\n?|\n")
# A fence may be in a quotation or a list.
_FENCE = re.compile(r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)$", re.MULTILINE)
_FENCE_END = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*$", re.MULTILINE)
# A code span cannot begin in one of these blocks and end in the next.
_BLOCK = re.compile(r"[ \t]*(?:$|[-*+][ \t]|\d{1,9}[.)][ \t]|>|(#{1,6}[ \t]))", re.MULTILINE)
_BACKTICKS = re.compile(r"`+")


class ImportToken(NamedTuple):
    """An import: its range in the text (the whole line if it is alone there), and its unescaped path."""

    start: int
    end: int
    path: str


def find_import_tokens(text: str) -> Iterator[ImportToken]:
    """Yield everything in a text that has the form of an import, in order, without checking for a file."""
    regions = _find_code_regions(text)
    region = next(regions, None)
    for line in _LINE.finditer(text):
        stripped = line[0].strip()
        for match in _IMPORT.finditer(text, line.start(), line.end()):
            while region and region[1] <= match.start():
                region = next(regions, None)
            if region and region[0] <= match.start():
                continue
            path = match[1].rstrip(".")  # the full stop of a sentence
            if not path:
                continue
            start, end = match.start(), match.start() + 1 + len(path)
            if text[start:end] == stripped:
                start, end = line.start(), line.end() - line[0].endswith("\n")
            yield ImportToken(start, end, path.replace("\\ ", " "))


def _find_code_regions(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of code in order: fenced blocks, and spans between backticks."""
    fence, opened, block = "", 0, 0
    for line in _LINE.finditer(text):
        start, end = line.span()
        if fence:
            closing = _FENCE_END.match(text, start, end)
            if closing and closing[1].startswith(fence):
                yield opened, end
                fence, block = "", end
        elif opening := _FENCE.match(text, start, end):
            yield from _find_code_spans(text, block, start)
            fence, opened = opening[1] or opening[2], start
        elif beginning := _BLOCK.match(text, start, end):
            yield from _find_code_spans(text, block, start)
            block = start
            if beginning[1]:  # a heading is a block by itself
                yield from _find_code_spans(text, start, end)
                block = end
    if fence:
        yield opened, len(text)
    else:
        yield from _find_code_spans(text, block, len(text))


def _find_code_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield code spans between two runs of equally many backticks. A run without a counterpart is text."""
    runs = [match.span() for match in _BACKTICKS.finditer(text, start, end)]
    closing: dict[int, int] = {}
    partner: dict[int, int] = {}
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        if length in closing:
            partner[index] = closing[length]
        closing[length] = index
    index = 0
    while index < len(runs):
        if index in partner:
            yield runs[index][0], runs[partner[index]][1]
            index = partner[index]
        index += 1


class TextFragment(NamedTuple):
    """A part of a file, and its line and column there."""

    text: str
    path: Path
    line: int
    column: int


class FragmentCutter:
    """Cuts a file into fragments, from its beginning to its end.

    Args:
        path: The file.
        text: Its content.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.text = text
        self._path = path
        self._offset = 0
        self._line = 1
        self._line_start = 0

    def cut(self, start: int, end: int) -> TextFragment:
        """Return the part from `start` to `end`, which must not begin before the previous one."""
        self._line += self.text.count("\n", self._offset, start)
        self._line_start = max(self._line_start, self.text.rfind("\n", self._offset, start) + 1)
        self._offset = start
        return TextFragment(self.text[start:end], self._path, self._line, start - self._line_start + 1)


def strip_last_newlines(fragments: list[TextFragment]) -> list[TextFragment]:
    """Return fragments without the newlines at their end."""
    remaining = list(fragments)
    while remaining:
        last = remaining.pop()
        text = last.text.rstrip("\n")
        if text:
            return [*remaining, last._replace(text=text)]
    return []


def join_fragments(fragments: Iterable[TextFragment]) -> tuple[str, tuple[Piece, ...]]:
    """Return the joined text, and the source of each part."""
    pieces: list[Piece] = []
    start = 0
    for fragment in fragments:
        pieces.append(Piece(start, fragment.path, fragment.line, fragment.column))
        start += len(fragment.text)
    return "".join(fragment.text for fragment in fragments), tuple(pieces)
