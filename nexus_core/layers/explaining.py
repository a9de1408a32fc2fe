"""Answers where a setting, a file or a sentence comes from, and why something is not there."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus_core.config.dotted import follow_keys
from nexus_core.config.keys import keys_of
from nexus_core.config.pointers import join_pointer
from nexus_core.config.servers import SETTING as SERVERS
from nexus_core.config.withholding import withhold_secrets
from nexus_core.errors import NexusError
from nexus_core.files.admission import Admission, real_path
from nexus_core.files.places import workspace_of
from nexus_core.files.tree import list_files
from nexus_core.layers.agent_access import FileAccess, build_agent_indexes, describe_unread_file, is_in_front_matter
from nexus_core.layers.agent_settings import build_agent_home_layer
from nexus_core.text.sentences import SentenceMatcher
from nexus_core.values.layer import Layer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nexus_core.files.tree import FileListing
    from nexus_core.layers.agent_access import AgentFileIndex
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.section import Section
    from nexus_core.values.settings import Settings

MAX_PLACES = 50
"""Files in which a sentence is found, or of a directory, that an answer has."""
MAX_SEARCHED_BYTES = 64 * 1024 * 1024
"""Bytes of all files that are searched for a sentence; reading them takes about a second."""

# Those first in which instructions are written, so that a limit ends the search in the others.
_LIKELY = frozenset({".md", ".mdc", ".markdown", ".txt", ".rst", ".adoc"})
_BINARY = re.compile(
    r"(?i)\.(?:png|jpe?g|gif|webp|ico|pdf|zip|gz|xz|zst|tar|whl|jar|so|dylib|dll|exe|pyc|o|a|woff2?|[to]tf|mp[34]|mov|db)"
)


class ExplainedContext(Protocol):
    """A directory and the sections of its prompt: that of a session, of `ContextLoader` or of another agent."""

    @property
    def cwd(self) -> Path:
        """The directory."""

    @property
    def loaded(self) -> Loaded:
        """Layers, texts, settings and servers."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the prompt, in their order."""


