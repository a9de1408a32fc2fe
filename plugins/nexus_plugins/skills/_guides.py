"""Skill guides: discovery, front matter, requirements, past use."""

from __future__ import annotations

import json
import os
import re
from itertools import islice
from shutil import which
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core import FileError, NexusError
from nexus_core.plugin import SkippedFile, read_text, redact
from nexus_core.plugin.files import LayerReader, file_lock, make_directories, real_path, write_text_atomically
from nexus_core.plugin.text import MAX_HEAD_CHARACTERS, FrontMatterError, read_front_matter, strip_hidden, visible_line
from nexus_plugins.skills import find_skill_directories
from nexus_plugins.skills._section import DEFAULT_CATEGORY, MAX_DESCRIPTION_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from nexus_core.plugin import Layer, LoadedLayers, Settings
    from nexus_core.plugin.text import FlowValue

MAX_REQUIRED_NAMES = 32  # variables or programs of one guide

_GUIDE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_CATEGORY_NAME = re.compile(r"[^\W_](?:[\w &/+-]{0,30}[^\W_])?")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_PROGRAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_SEPARATORS = re.compile(r"[\s,]+")


class SkillGuide(NamedTuple):
    """The front matter of a skill's guide.

    Attributes:
        name: The name of the skill.
        description: Its purpose in one line; "" if it has none.
        category: The category in lists.
        variables: The environment variables that it requires.
        programs: The programs that it requires.
        path: Its file.
        layer: The layer that it belongs to.
    """

    name: str
    description: str
    category: str
    variables: tuple[str, ...]
    programs: tuple[str, ...]
    path: Path
    layer: Layer


class UnusableGuideError(ValueError):
    """Raised when a guide cannot be offered, with the reason."""


def parse_guide(path: Path, layer: Layer, head: dict[str, FlowValue], remarks: list[str]) -> SkillGuide:
    """Build a guide from its front matter, and append what is odd about it to `remarks`.

    Raises:
        UnusableGuideError: The guide has no valid name, or invalid requirements.
    """
    return SkillGuide(
        _parse_name(head, path.parent.name, remarks),
        _parse_description(head, remarks),
        _parse_category(head, remarks),
        _parse_required(head, ("env",), _VARIABLE_NAME),
        _parse_required(head, ("bin", "bins"), _PROGRAM_NAME),
        path,
        layer,
    )


def _parse_name(head: dict[str, FlowValue], directory: str, remarks: list[str]) -> str:
    """Return a guide's name if it is valid, else that of its directory: many guides have a title as name."""
    name = head.get("name") or directory
    if isinstance(name, str) and _GUIDE_NAME.fullmatch(name):
        if name != directory:
            remarks.append(f"is named {name!r}, unlike its directory")
        return name
    rule = "its name must be at most 64 ASCII letters, digits, '-', '_' or '.'"
    if not _GUIDE_NAME.fullmatch(directory):
        raise UnusableGuideError(rule)
    remarks.append(f"{rule}; the name of its directory is used")
    return directory


def _parse_description(head: dict[str, FlowValue], remarks: list[str]) -> str:
    value = head.get("description")
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text:
        remarks.append("has no description")
    redacted = redact(text)
    if redacted.counts:
        kinds = ", ".join(sorted(redacted.counts))
        remarks.append(f"its description has what looks like a secret ({kinds}); the prompt has the rest")
        text = redacted.text
    if len(text) > MAX_DESCRIPTION_CHARACTERS:
        remarks.append(f"its description is longer than {MAX_DESCRIPTION_CHARACTERS:,} characters")
        text = f"{text[:MAX_DESCRIPTION_CHARACTERS]}…"
    return text


def _parse_category(head: dict[str, FlowValue], remarks: list[str]) -> str:
    value = _find_value(head, "category") or DEFAULT_CATEGORY
    if isinstance(value, str) and _CATEGORY_NAME.fullmatch(value):
        return value[0].upper() + value[1:]
    remarks.append("its category must be at most 32 characters: words, '&', '/', '+' and '-'")
    return DEFAULT_CATEGORY


