"""What another agent would read here: its files, its order, its imports, its limits and its own settings.

`AgentProfile.rules` names the documentation or source that each rule rests on. Only what an agent reads when it starts
is a text of the view; what it adds once it works somewhere is listed as loaded on demand.
"""

from __future__ import annotations

import os
import re
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core.errors import FileError, UnknownNameError
from nexus_core.files.admission import Admission, real_path
from nexus_core.files.tree import list_files
from nexus_core.layers.agent_settings import (
    AgentHomes,
    AgentSettings,
    build_agent_home_layer,
    claude_policy_directory,
    find_marked_directory,
    is_contained_name,
    matches_any_glob,
    read_claude_settings,
    read_codex_settings,
    read_gemini_settings,
)
from nexus_core.layers.loader import OWN_PROFILE
from nexus_core.layers.texts import choose_texts
from nexus_core.text.front_matter import FrontMatterError, read_front_matter
from nexus_core.text.markers import INSTRUCTIONS
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.finding import Finding
from nexus_core.values.layer import Layer, LayerText, Skipped
from nexus_core.values.settings import Settings
from nexus_core.values.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

MAX_LOOKUPS = 4_000  # words after an @; without a limit, a file of nothing else would take many seconds
MAX_RULES = 1_000  # files in one directory of rules

_CLAUDE_DOCS = "https://code.claude.com/docs/en/memory"
_CODEX_DOCS = "https://developers.openai.com/codex/guides/agents-md"
_CODEX_CONFIG = "https://developers.openai.com/codex/config-basic"
_CODEX_SOURCE = "https://github.com/openai/codex/blob/main/codex-rs/core/src/agents_md.rs"
_GEMINI_DOCS = "https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/gemini-md.md"
_GEMINI_CONFIG = "https://github.com/google-gemini/gemini-cli/blob/main/docs/reference/configuration.md"
_GEMINI_SOURCE = "https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src"


class CitedRule(NamedTuple):
    """One rule by which an agent reads instructions, and the documentation or source it rests on."""

    rule: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """Another agent.

    Attributes:
        agent: Its short name, in the titles of sections.
        name: What its users call it.
        import_depth: Number of imports (`@path`) it follows one out of the other; 0 if it has none.
        imports_from_home: True if `@~/path` is an import.
        unknown: What no file says about its instructions, in one line.
        rules: What it reads, with sources.
    """

    agent: str
    name: str
    import_depth: int
    imports_from_home: bool
    unknown: str
    rules: tuple[CitedRule, ...]


