"""Instruction files that another agent would read, by its own rules and limits.

`AgentProfile.rules` cites the documentation or source of each rule. Only files that an agent reads when it starts are
texts of the view; files that it adds while it works are listed as loaded on demand.
"""

from __future__ import annotations

import os
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import UnknownNameError
from nexus_core.files.read import real_path
from nexus_core.layers import OWN_PROFILE
from nexus_core.layers.agent_instructions import read_cline, read_copilot, read_cursor, read_goose, read_opencode
from nexus_core.layers.agent_profiles import PROFILES, AgentProfile
from nexus_core.layers.agent_settings import (
    AgentHomes,
    AgentSettings,
    find_agent_homes,
    find_claude_policy_directory,
    find_marked_directory,
    is_contained_name,
    read_claude_settings,
    read_codex_settings,
    read_gemini_settings,
    read_goose_settings,
    read_opencode_settings,
)
from nexus_core.layers.context import LoadedContext
from nexus_core.layers.instruction_files import POLICY_LABEL, InstructionReader, RuleCondition, SearchDirectory
from nexus_core.layers.load import build_layer_sections
from nexus_core.layers.on_demand import ON_DEMAND_PATHS, OnDemandFile, is_on_demand_file
from nexus_core.types.base import dataclass
from nexus_core.types.layers import LayerText, LoadedLayers, SkippedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nexus_core.files.tree import FileListing
    from nexus_core.types.plugins import Finding