def _parse_required(head: dict[str, FlowValue], keys: tuple[str, ...], form: re.Pattern[str]) -> tuple[str, ...]:
    """Return the names of a guide's requirements, without duplicates, in its order."""
    requires = _find_value(head, "requires")
    if not isinstance(requires, dict):
        return ()
    names = list(dict.fromkeys(name for key in keys for name in _split_names(requires.get(key, ""))))
    if len(names) > MAX_REQUIRED_NAMES or not all(form.fullmatch(name) for name in names):
        raise UnusableGuideError(f"`requires.{keys[0]}` must be a list of at most {MAX_REQUIRED_NAMES} names")
    return tuple(names)


def _split_names(value: FlowValue) -> Iterator[str]:
    # An object's keys are the names; some guides describe each requirement in its value.
    for item in _SEPARATORS.split(value) if isinstance(value, str) else value:
        if not isinstance(item, str):
            raise UnusableGuideError("`requires` must hold lists of names")
        if item:
            yield item


def _find_value(head: dict[str, FlowValue], key: str) -> FlowValue | None:
    """Return a field of Nexus from the top level or from `metadata`, where other agents allow foreign fields."""
    metadata = head.get("metadata")
    tables: list[FlowValue] = [head]
    if isinstance(metadata, dict):
        tables += [metadata, *metadata.values()]
    return next((table[key] for table in tables if isinstance(table, dict) and key in table), None)


GUIDE_FILE = "SKILL.md"
MAX_GUIDE_BYTES = 256 * 1024
MAX_DIRECTORY_ENTRIES = 1000
MAX_TOTAL_HEAD_CHARACTERS = 32 * MAX_HEAD_CHARACTERS  # characters of front matter in all guides together


class GuideProblem(NamedTuple):
    """A problem of a guide.

    Attributes:
        path: Its file.
        line: The line, from 1; 0 for the whole file.
        message: The problem.
        is_used: True if the guide is offered nevertheless.
        is_note: True if it is probably intended: a nearer layer has a guide of the same name.
    """

    path: Path
    line: int
    message: str
    is_used: bool
    is_note: bool = False


class GuideSearchResult(NamedTuple):
    """The usable guides by name, sorted, and the problems of all guides."""

    guides: dict[str, SkillGuide]
    faults: list[GuideProblem]


def find_guides(loaded: LoadedLayers) -> GuideSearchResult:
    """Return the guides of all layers.

    Of two with one name, that of the nearer layer is used; in a layer, that of `.nexus3`, then `.claude`, `.agents`
    and `.codex`; in a directory, the one whose own directory sorts first.
    """
    search = _GuideSearch()
    ranked = list(enumerate(find_skill_directories(loaded.layers)))
    # The user's own are read first, so that a project's guides cannot use up the total limit.
    ranked.sort(key=lambda each: (not each[1][0].is_own, each[0]))
    candidates = [
        (rank, candidate)
        for rank, (layer, directory) in ranked
        for candidate in search.read_directory(layer, directory)
    ]
    candidates.sort(key=lambda each: each[0])
    return _choose_guides([candidate for _, candidate in candidates], search.faults)


def read_guide_text(guide: SkillGuide) -> str:
    """Return the text of a guide without its front matter, and if it is a project's, hidden characters.

    Raises:
        FileError: The file can no longer be read.
    """
    text = LayerReader(guide.layer).read_text(guide.path, max_bytes=MAX_GUIDE_BYTES)
    if isinstance(text, SkippedFile):
        raise FileError(text.reason, where=str(guide.path))
    try:
        return read_front_matter(text if guide.layer.is_own else strip_hidden(text)).body.strip("\n")
    except FrontMatterError as error:
        raise FileError(str(error), where=f"{guide.path}:{error.line}") from None


class _GuideCandidate(NamedTuple):
    """A usable guide, and what is odd about it."""

    guide: SkillGuide
    remarks: list[str]