_CLAUDE = AgentProfile(
    agent="Claude",
    name="Claude Code",
    import_depth=4,
    imports_from_home=True,
    unknown="its version (AGENTS.md needs 2.1.277), its options (--add-dir, --setting-sources), its auto memory and"
    " plugins, and whether you approved imports from outside the working directory",
    rules=(
        CitedRule(
            "the administrator's CLAUDE.md, then ~/.claude/CLAUDE.md and ~/.claude/rules",
            f"{_CLAUDE_DOCS}#choose-where-to-put-claude-md-files",
        ),
        CitedRule(
            "CLAUDE.md, .claude/CLAUDE.md and CLAUDE.local.md of every directory from / down; those below on demand",
            f"{_CLAUDE_DOCS}#how-claude-md-files-load",
        ),
        CitedRule(
            "AGENTS.md only where no CLAUDE.md or CLAUDE.local.md is there or above (setting instructionFiles)",
            f"{_CLAUDE_DOCS}#agents-md",
        ),
        CitedRule(
            ".claude/rules/**/*.md; with `paths` in the front matter only for files that match",
            f"{_CLAUDE_DOCS}#organize-rules-with-claude/rules/",
        ),
        CitedRule(
            "skills, subagents and commands below .claude only when they are used",
            "https://code.claude.com/docs/en/skills",
        ),
        CitedRule(
            "nothing that claudeMdExcludes matches, except the administrator's file",
            f"{_CLAUDE_DOCS}#exclude-specific-claude-md-files",
        ),
        CitedRule(
            "@path imports outside code, four deep; HTML comments are left out",
            f"{_CLAUDE_DOCS}#import-additional-files",
        ),
    ),
)
_CODEX = AgentProfile(
    agent="Codex",
    name="Codex",
    import_depth=0,
    imports_from_home=False,
    unknown="its options (--config, --profile), settings from an organization, and whether its version reads a project"
    " that you do not trust",
    rules=(
        CitedRule("the first of ~/.codex/AGENTS.override.md and AGENTS.md that is not blank", _CODEX_DOCS),
        CitedRule(
            "one file in each directory from the project root down: AGENTS.override.md, AGENTS.md, then"
            " project_doc_fallback_filenames",
            _CODEX_SOURCE,
        ),
        CitedRule(
            "project_doc_max_bytes (32 KiB) of them together, the root's first; what comes later is cut", _CODEX_SOURCE
        ),
        CitedRule(
            ".codex/config.toml of a project only if you trust the project; project_root_markers only from your own",
            _CODEX_CONFIG,
        ),
        CitedRule(
            "skills in .agents/skills and .codex/skills, yours and the project's, only when they are used",
            "https://developers.openai.com/codex/skills",
        ),
    ),
)
_GEMINI = AgentProfile(
    agent="Gemini",
    name="Gemini CLI",
    import_depth=5,
    imports_from_home=False,
    unknown="whether it trusts this folder, its extensions, its memory of the project, its options, and its version"
    " (older ones read only the names in context.fileName)",
    rules=(
        CitedRule("~/.gemini/GEMINI.md, then those from the project root down to the working directory", _GEMINI_DOCS),
        CitedRule(
            "the names in context.fileName besides GEMINI.md, all of them in each directory",
            f"{_GEMINI_SOURCE}/tools/memoryTool.ts",
        ),
        CitedRule(
            "the project root has one of context.memoryBoundaryMarkers (.git); files in the order of their paths; those"
            " below on demand",
            f"{_GEMINI_SOURCE}/utils/memoryDiscovery.ts",
        ),
        CitedRule(
            "@path imports outside code, five deep, inside the project",
            f"{_GEMINI_SOURCE}/utils/memoryImportProcessor.ts",
        ),
        CitedRule("the settings of the system's defaults, the user, the project and the system", _GEMINI_CONFIG),
        CitedRule(
            "skills in .gemini/skills and .agents/skills, yours and those of the working directory, only when they are"
            " used",
            "https://geminicli.com/docs/cli/using-agent-skills/",
        ),
    ),
)
PROFILES = {"claude": _CLAUDE, "codex": _CODEX, "gemini": _GEMINI}


