"""Instruction files that another agent would read, by its own rules and limits.

`AgentProfile.rules` cites the documentation or source of each rule. Only files that an agent reads when it starts are
texts of the view; files that it adds while it works are listed as loaded on demand.
"""

from __future__ import annotations

import os
import re
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core.errors import FileError, UnknownNameError
from nexus_core.files.places import is_outside_path
from nexus_core.files.read import LayerReader, real_path
from nexus_core.files.tree import list_files
from nexus_core.layers import OWN_PROFILE
from nexus_core.layers.agent_settings import (
    AgentHomes,
    AgentSettings,
    build_agent_home_layer,
    find_agent_homes,
    find_claude_policy_directory,
    find_marked_directory,
    is_contained_name,
    matches_any_glob,
    read_claude_settings,
    read_codex_settings,
    read_gemini_settings,
)
from nexus_core.layers.context import LoadedContext
from nexus_core.layers.load import build_layer_sections, choose_texts
from nexus_core.layers.on_demand import ON_DEMAND_PATHS, OnDemandFile, is_on_demand_file, list_on_demand_files
from nexus_core.text.front_matter import FrontMatterError, read_front_matter
from nexus_core.text.safety import AGENT_INSTRUCTIONS_TITLE
from nexus_core.types.base import dataclass
from nexus_core.types.layers import Layer, LayerText, LoadedLayers, SkippedFile
from nexus_core.types.plugins import Finding
from nexus_core.types.prompt import Source
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

MAX_IMPORT_LOOKUPS = 4_000  # words after an @; without a limit, a file full of them would take many seconds
MAX_RULE_FILES = 1_000  # files in one directory of rules

_CLAUDE_DOCS = "https://code.claude.com/docs/en/memory"
_CODEX_DOCS = "https://developers.openai.com/codex/guides/agents-md"
_CODEX_CONFIG = "https://developers.openai.com/codex/config-basic"
_CODEX_SOURCE = "https://github.com/openai/codex/blob/main/codex-rs/core/src/agents_md.rs"
_GEMINI_DOCS = "https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/gemini-md.md"
_GEMINI_CONFIG = "https://github.com/google-gemini/gemini-cli/blob/main/docs/reference/configuration.md"
_GEMINI_SOURCE = "https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src"


class CitedRule(NamedTuple):
    """A rule by which an agent reads instructions, and the documentation or source that states it."""

    rule: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """Another agent and the rules by which it reads instruction files.

    Attributes:
        agent: Its short name, in the titles of sections.
        name: The product name.
        import_depth: How many levels of imports (`@path`) it follows; 0 if it has none.
        imports_from_home: True if `@~/path` is an import.
        unknown: Facts that affect its instructions but that no file states, in one line.
        rules: The files it reads, with sources.
    """

    agent: str
    name: str
    import_depth: int
    imports_from_home: bool
    unknown: str
    rules: tuple[CitedRule, ...]