def _choose_guides(candidates: Iterable[_GuideCandidate], faults: list[GuideProblem]) -> GuideSearchResult:
    """Return the first guide of each name, and all problems, including those found before."""
    found: dict[str, SkillGuide] = {}
    files: set[str] = set()
    for guide, remarks in candidates:
        real = os.path.realpath(guide.path)
        if real in files:  # a link to a guide in another directory
            continue
        files.add(real)
        winner = found.setdefault(guide.name, guide)
        if winner is not guide and _is_copy(guide, winner):
            continue
        faults += [GuideProblem(guide.path, 0, visible_line(remark), is_used=winner is guide) for remark in remarks]
        if winner is not guide:
            message = visible_line(f"has the same name as {winner.path}, which is used")
            faults.append(GuideProblem(guide.path, 0, message, is_used=False, is_note=winner.layer is not guide.layer))
    return GuideSearchResult({name: found[name] for name in sorted(found)}, faults)


class _GuideSearch:
    """Reads guides directory by directory, and collects problems."""

    def __init__(self) -> None:
        self.faults: list[GuideProblem] = []
        self._remaining = MAX_TOTAL_HEAD_CHARACTERS

    def read_directory(self, layer: Layer, directory: Path) -> Iterator[_GuideCandidate]:
        reader = LayerReader(layer)
        for path in self._list_files(directory, layer, reader):
            if (candidate := self._read_guide(path, layer, reader)) is not None:
                yield candidate

    def _list_files(self, directory: Path, layer: Layer, reader: LayerReader) -> Iterator[Path]:
        if not layer.is_own and not real_path(directory).is_relative_to(real_path(reader.root)):
            self._add_problem(directory, f"leads outside {reader.root}")
            return
        try:
            with os.scandir(directory) as entries:
                names = [entry.name for entry in islice(entries, MAX_DIRECTORY_ENTRIES + 1)]
        except OSError as error:
            self._add_problem(directory, f"cannot read: {error.strerror}")
            return
        if len(names) > MAX_DIRECTORY_ENTRIES:  # a part of them would depend on the order of the file system
            self._add_problem(directory, f"has more than {MAX_DIRECTORY_ENTRIES:,} entries; none is read")
            return
        yield from (directory / name / GUIDE_FILE for name in sorted(names))

    def _read_guide(self, path: Path, layer: Layer, reader: LayerReader) -> _GuideCandidate | None:
        remarks: list[str] = []
        try:
            text = reader.read_text(path, max_bytes=MAX_GUIDE_BYTES)
            if isinstance(text, SkippedFile):
                if text.reason != "not there":
                    self._add_problem(path, text.reason)
                return None
            head = read_front_matter(self._get_head(text, layer))
            guide = parse_guide(path, layer, head.values, remarks)
        except FrontMatterError as error:
            self._add_problem(path, str(error), line=error.line)
            return None
        except (FileError, UnusableGuideError) as error:
            self._add_problem(path, error.what if isinstance(error, FileError) else str(error))
            return None
        return _GuideCandidate(guide, remarks)

    def _get_head(self, text: str, layer: Layer) -> str:
        """Return the start of a guide with its front matter. A total limit bounds the time for all guides."""
        if self._remaining <= 0:
            raise UnusableGuideError(
                f"the front matter of all skills together has more than {MAX_TOTAL_HEAD_CHARACTERS:,} characters"
            )
        start = text[: MAX_HEAD_CHARACTERS + 16]
        end = start.find("\n---", 1)
        self._remaining -= len(start) if end < 0 else end
        return start if layer.is_own else strip_hidden(start)

    def _add_problem(self, path: Path, message: str, *, line: int = 0) -> None:
        self.faults.append(GuideProblem(path, line, visible_line(message), is_used=False))


def _is_copy(guide: SkillGuide, other: SkillGuide) -> bool:
    """Return True if two guides have the same name and text, because several tools have the same skills."""
    if guide.path.parent.name != other.path.parent.name:
        return False
    texts = [LayerReader(each.layer).read_text(each.path, max_bytes=MAX_GUIDE_BYTES) for each in (guide, other)]
    return texts[0] == texts[1]


SkillStatus = Literal["used", "ready", "unready"]
"""Used: ready, and read before. Ready: all requirements are met. Unready: a requirement is missing."""

