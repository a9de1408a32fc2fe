"""What another agent would read here: its file names, its walk, its imports and its limits, as data.

Only what an agent reads when it starts is part of this. What it adds once a file is touched, what an administrator
prescribes, and rules with conditions (`.claude/rules`) are not.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal, NamedTuple

from nexus_core.errors import FileError, UnknownNameError
from nexus_core.files.admission import Admission, real_path
from nexus_core.layers.loader import OWN_PROFILE
from nexus_core.layers.texts import choose_texts
from nexus_core.text.markers import INSTRUCTIONS
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.finding import Finding
from nexus_core.values.layer import Layer, LayerText, Skipped
from nexus_core.values.settings import Settings
from nexus_core.values.source import Source

MAX_LOOKUPS = 4_000  # words after an @; without a limit, a file of nothing else would take many seconds


@dataclass(frozen=True, slots=True)
class Profile:
    """How an agent finds its instructions.

    Attributes:
        agent: What people call it.
        start: Where its walk down to the working directory begins: below `/`, or at the root of the repository if any.
        names: What it reads in each directory: the first of these that is there.
        extras: What it reads there besides.
        folder: The directory in the user's home where its own files lie.
        user: What it reads in `folder`, before everything else: the first of these that is there and not blank.
        import_depth: How many imports (`@path`) it follows one out of the other; 0 when it knows none.
        cap: How many bytes it reads of all files of a project together; None when there is no limit.
    """

    agent: str
    start: Literal["root", "git root"]
    names: tuple[str, ...]
    extras: tuple[str, ...]
    folder: str
    user: tuple[str, ...]
    import_depth: int = 0
    cap: int | None = None


_OF_CLAUDE = (".claude/CLAUDE.md", "CLAUDE.local.md")
_CLAUDE = Profile("Claude", "root", ("CLAUDE.md",), _OF_CLAUDE, ".claude", ("CLAUDE.md",), import_depth=5)
_AGENTS = ("AGENTS.override.md", "AGENTS.md")
_CODEX = Profile("Codex", "git root", _AGENTS, (), ".codex", _AGENTS, cap=32 * 1024)
_GEMINI = Profile("Gemini", "git root", ("GEMINI.md",), (), ".gemini", ("GEMINI.md",), import_depth=5)
PROFILES = {"claude": _CLAUDE, "codex": _CODEX, "gemini": _GEMINI}


@dataclass(frozen=True, slots=True)
class ProfileView:
    """The texts that an agent would read, in its order and made safe; what to know about them; what was not used."""

    texts: tuple[LayerText, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]


def read_as(profile_name: str, cwd: Path, home: Path) -> ProfileView:
    """What an agent would read when it is started in `cwd` by the user whose home directory is `home`.

    The findings say what Nexus, careful as elsewhere, did not read (`profile-unread`) and what the agent would not
    (`profile-cap`).

    Raises:
        UnknownNameError: There is no such profile.
    """
    if profile_name not in PROFILES:
        raise UnknownNameError("profile", profile_name, [OWN_PROFILE, *PROFILES])
    profile = PROFILES[profile_name]
    reader = _Reader(profile, home)
    user = home / profile.folder
    own = Layer("global", user, "global")
    reader.read_first(_Place(user, "user", own, Admission(own), real_path(user)), profile.user)
    for place in _places(profile, real_path(cwd)):
        reader.read_first(place, profile.names)
        for name in profile.extras:
            reader.read(place, place.directory / name)
    return ProfileView(tuple(reader.texts), tuple(reader.findings), tuple(reader.skipped))


class _Place(NamedTuple):
    """A directory where an agent looks, and `root`, outside of which nothing is read on its behalf."""

    directory: Path
    label: str
    layer: Layer
    admission: Admission
    root: Path


def _places(profile: Profile, cwd: Path) -> list[_Place]:
    """Where an agent looks on its way to `cwd`, the farthest first."""
    # One admission for all: who may speak in `cwd` is decided there, not in a stranger's directory above it.
    admission = Admission(Layer("local", cwd, "local", root=cwd))
    places = []
    for distance, directory in enumerate((cwd, *cwd.parents)):
        is_inside = directory.is_relative_to(admission.root)
        if directory == directory.parent if profile.start == "root" else not is_inside:
            break
        name = f"ancestor:{directory.name}" if distance else "local"
        layer = Layer(name, directory, "ancestor" if distance else "local", distance)
        # Above the repository each directory stands for itself.
        root = admission.root if is_inside else directory
        places.append(_Place(directory, directory.name or str(directory), layer, admission, root))
    return places[::-1]


class _Reader:
    """Reads each file once, however many names lead to it."""

    def __init__(self, profile: Profile, home: Path) -> None:
        self._profile = profile
        self._home = real_path(home)
        self._left = profile.cap
        self._lookups = 0
        self._seen: set[Path] = set()
        self.texts: list[LayerText] = []
        self.findings: list[Finding] = []
        self.skipped: list[Skipped] = []

    def read_first(self, place: _Place, names: tuple[str, ...]) -> None:
        """Read the first of some files that is there."""
        taken = ""
        for name in names:
            path = place.directory / name
            if taken and os.path.lexists(path):
                self._skip(place, path, f"{taken} comes first")
            elif not taken and self.read(place, path):
                taken = name

    def read(self, place: _Place, path: Path) -> bool:
        """Read a file; whether the agent would look no further for one that it likes less."""
        if not os.path.isfile(path):  # noqa: PTH113 - never fails
            return self._skip(place, path, "not there")
        # What the user links to from the user's own directory may lie anywhere.
        text = self._content(place, path, None if place.layer.is_own else place.root)
        if text is not None and not text.strip():
            self._skip(place, path, "beyond the limit" if self._left == 0 else "blank")
            return not place.layer.is_own
        if text is not None:
            imports: list[Path] = []
            text = self._with_imports(place, path, text, imports)
            title = INSTRUCTIONS.format(agent=self._profile.agent, place=place.label)
            source = Source(uri=str(path), layer=place.layer.name)
            found = LayerText(path, text, "instructions", title, tuple(imports), place.layer, source)
            # One at a time, to have it made safe: what an agent reads twice is there twice.
            chosen = choose_texts([found], Settings())
            self.texts += chosen.texts
            self.findings += chosen.findings
        return True

    def _content(self, place: _Place, path: Path, root: Path | None) -> str | None:
        """What a file says, once; None when it must not be read, or cannot."""
        data = self._data(place, path, root)
        if data is None:
            return None
        self._seen.add(real_path(path))
        # These agents read what is not UTF-8 with replacements, and so does one that cuts a character in two.
        text = self._capped(place, path, data).decode("utf-8", "replace")
        return text.removeprefix("\ufeff").replace("\r\n", "\n")

    def _data(self, place: _Place, path: Path, root: Path | None) -> bytes | None:
        # The name comes first: to look at what lies elsewhere may already mount a directory.
        is_outside = root is not None and not path.is_relative_to(root)
        if not is_outside and real_path(path) in self._seen:
            self._skip(place, path, "read already")
            return None
        try:
            data = Skipped(path, f"leads outside {root}") if is_outside else place.admission.read_bytes(path, root=root)
        except FileError as error:
            data = Skipped(path, error.what)
        if not isinstance(data, Skipped) and b"\0" in data:
            data = Skipped(path, "not a text")
        if not isinstance(data, Skipped):
            return data
        self._skip(place, path, data.reason)
        message = f"{self._profile.agent} would read this; it is not shown: {data.reason}"
        self.findings.append(Finding("profile-unread", message, path))
        return None

    def _capped(self, place: _Place, path: Path, data: bytes) -> bytes:
        """What the agent reads of a file, when it reads a limited number of bytes of all of them."""
        if self._left is None or self._profile.cap is None or place.layer.is_own:
            return data
        kept = data[: self._left]
        if len(kept) < len(data):
            line = kept.count(b"\n") + 1
            cut = f"would cut this at {self._profile.cap // 1024} KiB of all project files together, in line {line}"
            self.findings.append(Finding("profile-cap", f"{self._profile.agent} {cut}", path, line))
        self._left -= len(kept) if kept.strip() else 0
        return kept

    def _with_imports(self, place: _Place, path: Path, text: str, found: list[Path], depth: int = 1) -> str:
        """`text` with files in the place of `@path`, outside code; what is not the name of a file stays as it is."""
        if depth > self._profile.import_depth:
            return text

        def content(match: re.Match[str]) -> str:
            self._lookups += bool(match["path"])
            if not match["path"] or self._lookups > MAX_LOOKUPS:
                return match[0]
            start, name = (self._home, match["path"][2:]) if match["path"][:2] == "~/" else (parent, match["path"])
            # Without `..`, so that what is checked is what is read, whatever links lie on the way.
            target = Path(os.path.normpath(start / name))
            # What is outside is not looked for, but worth a word where it is plainly a file, unlike `@/lib`.
            is_outside = not target.is_relative_to(place.root)
            if target.suffix != ".md" if is_outside else not os.path.isfile(target):  # noqa: PTH113 - never fails
                return match[0]
            imported = self._content(place, target, place.root)
            if imported is None:
                return match[0]
            found.append(real_path(target))
            return self._with_imports(place, target, imported, found, depth + 1).rstrip("\n")

        parent = real_path(path.parent)
        return _CODE_OR_IMPORT.sub(content, text)

    def _skip(self, place: _Place, path: Path, reason: str) -> Literal[False]:
        self.skipped.append(Skipped(path, reason, place.layer.name))
        return False


# Code first, so that what it holds is no import: a fenced block, closed or not; then code in a line.
_CODE_OR_IMPORT = re.compile(
    r"(?ms)^[ \t]*+(?P<fence>`{3,}+|~{3,}+).*?(?:^[ \t]*+(?P=fence)|\Z)"
    r"|(?<!`)(?P<ticks>`++)[^`\n]*+(?P=ticks)(?!`)|(?<!\S)@(?P<path>[^\s`]++)"
)