_CLAUDE_PROFILE = AgentProfile(
    agent="Claude",
    name="Claude Code",
    import_depth=4,
    imports_from_home=True,
    unknown="its version (AGENTS.md needs 2.1.277), its options (--add-dir, --setting-sources), its auto memory and"
    " plugins, and whether you approved imports from outside the working directory; not reproduced: the descriptions of"
    " skills, subagents and commands, which it has from the start",
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
_CODEX_PROFILE = AgentProfile(
    agent="Codex",
    name="Codex",
    import_depth=0,
    imports_from_home=False,
    unknown="its options (--config, --profile), settings from an organization, and whether its version reads a project"
    " that you do not trust; not reproduced: the descriptions of skills, which it has from the start",
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
_GEMINI_PROFILE = AgentProfile(
    agent="Gemini",
    name="Gemini CLI",
    import_depth=5,
    imports_from_home=False,
    unknown="whether it trusts this folder, its extensions, its memory of the project, its options, and its version"
    " (older ones read only the names in context.fileName); not reproduced: the descriptions of skills, which it has"
    " from the start",
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
PROFILES = {"claude": _CLAUDE_PROFILE, "codex": _CODEX_PROFILE, "gemini": _GEMINI_PROFILE}


@dataclass(frozen=True, slots=True)
class ProfileView:
    """The instruction files that an agent would read in a directory.

    Attributes:
        agent: The agent, by its key in `PROFILES`.
        texts: The texts that it reads at the start, in its order and sanitized.
        findings: Findings about them.
        skipped: Files that it does not read, and why.
        on_demand: Files that it adds while it works.
        is_complete: False if there are too many files to list all that are added on demand.
        whole_sizes: By each file that a limit cuts, its full size in characters.
    """

    agent: str
    texts: tuple[LayerText, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[SkippedFile, ...]
    on_demand: tuple[OnDemandFile, ...] = ()
    is_complete: bool = True
    whole_sizes: Mapping[Path, int] = field(default_factory=dict, hash=False)

    @property
    def profile(self) -> AgentProfile:
        """The agent's rules."""
        return PROFILES[self.agent]


def read_agent_view(agent: str, cwd: Path, homes: AgentHomes, *, nested: bool = True) -> ProfileView:
    """Return what an agent would read when it is started in a directory.

    The findings name files that Nexus refuses to read for safety (`profile-unread`), files that the agent would not
    read (`profile-cap`), and settings that could not be used (`profile-settings`).

    Args:
        agent: Its key in `PROFILES`.
        cwd: The directory.
        homes: The directories of the user's agents.
        nested: True to search below the directory for files that are loaded on demand.

    Raises:
        UnknownNameError: There is no such profile.
    """
    if agent not in PROFILES:
        raise UnknownNameError("profile", agent, [OWN_PROFILE, *PROFILES])
    cwd = real_path(cwd)
    settings = _SETTINGS_READERS[agent](cwd, homes)
    reader = _InstructionReader(PROFILES[agent], settings, cwd, homes, nested=nested)
    _INSTRUCTION_READERS[agent](reader)
    if nested:
        reader.add_on_demand_files(agent)
    return ProfileView(
        agent,
        tuple(reader.texts),
        (*settings.findings, *reader.findings),
        (*settings.skipped, *reader.skipped),
        tuple(sorted(reader.on_demand)),
        reader.is_complete,
        reader.whole_sizes,
    )


class _SearchDirectory(NamedTuple):
    """A directory that an agent searches, and `root`, outside of which nothing is read on its behalf."""

    directory: Path
    label: str
    layer: Layer
    admission: LayerReader
    root: Path


class _InstructionReader:
    """Reads each file once, even if several paths lead to it."""

    def __init__(
        self, profile: AgentProfile, settings: AgentSettings, cwd: Path, homes: AgentHomes, *, nested: bool
    ) -> None:
        self.profile = profile
        self.settings = settings
        self.cwd = cwd
        self.homes = homes
        self._nested = nested
        self._home = real_path(homes.user)
        self._bytes_left = settings.cap
        self._lookups = 0
        self._seen: set[Path] = set()
        self.texts: list[LayerText] = []
        self.findings: list[Finding] = []
        self.skipped: list[SkippedFile] = []
        self.on_demand: list[OnDemandFile] = []
        self.is_complete = True
        self.whole_sizes: dict[Path, int] = {}
        self._beyond_cap: dict[Path, str] = {}

    def build_user_directory(self, directory: Path, label: str) -> _SearchDirectory:
        """Return an agent's home, or an administrator's directory."""
        layer = build_agent_home_layer(directory, self.cwd)
        admission = LayerReader(layer)
        return _SearchDirectory(
            directory, label, layer, admission, real_path(directory) if layer.is_own else admission.root
        )

    def list_directories(self, root: Path | None) -> list[_SearchDirectory]:
        """Return the directories from a root, or from below `/`, down to the working directory."""
        # One reader for all: which owners are trusted is decided for `cwd`, not for a directory above it.
        admission = LayerReader(Layer("local", self.cwd, "local", root=self.cwd))
        places = []
        for distance, directory in enumerate((self.cwd, *self.cwd.parents)):
            if directory == directory.parent if root is None else not directory.is_relative_to(root):
                break
            name = f"ancestor:{directory.name}" if distance else "local"
            layer = Layer(name, directory, "ancestor" if distance else "local", distance)
            # Above the repository, each directory is its own root.
            limit = admission.root if directory.is_relative_to(admission.root) else directory
            places.append(_SearchDirectory(directory, directory.name or str(directory), layer, admission, limit))
        return places[::-1]

    def read_first(self, place: _SearchDirectory, names: Sequence[str]) -> None:
        """Read the first of some files that exists."""
        used = ""
        for name in names:
            path = place.directory / name
            if used and os.path.lexists(path):
                self.skip(place, path, f"{used} comes first")
            elif not used and self.read(place, path):
                used = name

    def read(self, place: _SearchDirectory, path: Path) -> bool:
        """Read a file. Return True if the agent then ignores files of lower priority."""
        if not os.path.isfile(path):  # noqa: PTH113 - never fails
            return self.skip(place, path, "not there")
        if place.label != _POLICY_LABEL and self.is_excluded(path):
            return self.skip(place, path, "claudeMdExcludes names it")
        text = self.read_content(place, path)
        if text is not None and not text.strip():
            self.skip(place, path, self._beyond_cap.get(path, "blank"))
            return not place.layer.is_own
        if text is not None:
            self.add_text(place, path, text)
        return True

    def add_text(self, place: _SearchDirectory, path: Path, text: str) -> None:
        """Sanitize a text and append it."""
        imports: list[Path] = []
        text = self._resolve_imports(place, path, self._strip_comments(text), imports)
        title = AGENT_INSTRUCTIONS_TITLE.format(agent=self.profile.agent, place=place.label)
        source = Source(uri=str(path), layer=place.layer.name)
        found = LayerText(path, text, "instructions", title, tuple(imports), place.layer, source)
        # One at a time, only to sanitize it: what an agent reads twice must appear twice.
        chosen = choose_texts([found], Settings())
        self.texts += chosen.texts
        self.findings += chosen.findings

    def read_content(self, place: _SearchDirectory, path: Path) -> str | None:
        """Return the content of a file, once, or None if it must not or cannot be read."""
        # Links in the user's own directory may lead anywhere.
        return self._read_content(place, path, None if place.layer.is_own else place.root)

    def is_excluded(self, path: Path) -> bool:
        """Return True if the agent's settings exclude a file, by its path or by its link target."""
        excludes = self.settings.excludes
        return bool(excludes) and (matches_any_glob(path, excludes) or matches_any_glob(real_path(path), excludes))

    def skip(self, place: _SearchDirectory, path: Path, reason: str) -> Literal[False]:
        """Record that a file is not read."""
        self.skipped.append(SkippedFile(path, reason, place.layer.name))
        return False

    def note_unread(self, place: _SearchDirectory, path: Path, reason: str) -> None:
        """Record that the agent reads a file which Nexus does not."""
        self.skip(place, path, reason)
        message = f"{self.profile.name} would read this; it is not shown: {reason}"
        self.findings.append(Finding("profile-unread", message, path))

    def add_nested(self, path: Path, directory: Path, verb: str) -> None:
        """Record a file below the working directory that is added on demand."""
        if self.is_excluded(path):
            self.skipped.append(SkippedFile(path, "claudeMdExcludes names it", "local"))
            return
        self.on_demand.append(OnDemandFile(path, f"{verb} in {directory.relative_to(self.cwd).as_posix()}/"))

    def add_on_demand_files(self, agent: str) -> None:
        """Record the skills, subagents and commands of the user, the working directory and the project above it."""
        place = self.list_directories(self.cwd)[-1]
        listing = list_on_demand_files(agent, self.cwd, place.admission.root, self.homes)
        self.on_demand += listing.files
        self.is_complete = self.is_complete and listing.is_complete
        for path in listing.outside:
            self.note_unread(place, path, f"leads outside {place.admission.root}")

    def nested_files(self) -> Iterator[Path]:
        """Yield the files and links in directories below the working directory."""
        if not self._nested:
            return
        tree = list_files(self.cwd)
        self.is_complete = self.is_complete and tree.is_complete
        for path in (*tree.files, *tree.links):
            if path.parent != self.cwd:
                yield path

    def _read_content(self, place: _SearchDirectory, path: Path, root: Path | None) -> str | None:
        data = self._read_data(place, path, root)
        if data is None:
            return None
        self._seen.add(real_path(path))
        return _decode_text(self._apply_cap(place, path, data))

    def _read_data(self, place: _SearchDirectory, path: Path, root: Path | None) -> bytes | None:
        # The path is checked first: even a stat of a file elsewhere may mount a directory.
        is_outside = root is not None and not path.is_relative_to(root)
        if not is_outside and real_path(path) in self._seen:
            self.skip(place, path, "read already")
            return None
        try:
            data = (
                SkippedFile(path, f"leads outside {root}")
                if is_outside
                else place.admission.read_bytes(path, root=root)
            )
        except FileError as error:
            data = SkippedFile(path, error.what)
        if not isinstance(data, SkippedFile) and b"\0" in data:
            data = SkippedFile(path, "not a text")
        if not isinstance(data, SkippedFile):
            return data
        self.note_unread(place, path, data.reason)
        return None

    def _apply_cap(self, place: _SearchDirectory, path: Path, data: bytes) -> bytes:
        """Return the part of a file that the agent reads, if it limits the total bytes of all files."""
        cap = self.settings.cap
        if self._bytes_left is None or cap is None or place.layer.is_own:
            return data
        kept = data[: self._bytes_left]
        if len(kept) < len(data) and kept.strip():
            line = kept.count(b"\n") + 1
            cut = f"would cut this at {self.settings.described_cap} of all project files together, in line {line}"
            self.findings.append(Finding("profile-cap", f"{self.profile.name} {cut}", path, line))
            self.whole_sizes[path] = len(_decode_text(data))
        elif len(kept) < len(data) and data.strip():
            # Blank lines may fit into the remaining bytes, and nothing more.
            limit = f"project_doc_max_bytes = {cap} ({self.settings.cap_origin or 'the default'})"
            self._beyond_cap[path] = reason = f"the files before it use up {limit}"
            self.findings.append(Finding("profile-cap", f"{self.profile.name} reads none of it: {reason}", path))
        self._bytes_left -= len(kept) if kept.strip() else 0
        return kept

    def _strip_comments(self, text: str) -> str:
        return strip_html_comments(text) if self.profile is _CLAUDE_PROFILE else text

    def _resolve_imports(
        self, place: _SearchDirectory, path: Path, text: str, found: list[Path], depth: int = 1
    ) -> str:
        """Replace each `@path` outside code with the file. Text that does not name a file is unchanged."""
        if depth > self.profile.import_depth:
            return text

        def content(match: re.Match[str]) -> str:
            self._lookups += bool(match["path"])
            if not match["path"] or self._lookups > MAX_IMPORT_LOOKUPS:
                return match[0]
            named = match["path"].replace("\\ ", " ")
            is_at_home = self.profile.imports_from_home and named[:2] == "~/"
            start, name = (self._home, named[2:]) if is_at_home else (parent, named)
            # Without `..`, so that the checked path is the one that is read, whatever links are on the way.
            target = Path(os.path.normpath(start / name))
            # A path outside is not opened, but reported if it is clearly a file, unlike `@/lib`.
            is_outside = not target.is_relative_to(place.root)
            is_elsewhere = is_at_home or (name[:2] != "~/" and is_outside_path(name))
            is_file = target.suffix == ".md" or is_elsewhere if is_outside else os.path.isfile(target)  # noqa: PTH113
            if not is_file:
                return match[0]
            imported = self._read_content(place, target, place.root)
            if imported is None:
                return match[0]
            found.append(real_path(target))
            inner = self._resolve_imports(place, target, self._strip_comments(imported), found, depth + 1)
            return inner.rstrip("\n")

        parent = real_path(path.parent)
        return _CODE_OR_IMPORT.sub(content, text)


def _decode_text(data: bytes) -> str:
    # These agents decode invalid UTF-8 with replacement characters; so does one that cuts a character in two.
    return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


# ---- Claude Code -------------------------------------------------------------------------------------------------

_POLICY_LABEL = "policy"
_AGENTS_FILES = ("AGENTS.md", ".claude/AGENTS.md")


def _read_claude(reader: _InstructionReader) -> None:
    settings, homes = reader.settings, reader.homes
    policy = reader.build_user_directory(find_claude_policy_directory(homes), _POLICY_LABEL)
    reader.read(policy, policy.directory / "CLAUDE.md")
    if settings.policy is not None:
        reader.add_text(policy, settings.policy[1], settings.policy[0])
    user, places = reader.build_user_directory(homes.claude, "user"), reader.list_directories(None)
    agents = _find_agents_file_reason(reader, places, homes.claude / "CLAUDE.md")
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


def strip_html_comments(text: str) -> str:
    """Return a text without its HTML comments, as Claude Code reads it. Comments in code stay."""
    return _CODE_OR_COMMENT.sub(lambda match: match["code"] or "", text)


def _read_unless_managed(reader: _InstructionReader, place: _SearchDirectory, *names: str) -> None:
    for path in (place.directory / name for name in names):
        if reader.settings.mode != "managed-only":
            reader.read(place, path)
        elif os.path.lexists(path):
            reader.skip(place, path, "instructionFiles is managed-only")


def _find_agents_file_reason(reader: _InstructionReader, places: Sequence[_SearchDirectory], user_file: Path) -> str:
    """Return why Claude Code does not read AGENTS.md here, in a few words, or "" if it does."""
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


def _read_rules(reader: _InstructionReader, place: _SearchDirectory, directory: Path) -> None:
    """Read the rules of a directory. Those with `paths` are listed as loaded on demand."""
    if not os.path.isdir(directory):  # noqa: PTH112 - never fails
        return
    if reader.settings.mode == "managed-only":
        reader.skip(place, directory, "instructionFiles is managed-only")
        return
    real = real_path(directory)
    if not place.layer.is_own and not real.is_relative_to(place.root):
        reader.note_unread(place, directory, f"leads outside {place.root}")
        return
    tree = list_files(real, max_files=MAX_RULE_FILES)
    reader.is_complete = reader.is_complete and tree.is_complete
    for path in sorted((*tree.files, *tree.links)):
        named = directory / path.relative_to(real)
        if os.path.isdir(path):  # noqa: PTH112 - never fails
            reader.note_unread(place, named, "a link to a directory")
        elif path.suffix == ".md":
            _read_rule(reader, place, named)


def _read_rule(reader: _InstructionReader, place: _SearchDirectory, path: Path) -> None:
    if reader.is_excluded(path):
        reader.skip(place, path, "claudeMdExcludes names it")
        return
    text = reader.read_content(place, path)
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
    """Return the patterns of a rule and its body. A rule with invalid front matter has no patterns."""
    try:
        head = read_front_matter(text)
    except FrontMatterError:
        return (), re.sub(r"\A---[ \t]*\n.*?^---[ \t]*(?:\n|\Z)", "", text, count=1, flags=re.DOTALL | re.MULTILINE)
    value = head.values.get("paths", "")
    items = _split_patterns(value) if isinstance(value, str) else value
    patterns = [each.strip() for each in items if isinstance(each, str)] if isinstance(items, list) else []
    return tuple(filter(None, patterns)), head.body


def _split_patterns(text: str) -> list[str]:
    """Return the patterns of a list with commas. Commas between braces belong to a pattern."""
    patterns: list[str] = []
    end, is_in_braces = len(text), False
    for sign in reversed([*re.finditer(r"[{},]", text)]):  # in linear time, unlike a lookahead at each comma
        if sign[0] != ",":
            is_in_braces = sign[0] == "}"
        elif not is_in_braces:
            patterns.append(text[sign.end() : end])
            end = sign.start()
    return [text[:end], *reversed(patterns)]


def _find_nested_claude(reader: _InstructionReader, agents: str) -> None:
    """Record the instruction files below the working directory, which Claude Code adds when it works there.

    Args:
        reader: The reader to add them to.
        agents: Why AGENTS.md is not read; "" if it is.
    """
    nested: dict[Path, list[Path]] = {}
    for path in reader.nested_files():
        parts = path.relative_to(reader.cwd).parts
        at = parts.index(".claude") if ".claude" in parts else len(parts) - 1
        directory = reader.cwd.joinpath(*parts[:at])
        when = _find_claude_occasion("/".join(parts[at:]))
        if directory != reader.cwd and when:
            reader.on_demand.append(OnDemandFile(path, when))
        elif directory != reader.cwd and _is_claude_file("/".join(parts[at:])):
            nested.setdefault(directory, []).append(path)
    verb, mode = "when it reads or changes a file", reader.settings.mode
    for directory, paths in nested.items():
        is_claimed = any(path.relative_to(directory).as_posix() in reader.settings.names for path in paths)
        for path in paths:
            claimed = "CLAUDE.md comes first" if is_claimed and mode == "claude-md-or-agents-md" else ""
            if path.name == "AGENTS.md" and (agents or claimed):
                reader.skipped.append(SkippedFile(path, agents or claimed, "local"))
            else:
                reader.add_nested(path, directory, verb)


def _find_claude_occasion(name: str) -> str:
    """Return when Claude Code loads a skill, subagent or command, or "" for another file."""
    for start, when in ON_DEMAND_PATHS["claude"].items():
        if name.startswith(start) and is_on_demand_file(start, name.removeprefix(start)):
            return when
    return ""


def _is_claude_file(name: str) -> bool:
    is_rule = name.startswith(".claude/rules/") and name.endswith(".md")
    return is_rule or name in ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", *_AGENTS_FILES)


# ---- Codex and Gemini CLI ----------------------------------------------------------------------------------------


def _read_codex(reader: _InstructionReader) -> None:
    settings, homes = reader.settings, reader.homes
    reader.read_first(reader.build_user_directory(homes.codex, "user"), ("AGENTS.override.md", "AGENTS.md"))
    for place in reader.list_directories(find_marked_directory(reader.cwd, settings.markers) or reader.cwd):
        if settings.cap == 0:
            for path in filter(os.path.lexists, (place.directory / name for name in settings.names)):
                reader.skip(place, path, f"project_doc_max_bytes is 0 in {settings.cap_origin}")
            continue
        reader.read_first(place, tuple(filter(is_contained_name, settings.names)))


def _read_gemini(reader: _InstructionReader) -> None:
    settings, homes = reader.settings, reader.homes
    names = tuple(filter(is_contained_name, settings.names))
    user = reader.build_user_directory(homes.gemini, "user")
    for name in names:
        reader.read(user, homes.gemini / name)
    places = reader.list_directories(find_marked_directory(reader.cwd, settings.markers) or reader.cwd)
    found = [(place, place.directory / name) for place in places if place.directory != homes.gemini for name in names]
    # Sorted by path as a string, regardless of directory depth.
    for place, path in sorted(found, key=lambda each: str(each[1])):
        reader.read(place, path)
    for path in reader.nested_files():
        if any(path.as_posix().endswith(f"/{name}") for name in names):
            reader.add_nested(path, path.parent, "when a tool opens something")


_SETTINGS_READERS: dict[str, Callable[[Path, AgentHomes], AgentSettings]] = {
    "claude": read_claude_settings,
    "codex": read_codex_settings,
    "gemini": read_gemini_settings,
}
_INSTRUCTION_READERS: dict[str, Callable[[_InstructionReader], None]] = {
    "claude": _read_claude,
    "codex": _read_codex,
    "gemini": _read_gemini,
}

# Code first, so that its content is not an import: a fenced block, closed or not, then inline code.
_FENCED = r"^[ \t]*+(?P<fence>`{3,}+|~{3,}+).*?(?:^[ \t]*+(?P=fence)|\Z)"
_CODE_OR_IMPORT = re.compile(
    rf"(?ms){_FENCED}|(?<!`)(?P<ticks>`++)[^`\n]*+(?P=ticks)(?!`)|(?<!\S)@(?P<path>(?>(?:\\ |[^\s`])+))"
)
# Only a comment on lines of its own: it begins a line and ends one.
_CODE_OR_COMMENT = re.compile(rf"(?ms)(?P<code>{_FENCED})|^[ \t]*+<!--(?>(?:(?!-->).)*)-->[ \t]*+(?:\n|\Z)")


def build_agent_context(
    profile: str, cwd: Path, load_for: Callable[[str | os.PathLike[str]], LoadedContext]
) -> LoadedContext:
    """Return the context that another agent would have when it is started in a directory.

    Args:
        profile: The agent: `claude`, `codex` or `gemini`.
        cwd: The directory.
        load_for: Loads the context of a subagent in a directory.

    Raises:
        UnknownNameError: There is no such profile.
    """
    view = read_agent_view(profile, cwd, find_agent_homes(cwd))
    layers = tuple(dict.fromkeys(text.layer for text in view.texts if text.layer is not None))
    loaded = LoadedLayers(layers=layers, texts=view.texts, skipped=view.skipped, findings=view.findings)
    return LoadedContext(
        cwd=cwd,
        loaded=loaded,
        layer_sections=build_layer_sections(loaded),
        other_sections=(),
        load_for=load_for,
        agent_view=view,
    )