CredentialStatus = Literal["none", "configured", "broken", "absent"]
"""None: no variables required. Otherwise all (configured), some (broken) or none (absent) are set."""


class SkillCapability(NamedTuple):
    """A skill and the status of its requirements.

    Attributes:
        guide: Its guide.
        status: Whether it can be used.
        missing: The required variables and programs that are missing.
        credentials: Whether its variables are set; their values are not read.
    """

    guide: SkillGuide
    status: SkillStatus
    missing: tuple[str, ...]
    credentials: CredentialStatus

    @property
    def facts(self) -> dict[str, object]:
        """Name, category, status and missing requirements as JSON."""
        return {
            "name": self.guide.name,
            "category": self.guide.category,
            "status": self.status,
            "missing": list(self.missing),
        }


def find_skills(loaded: LoadedLayers, home: Path) -> list[SkillCapability]:
    """Return the skills of all layers that the settings let an agent use, sorted by name."""
    return find_capabilities(find_guides(loaded).guides, home, loaded.settings)


def find_capabilities(guides: Mapping[str, SkillGuide], home: Path, settings: Settings) -> list[SkillCapability]:
    """Return the skills of the guides that the settings enable, in the same order."""
    enabled, disabled = settings.get("skills.enabled"), settings.get("skills.disabled")
    excluded = set(disabled) if isinstance(disabled, list) else set()
    chosen = [
        guide
        for name, guide in guides.items()
        if name not in excluded and (not isinstance(enabled, list) or name in enabled)
    ]
    used = read_used_guides(home) if chosen else frozenset()
    return [check_requirements(guide, is_used=bool(used) and os.path.realpath(guide.path) in used) for guide in chosen]


def check_requirements(guide: SkillGuide, *, is_used: bool) -> SkillCapability:
    """Check a guide's requirements in the environment of this process."""
    unset = [name for name in guide.variables if not os.environ.get(name)]
    missing = (*unset, *(name for name in guide.programs if not _is_installed(name)))
    status: SkillStatus = "unready" if missing else "used" if is_used else "ready"
    return SkillCapability(guide, status, missing, _get_credential_status(len(guide.variables), len(unset)))


def _get_credential_status(needed: int, unset: int) -> CredentialStatus:
    if not needed:
        return "none"
    if not unset:
        return "configured"
    return "broken" if unset < needed else "absent"


def _is_installed(program: str) -> bool:
    # Relative entries of PATH would find programs of a project.
    entries = [each for each in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(each)]  # noqa: PTH117 - strings
    return which(program, path=os.pathsep.join(entries)) is not None if entries else False


USED_GUIDES_FILE = "used-skills.json"
MAX_USED_GUIDES = 1000


def read_used_guides(home: Path) -> frozenset[str]:
    """Return the files of the guides that were used before, or empty if the list cannot be read."""
    return frozenset(_read_used_file(home))


def mark_guide_used(home: Path, guide: Path) -> None:
    """Store that a guide was used. Beyond the limit, the oldest entries are removed.

    Raises:
        FileError: The list cannot be written.
    """
    name = os.path.realpath(guide)
    if name in _read_used_file(home):
        return
    make_directories(home, mode=0o700)
    with file_lock(home / "used-skills.lock"):
        used = [each for each in _read_used_file(home) if each != name]  # read again under the lock
        write_text_atomically(home / USED_GUIDES_FILE, _encode_used_file([*used, name][-MAX_USED_GUIDES:]), mode=0o600)


def _read_used_file(home: Path) -> list[str]:
    try:
        document = json.loads(read_text(home / USED_GUIDES_FILE) or "{}")
    except (NexusError, ValueError, RecursionError):  # a damaged list must not break the prompt
        return []
    used = document.get("used") if isinstance(document, dict) else None
    return [each for each in used if isinstance(each, str)] if isinstance(used, list) else []


def _encode_used_file(used: list[str]) -> str:
    return json.dumps({"schema": 1, "used": used}, indent=1) + "\n"  # ASCII, because a path may have lone surrogates