class Explanation(NamedTuple):
    """One answer: what was found, where, and a remark.

    Attributes:
        subject: The setting, file or section it is about.
        place: The file with its line, or "" when there is none.
        remark: What it means, in a few words.
        readers: For a file, which agents read it; the one that was asked for comes first.
    """

    subject: str
    place: str
    remark: str
    readers: tuple[FileAccess, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the explanation as JSON."""
        return {**self._asdict(), "readers": [each._asdict() for each in self.readers]}


class SearchExtent(NamedTuple):
    """The files that were searched for a sentence.

    Attributes:
        root: The directory below which they lie.
        files: How many were read.
        size: Their bytes.
        is_complete: False if a limit ended the search, a file could not be read, or there are more places than an
            answer has.
    """

    root: Path
    files: int
    size: int
    is_complete: bool

    def to_json(self) -> dict[str, object]:
        """Return the extent as JSON."""
        return {"root": str(self.root), "files": self.files, "bytes": self.size, "complete": self.is_complete}


class QueryExplanations(NamedTuple):
    """Everything that was found, and how far the search went; None where no file was searched."""

    explanations: list[Explanation]
    searched: SearchExtent | None = None


def explain(
    context: ExplainedContext, query: str, *, load_in: Callable[[Path], Loaded] | None = None
) -> list[Explanation]:
    """Return everything that is known about a setting's dotted name, a path, or a sentence; as `answer_query`."""
    return answer_query(context, query, load_in=load_in).explanations


def answer_query(
    context: ExplainedContext, query: str, *, load_in: Callable[[Path], Loaded] | None = None
) -> QueryExplanations:
    """Explain a setting, an MCP server, a path or a sentence, in this order.

    A sentence is looked for in the prompt and in every file of the project, whatever its case, line breaks and
    Markdown decoration.

    Args:
        context: A directory and its prompt.
        query: The question.
        load_in: Loads another directory of the project, to say what would be read there.
    """
    project = _Project(context, load_in)
    named = [*_settings(context, query), *_servers(context, query)]
    found = project.explain_path(query) or ([] if named else project.explain_directory(query))
    # A word may be the name of a file or directory and a word of a sentence.
    is_path = query.startswith(".") or os.sep in query or os.path.splitext(query)[1] != ""  # noqa: PTH122 - any text
    if named or (found and is_path):
        return QueryExplanations([*named, *found])
    answer = project.explain_sentence(query)
    return answer._replace(explanations=[*found, *answer.explanations])


def _settings(context: ExplainedContext, query: str) -> Iterator[Explanation]:
    settings, keys = context.loaded.settings, keys_of(query)
    pointer, value = join_pointer(keys), follow_keys(withhold_secrets(settings.value), keys)
    is_group = isinstance(value, dict | list)
    speakers = _speakers(settings, pointer) if is_group else set()
    for number, origin in enumerate(settings.origins.get(pointer, ())):
        if number:
            fate = "some of it" if origin.path in speakers else "overridden"
            yield Explanation(query, str(origin), f"{fate} ({origin.layer})")
        else:
            shown = repr(value) if _is_short(value) else "a group of settings"
            policy = settings.policies.get(pointer)
            merged = f", merged by {policy}" if policy else ""
            yield Explanation(query, str(origin), f"{shown} ({origin.layer}{merged})")
    for finding in context.loaded.findings:
        if finding.message.startswith(f"{query} "):
            yield Explanation(query, finding.place, finding.message)


def _servers(context: ExplainedContext, query: str) -> Iterator[Explanation]:
    for server in context.loaded.servers:
        name = f"{SERVERS}.{server.config.name}"
        if query in {server.config.name, name}:
            yield Explanation(name, f"{server.source_path}:{server.line}", f"{server.status} ({server.origin})")
            if server.shadows is not None:
                yield Explanation(name, str(server.shadows), f"overridden ({server.shadows.layer})")


def _is_short(value: object) -> bool:
    """Whether a value is a word or a number, or a list of some."""
    items = value if isinstance(value, list) else [value]
    return not any(isinstance(item, dict | list) for item in items)


def _speakers(settings: Settings, pointer: str) -> set[Path]:
    """The files that have the last word on something in a group."""
    inside = f"{pointer}/"
    return {origins[0].path for each, origins in settings.origins.items() if each.startswith(inside)}


class _Project:
    """The files of a project, and the agents that may read them."""

    def __init__(self, context: ExplainedContext, load_in: Callable[[Path], Loaded] | None) -> None:
        self._context = context
        self._load_in = load_in
        self._admission = Admission(Layer("local", context.cwd, "local", root=context.cwd))
        self._workspace = workspace_of(context.cwd)
        self._read: dict[Path, str] = {}
        self._unread: set[Path] = set()
        self._size = 0

    @cached_property
    def _indexes(self) -> list[AgentFileIndex]:
        """The agents; questions about settings need none."""
        from nexus_core.layers.context import LoadedContext  # noqa: PLC0415 - questions about settings need none

        context = self._context
        view = context.agent_view if isinstance(context, LoadedContext) else None
        root, files = self._admission.root, self._files
        return build_agent_indexes(context.cwd, context.loaded, view, root=root, files=files, load_in=self._load_in)

    @cached_property
    def _files(self) -> dict[Path, str]:
        """The files that computed sections have a part of, each with how the rest is read."""
        return {path: how for section in self._context.sections for path, how in section.files.items()}

    def explain_path(self, query: str) -> list[Explanation]:
        """Explain a file by its path, as it is seen from the working directory or from the root of the project."""
        # NEXUS.md may stand in the directory or in its `.nexus3`.
        layers = (layer.directory for layer in self._context.loaded.layers if layer.scope == "local")
        places = (self._context.cwd, *layers, self._admission.root)
        try:
            paths = list(dict.fromkeys(real_path(place / query) for place in places))
        except ValueError:  # a NUL in it
            return []
        found = [each for path in paths for each in self._explain_loaded(path)]
        if found:
            return found
        there = [path for path in paths if os.path.isfile(path)]  # noqa: PTH113 - never fails
        return [self._explain_file(path) for path in there[:1]]

    def explain_directory(self, query: str) -> list[Explanation]:
        """Explain the files of a directory in the project."""
        for place in (self._context.cwd, self._admission.root):
            try:
                path = real_path(place / query)
            except ValueError:
                return []
            if os.path.isdir(path) and path.is_relative_to(self._admission.root):  # noqa: PTH112 - never fails
                return [self._explain_file(each) for each in list_files(path, max_files=MAX_PLACES).files]
        return []

    def explain_sentence(self, query: str) -> QueryExplanations:
        """Find a sentence in the prompt, in what other agents read, and in the files of the project."""
        sentence = SentenceMatcher(query)
        found = list(self._explain_sections(sentence))
        known = {real_path(self._context.cwd / each.place.rpartition(":")[0]) for each in found if each.readers}
        root = self._workspace and self._admission.root
        tree = list_files(root) if root else None
        is_complete = tree is None or tree.is_complete
        for path in self._candidates(tree):
            if path in known:
                continue
            if len(found) >= MAX_PLACES or self._size > MAX_SEARCHED_BYTES:
                is_complete = False
                break
            known.add(path)
            line = sentence.find_line(self._text(path))
            if line is not None:
                found.append(self._explain_file(path, line, sentence))
        if root is None:
            return QueryExplanations(found)
        files = len(self._read) - len(self._unread)
        return QueryExplanations(found, SearchExtent(root, files, self._size, is_complete and not self._unread))

    def _explain_sections(self, sentence: SentenceMatcher) -> Iterator[Explanation]:
        imported = {
            text.path: (*(piece.path for piece in text.pieces), *text.imports) for text in self._context.loaded.texts
        }
        for section in self._context.sections:
            if sentence.find(section.text) is None:
                continue
            source = section.source
            parts = list(self._explain_parts(section, sentence))
            if parts:
                yield from parts
                continue
            if source is None or not source.is_file:
                yield Explanation(section.title, source.uri if source else "", "in the prompt")
                continue
            file = self._context.cwd / source.uri
            # A text with imports is made of several files.
            for path in dict.fromkeys((file, *imported.get(file, ()))):
                line = sentence.find_line(self._text(path))
                if line is not None:
                    readers = self._find_readers(path, sentence)
                    yield Explanation(section.title, f"{path}:{line}", "in the prompt", readers)
                    break
            else:
                yield Explanation(section.title, "", "in the prompt")

    def _explain_parts(self, section: Section, sentence: SentenceMatcher) -> Iterator[Explanation]:
        """Explain a sentence that a computed section has from the heads of some files."""
        for path, how in section.files.items():
            content = self._text(path)
            if not is_in_front_matter(sentence, content):
                continue
            own, *others = self._find_readers(path, sentence)
            reason = f"its description is in the prompt; the guide is read on demand ({how})"
            place = f"{path}:{sentence.find_line(content)}"
            yield Explanation(section.title, place, reason, (own._replace(status="read", reason=reason), *others))

    def _candidates(self, tree: FileListing | None) -> Iterator[Path]:
        """The files to search, each by its real path: those that an agent reads or might read, then all others."""
        read = (path for index in self._indexes for text in index.texts for path in (text.path, *text.imports))
        skipped = (each.path for each in self._context.loaded.skipped if each.line is None)
        for path in chain(read, self._files, skipped):
            yield real_path(path)
        if tree is not None:
            files = (path for path in tree.files if not _BINARY.fullmatch(path.suffix))
            yield from sorted(files, key=lambda path: path.suffix.lower() not in _LIKELY and path.suffix != "")

    def _text(self, path: Path) -> str:
        """The text of a file that may be read; "" otherwise."""
        path = real_path(path)
        if path not in self._read:
            self._read[path] = text = self._load(path)
            self._size += len(text)
        return self._read[path]

    def _load(self, path: Path) -> str:
        # What must not be read for the prompt is not read for this either.
        layer = self._owners.get(path)
        admission = self._admission if layer is None else Admission(layer)
        try:
            # A file may be too large for a prompt and still have the sentence.
            data = admission.read_bytes(path, max_bytes=max(MAX_SEARCHED_BYTES - self._size, 0))
        except NexusError:
            self._unread.add(path)
            return ""
        if not isinstance(data, bytes):
            return ""
        if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            return data.decode("utf-16", "replace").replace("\r\n", "\n")
        if b"\0" in data:
            return ""
        return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")

    @cached_property
    def _owners(self) -> dict[Path, Layer]:
        """The layers of the files that an agent reads or passes over; others are files of the project."""
        loaded = self._context.loaded
        layers = {layer.name: layer for layer in loaded.layers}
        owners = {real_path(each.path): layers[each.layer] for each in loaded.skipped if each.layer in layers}
        for text in (text for index in self._indexes for text in index.texts):
            if text.layer is not None:
                owners.update(dict.fromkeys((real_path(text.path), *text.imports), text.layer))
        for path in self._files:
            if not path.is_relative_to(self._admission.root):
                around = (each for each in loaded.layers if not each.is_own and path.is_relative_to(each.project))
                owners[real_path(path)] = next(around, build_agent_home_layer(path.parent, self._context.cwd))
        return owners

    def _explain_loaded(self, path: Path) -> Iterator[Explanation]:
        """What Nexus, or the agent that was asked for, did with a file that it looked at."""
        loaded = self._context.loaded
        for text in loaded.texts:
            if path == real_path(text.path):
                layer = text.layer.name if text.layer else "-"
                yield Explanation(str(text.path), str(text.path), f"in the prompt ({layer})", self._find_readers(path))
            elif path in text.imports:
                readers = self._find_readers(path)
                yield Explanation(str(path), str(text.path), "imported here, and so in the prompt", readers)
        for config in loaded.configs:
            if path == real_path(config.path):
                layer = config.layer.name if config.layer else "-"
                yield Explanation(str(path), str(path), f"settings ({layer})")
        for skipped in loaded.skipped:
            if path == real_path(skipped.path):
                # With a line it is about a part of a file that is used.
                fate = "not in the prompt" if skipped.line is None else "not used"
                is_there = skipped.line is None and os.path.isfile(path)  # noqa: PTH113 - never fails
                reads = self._find_readers(path) if is_there else ()
                yield Explanation(str(skipped.path), skipped.place, f"{fate}: {skipped.reason}", reads)

    def _explain_file(self, path: Path, line: int = 0, sentence: SentenceMatcher | None = None) -> Explanation:
        readers = self._find_readers(path, sentence)
        place = f"{path}:{line}" if line else str(path)
        return Explanation(str(path), place, self._remark(path, readers), readers)

    def _find_readers(self, path: Path, sentence: SentenceMatcher | None = None) -> tuple[FileAccess, ...]:
        content = self._text(path) if sentence else ""
        return tuple(index.find_access(path, sentence, content) for index in self._indexes)

    def _remark(self, path: Path, readers: Sequence[FileAccess]) -> str:
        own = readers[0]
        if own.status == "read":
            return f"in the prompt, {own.reason}" if own.reason else "in the prompt"
        if own.status == "on-demand":
            return f"loaded on demand, {own.reason}"
        if own.status == "elsewhere":
            return f"not in the prompt here: read {own.reason}"
        is_unread = len(readers) > 1 and all(each.status == "unread" and not each.reason for each in readers)
        kind = (
            describe_unread_file(path, self._admission.root) if is_unread else f"{own.name} does not read {path.name}"
        )
        return f"not in the prompt: {own.reason or kind}"