class OnDemandFile(NamedTuple):
    """A file that an agent adds later.

    Attributes:
        path: The file.
        when: When it is added, in a few words.
        paths: For a rule, the patterns of the files it is for.
    """

    path: Path
    when: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileView:
    """What an agent would read in a directory.

    Attributes:
        agent: The agent, by its key in `PROFILES`.
        texts: What it reads at the start, in its order and made safe.
        findings: What to know about them.
        skipped: What it does not read, and why.
        on_demand: What it adds once it works somewhere.
        is_complete: False if there are too many files to list all that are added on demand.
        whole_sizes: Of each file that a limit cuts, how many characters all of it has.
    """

    agent: str
    texts: tuple[LayerText, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    on_demand: tuple[OnDemandFile, ...] = ()
    is_complete: bool = True
    whole_sizes: Mapping[Path, int] = field(default_factory=dict, hash=False)

    @property
    def profile(self) -> AgentProfile:
        """The agent's rules."""
        return PROFILES[self.agent]


def read_as(agent: str, cwd: Path, homes: AgentHomes, *, nested: bool = True) -> ProfileView:
    """Return what an agent would read when it is started in a directory.

    The findings name what Nexus, careful as elsewhere, did not read (`profile-unread`), what the agent would not
    (`profile-cap`), and settings that could not be used (`profile-settings`).

    Args:
        agent: Its key in `PROFILES`.
        cwd: The directory.
        homes: Where the user's agents keep their own files.
        nested: Whether to look for files below the directory that are loaded on demand.

    Raises:
        UnknownNameError: There is no such profile.
    """
    if agent not in PROFILES:
        raise UnknownNameError("profile", agent, [OWN_PROFILE, *PROFILES])
    cwd = real_path(cwd)
    settings = _SETTINGS[agent](cwd, homes)
    reader = _Reader(PROFILES[agent], settings, cwd, homes, nested=nested)
    _READERS[agent](reader)
    return ProfileView(
        agent,
        tuple(reader.texts),
        (*settings.findings, *reader.findings),
        (*settings.skipped, *reader.skipped),
        tuple(sorted(reader.on_demand)),
        reader.is_complete,
        reader.whole_sizes,
    )


class _Place(NamedTuple):
    """A directory where an agent looks, and `root`, outside of which nothing is read on its behalf."""

    directory: Path
    label: str
    layer: Layer
    admission: Admission
    root: Path


class _Reader:
    """Reads each file once, however many names lead to it."""

    def __init__(
        self, profile: AgentProfile, settings: AgentSettings, cwd: Path, homes: AgentHomes, *, nested: bool
    ) -> None:
        self.profile = profile
        self.settings = settings
        self.cwd = cwd
        self.homes = homes
        self._nested = nested
        self._home = real_path(homes.user)
        self._left = settings.cap
        self._lookups = 0
        self._seen: set[Path] = set()
        self.texts: list[LayerText] = []
        self.findings: list[Finding] = []
        self.skipped: list[Skipped] = []
        self.on_demand: list[OnDemandFile] = []
        self.is_complete = True
        self.whole_sizes: dict[Path, int] = {}
        self._beyond: dict[Path, str] = {}

    def own_place(self, directory: Path, label: str) -> _Place:
        """Return an agent's home, or an administrator's directory."""
        layer = build_agent_home_layer(directory, self.cwd)
        admission = Admission(layer)
        return _Place(directory, label, layer, admission, real_path(directory) if layer.is_own else admission.root)

    def places(self, root: Path | None) -> list[_Place]:
        """Return the directories from a root, or from below `/`, down to the working directory."""
        # One admission for all: who may speak in `cwd` is decided there, not in a directory above it.
        admission = Admission(Layer("local", self.cwd, "local", root=self.cwd))
        places = []
        for distance, directory in enumerate((self.cwd, *self.cwd.parents)):
            if directory == directory.parent if root is None else not directory.is_relative_to(root):
                break
            name = f"ancestor:{directory.name}" if distance else "local"
            layer = Layer(name, directory, "ancestor" if distance else "local", distance)
            # Above the repository, a directory is a root of its own.
            limit = admission.root if directory.is_relative_to(admission.root) else directory
            places.append(_Place(directory, directory.name or str(directory), layer, admission, limit))
        return places[::-1]

    def read_first(self, place: _Place, names: Sequence[str]) -> None:
        """Read the first of some files that is there."""
        taken = ""
        for name in names:
            path = place.directory / name
            if taken and os.path.lexists(path):
                self.skip(place, path, f"{taken} comes first")
            elif not taken and self.read(place, path):
                taken = name

    def read(self, place: _Place, path: Path) -> bool:
        """Read a file; True if the agent looks no further for one that it likes less."""
        if not os.path.isfile(path):  # noqa: PTH113 - never fails
            return self.skip(place, path, "not there")
        if place.label != _POLICY and self.is_excluded(path):
            return self.skip(place, path, "claudeMdExcludes names it")
        text = self.content(place, path)
        if text is not None and not text.strip():
            self.skip(place, path, self._beyond.get(path, "blank"))
            return not place.layer.is_own
        if text is not None:
            self.add_text(place, path, text)
        return True

    def add_text(self, place: _Place, path: Path, text: str) -> None:
        """Make a text safe and put it last."""
        imports: list[Path] = []
        text = self._with_imports(place, path, self._without_comments(text), imports)
        title = INSTRUCTIONS.format(agent=self.profile.agent, place=place.label)
        source = Source(uri=str(path), layer=place.layer.name)
        found = LayerText(path, text, "instructions", title, tuple(imports), place.layer, source)
        # One at a time, to have it made safe: what an agent reads twice is there twice.
        chosen = choose_texts([found], Settings())
        self.texts += chosen.texts
        self.findings += chosen.findings

    def content(self, place: _Place, path: Path) -> str | None:
        """Return what a file holds, once; None if it must not be read, or cannot."""
        # What the user links to from the user's own directory may lie anywhere.
        return self._content(place, path, None if place.layer.is_own else place.root)

    def is_excluded(self, path: Path) -> bool:
        """True if the agent's settings exclude a file, by its name or by what it links to."""
        excludes = self.settings.excludes
        return bool(excludes) and (matches_any_glob(path, excludes) or matches_any_glob(real_path(path), excludes))

    def skip(self, place: _Place, path: Path, reason: str) -> Literal[False]:
        """Note that a file is not read."""
        self.skipped.append(Skipped(path, reason, place.layer.name))
        return False

    def note_unread(self, place: _Place, path: Path, reason: str) -> None:
        """Note that the agent reads a file which Nexus does not."""
        self.skip(place, path, reason)
        message = f"{self.profile.name} would read this; it is not shown: {reason}"
        self.findings.append(Finding("profile-unread", message, path))

    def add_nested(self, path: Path, directory: Path, verb: str) -> None:
        """Note a file below the working directory that is added on demand."""
        if self.is_excluded(path):
            self.skipped.append(Skipped(path, "claudeMdExcludes names it", "local"))
            return
        self.on_demand.append(OnDemandFile(path, f"{verb} in {directory.relative_to(self.cwd).as_posix()}/"))

    def nested_files(self) -> Iterator[Path]:
        """Yield the files and links in directories below the working directory."""
        if not self._nested:
            return
        tree = list_files(self.cwd)
        self.is_complete = tree.is_complete
        for path in (*tree.files, *tree.links):
            if path.parent != self.cwd:
                yield path

    def _content(self, place: _Place, path: Path, root: Path | None) -> str | None:
        data = self._data(place, path, root)
        if data is None:
            return None
        self._seen.add(real_path(path))
        return _decode(self._capped(place, path, data))

    def _data(self, place: _Place, path: Path, root: Path | None) -> bytes | None:
        # The name comes first: to look at what lies elsewhere may already mount a directory.
        is_outside = root is not None and not path.is_relative_to(root)
        if not is_outside and real_path(path) in self._seen:
            self.skip(place, path, "read already")
            return None
        try:
            data = Skipped(path, f"leads outside {root}") if is_outside else place.admission.read_bytes(path, root=root)
        except FileError as error:
            data = Skipped(path, error.what)
        if not isinstance(data, Skipped) and b"\0" in data:
            data = Skipped(path, "not a text")
        if not isinstance(data, Skipped):
            return data
        self.note_unread(place, path, data.reason)
        return None

    def _capped(self, place: _Place, path: Path, data: bytes) -> bytes:
        """The part of a file that the agent reads, when it reads a limited number of bytes of all of them."""
        cap = self.settings.cap
        if self._left is None or cap is None or place.layer.is_own:
            return data
        kept = data[: self._left]
        if len(kept) < len(data) and kept.strip():
            line = kept.count(b"\n") + 1
            cut = f"would cut this at {self.settings.described_cap} of all project files together, in line {line}"
            self.findings.append(Finding("profile-cap", f"{self.profile.name} {cut}", path, line))
            self.whole_sizes[path] = len(_decode(data))
        elif len(kept) < len(data) and data.strip():
            # Blank lines may fit into what is left, and nothing more.
            limit = f"project_doc_max_bytes = {cap} ({self.settings.cap_origin or 'the default'})"
            self._beyond[path] = reason = f"the files before it use up {limit}"
            self.findings.append(Finding("profile-cap", f"{self.profile.name} reads none of it: {reason}", path))
        self._left -= len(kept) if kept.strip() else 0
        return kept

    def _without_comments(self, text: str) -> str:
        return strip_comments(text) if self.profile is _CLAUDE else text

    def _with_imports(self, place: _Place, path: Path, text: str, found: list[Path], depth: int = 1) -> str:
        """`text` with files in the place of `@path`, outside code; what is not the name of a file stays as it is."""
        if depth > self.profile.import_depth:
            return text

        def content(match: re.Match[str]) -> str:
            self._lookups += bool(match["path"])
            if not match["path"] or self._lookups > MAX_LOOKUPS:
                return match[0]
            named = match["path"].replace("\\ ", " ")
            is_at_home = self.profile.imports_from_home and named[:2] == "~/"
            start, name = (self._home, named[2:]) if is_at_home else (parent, named)
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
            inner = self._with_imports(place, target, self._without_comments(imported), found, depth + 1)
            return inner.rstrip("\n")

        parent = real_path(path.parent)
        return _CODE_OR_IMPORT.sub(content, text)


def _decode(data: bytes) -> str:
    # These agents read what is not UTF-8 with replacements, and so does one that cuts a character in two.
    return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


# ---- Claude Code -------------------------------------------------------------------------------------------------

_POLICY = "policy"
_AGENTS_FILES = ("AGENTS.md", ".claude/AGENTS.md")


def _read_claude(reader: _Reader) -> None:
    settings, homes = reader.settings, reader.homes
    policy = reader.own_place(claude_policy_directory(homes), _POLICY)
    reader.read(policy, policy.directory / "CLAUDE.md")
    if settings.policy is not None:
        reader.add_text(policy, settings.policy[1], settings.policy[0])
    user, places = reader.own_place(homes.claude, "user"), reader.places(None)
    agents = _agents_reason(reader, places, homes.claude / "CLAUDE.md")
    _read_unless_managed(reader, user, "CLAUDE.md")
    _read_rules(reader, user, homes.claude / "rules")
    for place in places:
        _read_unless_managed(reader, place, "CLAUDE.md", ".claude/CLAUDE.md")
        _read_rules(reader, place, place.directory / ".claude/rules")
        _read_unless_managed(reader, place, "CLAUDE.local.md")
        for path in (place.directory / name for name in _AGENTS_FILES):
            if not agents:
                reader.read(place, path)
            elif os.path.lexists(path):
                reader.skip(place, path, agents)
    _find_nested_claude(reader, agents)


def strip_comments(text: str) -> str:
    """Return a text without its HTML comments, as Claude Code reads it; those in code stay."""
    return _CODE_OR_COMMENT.sub(lambda match: match["code"] or "", text)


def _read_unless_managed(reader: _Reader, place: _Place, *names: str) -> None:
    for path in (place.directory / name for name in names):
        if reader.settings.mode != "managed-only":
            reader.read(place, path)
        elif os.path.lexists(path):
            reader.skip(place, path, "instructionFiles is managed-only")


def _agents_reason(reader: _Reader, places: Sequence[_Place], user_file: Path) -> str:
    """Why Claude Code does not read AGENTS.md here, in a few words; "" if it does."""
    mode = reader.settings.mode
    if mode == "claude-md-and-agents-md":
        return ""
    if mode != "claude-md-or-agents-md":
        return f"instructionFiles is {mode}"
    for place in reversed(places):
        for name in reader.settings.names:
            path = place.directory / name
            is_own = real_path(path) == real_path(user_file)
            if os.path.isfile(path) and not is_own and not reader.is_excluded(path):  # noqa: PTH113 - never fails
                named = name if place.directory == reader.cwd else str(path)
                return f"{named} comes first"
    return ""


def _read_rules(reader: _Reader, place: _Place, directory: Path) -> None:
    """Read the rules of a directory, those without `paths` at once."""
    if not os.path.isdir(directory):  # noqa: PTH112 - never fails
        return
    if reader.settings.mode == "managed-only":
        reader.skip(place, directory, "instructionFiles is managed-only")
        return
    real = real_path(directory)
    if not place.layer.is_own and not real.is_relative_to(place.root):
        reader.note_unread(place, directory, f"leads outside {place.root}")
        return
    tree = list_files(real, max_files=MAX_RULES)
    for path in sorted((*tree.files, *tree.links)):
        named = directory / path.relative_to(real)
        if os.path.isdir(path):  # noqa: PTH112 - never fails
            reader.note_unread(place, named, "a link to a directory")
        elif path.suffix == ".md":
            _read_rule(reader, place, named)


def _read_rule(reader: _Reader, place: _Place, path: Path) -> None:
    if reader.is_excluded(path):
        reader.skip(place, path, "claudeMdExcludes names it")
        return
    text = reader.content(place, path)
    if text is None:
        return
    paths, body = _split_rule(text)
    if paths:
        reader.on_demand.append(OnDemandFile(path, f"for files that match {', '.join(paths)}", paths))
    elif not body.strip():
        reader.skip(place, path, "blank")
    else:
        reader.add_text(place, path, body)


def _split_rule(text: str) -> tuple[tuple[str, ...], str]:
    """The patterns of a rule, and the rule without its front matter; one that cannot be read has no patterns."""
    try:
        head = read_front_matter(text)
    except FrontMatterError:
        return (), re.sub(r"\A---[ \t]*\n.*?^---[ \t]*(?:\n|\Z)", "", text, count=1, flags=re.DOTALL | re.MULTILINE)
    value = head.values.get("paths", "")
    # Commas between braces belong to a pattern.
    items = re.split(r",(?![^{}]*\})", value) if isinstance(value, str) else value
    patterns = [each.strip() for each in items if isinstance(each, str)] if isinstance(items, list) else []
    return tuple(filter(None, patterns)), head.body


def _find_nested_claude(reader: _Reader, agents: str) -> None:
    """Note the instruction files below the working directory, which Claude Code adds when it works there.

    Args:
        reader: The files so far.
        agents: Why AGENTS.md is not read; "" if it is.
    """
    nested: dict[Path, list[Path]] = {}
    for path in reader.nested_files():
        parts = path.relative_to(reader.cwd).parts
        at = parts.index(".claude") if ".claude" in parts else len(parts) - 1
        directory = reader.cwd.joinpath(*parts[:at])
        if directory != reader.cwd and _is_claude_file("/".join(parts[at:])):
            nested.setdefault(directory, []).append(path)
    verb, mode = "when it reads or changes a file", reader.settings.mode
    for directory, paths in nested.items():
        is_claimed = any(path.relative_to(directory).as_posix() in reader.settings.names for path in paths)
        for path in paths:
            claimed = "CLAUDE.md comes first" if is_claimed and mode == "claude-md-or-agents-md" else ""
            if path.name == "AGENTS.md" and (agents or claimed):
                reader.skipped.append(Skipped(path, agents or claimed, "local"))
            else:
                reader.add_nested(path, directory, verb)


def _is_claude_file(name: str) -> bool:
    is_rule = name.startswith(".claude/rules/") and name.endswith(".md")
    return is_rule or name in ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", *_AGENTS_FILES)


# ---- Codex and Gemini CLI ----------------------------------------------------------------------------------------


def _read_codex(reader: _Reader) -> None:
    settings, homes = reader.settings, reader.homes
    reader.read_first(reader.own_place(homes.codex, "user"), ("AGENTS.override.md", "AGENTS.md"))
    for place in reader.places(find_marked_directory(reader.cwd, settings.markers) or reader.cwd):
        if settings.cap == 0:
            for path in filter(os.path.lexists, (place.directory / name for name in settings.names)):
                reader.skip(place, path, f"project_doc_max_bytes is 0 in {settings.cap_origin}")
            continue
        reader.read_first(place, tuple(filter(is_contained_name, settings.names)))


def _read_gemini(reader: _Reader) -> None:
    settings, homes = reader.settings, reader.homes
    names = tuple(filter(is_contained_name, settings.names))
    user = reader.own_place(homes.gemini, "user")
    for name in names:
        reader.read(user, homes.gemini / name)
    places = reader.places(find_marked_directory(reader.cwd, settings.markers) or reader.cwd)
    found = [(place, place.directory / name) for place in places if place.directory != homes.gemini for name in names]
    # By their paths as texts, whatever directory comes before which.
    for place, path in sorted(found, key=lambda each: str(each[1])):
        reader.read(place, path)
    for path in reader.nested_files():
        if any(path.as_posix().endswith(f"/{name}") for name in names):
            reader.add_nested(path, path.parent, "when a tool opens something")


_SETTINGS: dict[str, Callable[[Path, AgentHomes], AgentSettings]] = {
    "claude": read_claude_settings,
    "codex": read_codex_settings,
    "gemini": read_gemini_settings,
}
_READERS: dict[str, Callable[[_Reader], None]] = {
    "claude": _read_claude,
    "codex": _read_codex,
    "gemini": _read_gemini,
}

# Code first, so that what it holds is no import: a fenced block, closed or not; then code in a line.
_FENCED = r"^[ \t]*+(?P<fence>`{3,}+|~{3,}+).*?(?:^[ \t]*+(?P=fence)|\Z)"
_CODE_OR_IMPORT = re.compile(
    rf"(?ms){_FENCED}|(?<!`)(?P<ticks>`++)[^`\n]*+(?P=ticks)(?!`)|(?<!\S)@(?P<path>(?:\\ |[^\s`])++)"
)
# A comment of its own: it begins a line and ends one.
_CODE_OR_COMMENT = re.compile(rf"(?ms)(?P<code>{_FENCED})|^[ \t]*+<!--(?:(?!-->).)*+-->[ \t]*+(?:\n|\Z)")