@dataclass(frozen=True, slots=True)
class AgentView:
    """The instruction files that an agent would read in a directory.

    Attributes:
        agent: The agent, by its key in `PROFILES`.
        texts: The texts that it reads at the start, in its order and sanitized.
        findings: Findings about them.
        skipped: Files that it does not read, and why.
        on_demand: Files that it adds while it works.
        is_complete: False if there are too many files to list all that are added on demand.
        whole_sizes: By each file that a limit cuts, its full size in characters.
        outside_files: Files that it was to work on, and that are outside the project.
    """

    agent: str
    texts: tuple[LayerText, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[SkippedFile, ...]
    on_demand: tuple[OnDemandFile, ...] = ()
    is_complete: bool = True
    whole_sizes: Mapping[Path, int] = field(default_factory=dict, hash=False)
    outside_files: tuple[Path, ...] = ()

    @property
    def profile(self) -> AgentProfile:
        """The agent's rules."""
        return PROFILES[self.agent]


def read_agent_view(
    agent: str,
    cwd: Path,
    homes: AgentHomes,
    *,
    nested: bool = True,
    files: Sequence[Path] = (),
    list_nested: Callable[[], FileListing] | None = None,
) -> AgentView:
    """Return what an agent would read when it is started in a directory.

    The findings name files that Nexus refuses to read for safety (`profile-unread`), files beyond the agent's limit
    (`profile-cap`), rules whose front matter cannot be parsed (`profile-front-matter`), files in the agent's own
    directories that it ignores (`profile-ignored`), and settings that could not be used (`profile-settings`).

    Args:
        agent: Its key in `PROFILES`.
        cwd: The directory.
        homes: The directories of the user's agents.
        nested: True to search below the directory for files that are loaded on demand.
        files: Files that the agent works on; what it loads for these is among the texts.
        list_nested: Lists the files below the directory, to search once for several agents.

    Raises:
        UnknownNameError: There is no such profile.
    """
    if agent not in PROFILES:
        raise UnknownNameError("profile", agent, [OWN_PROFILE, *PROFILES])
    cwd = real_path(cwd)
    settings = _SETTINGS_READERS[agent](cwd, homes) if agent in _SETTINGS_READERS else AgentSettings(())
    targets = [Path(os.path.normpath(cwd / file)) for file in files]
    reader = InstructionReader(
        PROFILES[agent], settings, cwd, homes, nested=nested, files=targets, list_nested=list_nested
    )
    _INSTRUCTION_READERS[agent](reader)
    if nested:
        reader.add_on_demand_files(agent)
    return AgentView(
        agent,
        tuple(reader.texts),
        (*settings.findings, *reader.findings),
        (*settings.skipped, *reader.skipped),
        tuple(sorted(reader.on_demand)),
        reader.is_complete,
        reader.whole_sizes,
        tuple(file for file in targets if not _is_inside(file, reader.project)),
    )


def _is_inside(file: Path, project: Path) -> bool:
    """True if a path leads into a project by its name, which globs are compared with, or by its links."""
    return file.is_relative_to(project) or real_path(file).is_relative_to(real_path(project))


# ---- Claude Code -------------------------------------------------------------------------------------------------

_AGENTS_FILES = ("AGENTS.md", ".claude/AGENTS.md")


def _read_claude(reader: InstructionReader) -> None:
    settings, homes = reader.settings, reader.homes
    policy = reader.build_user_directory(find_claude_policy_directory(homes), POLICY_LABEL)
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


def _read_unless_managed(reader: InstructionReader, place: SearchDirectory, *names: str) -> None:
    for path in (place.directory / name for name in names):
        if reader.settings.mode != "managed-only":
            reader.read(place, path)
        elif os.path.lexists(path):
            reader.skip(place, path, "instructionFiles is managed-only")


def _find_agents_file_reason(reader: InstructionReader, places: Sequence[SearchDirectory], user_file: Path) -> str:
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


def _read_rules(reader: InstructionReader, place: SearchDirectory, directory: Path) -> None:
    """Read the rules of a directory. Those with `paths` are listed as loaded on demand."""
    if not os.path.isdir(directory):  # noqa: PTH112 - never fails
        return
    if reader.settings.mode == "managed-only":
        reader.skip(place, directory, "instructionFiles is managed-only")
        return
    for path in reader.list_rules(place, directory):
        if path.suffix == ".md":
            _read_rule(reader, place, path, reader.project if place.layer.is_own else directory.parent.parent)


def _read_rule(reader: InstructionReader, place: SearchDirectory, path: Path, base: Path) -> None:
    if reader.is_excluded(path):
        reader.skip(place, path, "claudeMdExcludes names it")
        return
    rule = reader.read_rule(place, path, "it is read without its front matter, for all files")
    if rule is not None:
        reader.add_rule(place, path, rule, RuleCondition(rule.get_patterns("paths"), base))


def _find_nested_claude(reader: InstructionReader, agents: str) -> None:
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
            if path.parent != directory and reader.works_in(directory) and path.match("**/.claude/rules/**"):
                _read_rule(reader, reader.build_nested_directory(directory), path, directory)
                continue
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


def _read_codex(reader: InstructionReader) -> None:
    settings, homes = reader.settings, reader.homes
    reader.read_first(reader.build_user_directory(homes.codex, "user"), ("AGENTS.override.md", "AGENTS.md"))
    for place in reader.list_directories(find_marked_directory(reader.cwd, settings.markers) or reader.cwd):
        if settings.cap == 0:
            for path in filter(os.path.lexists, (place.directory / name for name in settings.names)):
                reader.skip(place, path, f"project_doc_max_bytes is 0 in {settings.cap_origin}")
            continue
        reader.read_first(place, tuple(filter(is_contained_name, settings.names)))


def _read_gemini(reader: InstructionReader) -> None:
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
    "opencode": read_opencode_settings,
    "goose": read_goose_settings,
}
_INSTRUCTION_READERS: dict[str, Callable[[InstructionReader], None]] = {
    "claude": _read_claude,
    "codex": _read_codex,
    "gemini": _read_gemini,
    "cursor": read_cursor,
    "copilot": read_copilot,
    "opencode": read_opencode,
    "goose": read_goose,
    "cline": read_cline,
}


def build_agent_context(
    profile: str,
    cwd: Path,
    load_for: Callable[[str | os.PathLike[str]], LoadedContext],
    files: Sequence[Path] = (),
) -> LoadedContext:
    """Return the context that another agent would have when it is started in a directory.

    Args:
        profile: The agent, by its key in `PROFILES`.
        cwd: The directory.
        load_for: Loads the context of a subagent in a directory.
        files: Files that the agent works on.

    Raises:
        UnknownNameError: There is no such profile.
    """
    view = read_agent_view(profile, cwd, find_agent_homes(cwd), files=files)
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
