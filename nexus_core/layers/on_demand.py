"""Skills, subagents and commands, which an agent loads when they are used."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.files.read import real_path
from nexus_core.files.tree import list_files
from nexus_core.layers import OWN_PROFILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.layers.agent_settings import AgentHomes

SKILL_FILE = "SKILL.md"
WHEN_SKILL_USED = "when the skill is used"
ON_DEMAND_PATHS: dict[str, dict[str, str]] = {
    OWN_PROFILE: {f"{place}/skills/": WHEN_SKILL_USED for place in (".nexus3", ".claude", ".agents", ".codex")},
    "claude": {
        ".claude/skills/": WHEN_SKILL_USED,
        ".claude/agents/": "when the subagent is started",
        ".claude/commands/": "when the command is called",
    },
    "codex": {".codex/skills/": WHEN_SKILL_USED, ".agents/skills/": WHEN_SKILL_USED},
    "gemini": {".gemini/skills/": WHEN_SKILL_USED, ".agents/skills/": WHEN_SKILL_USED},
    **{
        agent: {f"{place}/skills/": WHEN_SKILL_USED for place in places}
        for agent, places in {
            "cursor": (".cursor", ".agents", ".claude", ".codex"),
            "copilot": (".github", ".agents", ".claude"),
            "opencode": (".opencode", ".agents", ".claude"),
            "goose": (".goose", ".agents", ".claude"),
            "cline": (".cline", ".clinerules", ".claude"),
        }.items()
    },
}
"""By agent, the directories of files that it loads on demand, below a project, each with when."""

MAX_ENTRIES = 1_000
"""Entries of one directory that are listed; an agent with more skills than that has no use for most of them."""


class OnDemandFile(NamedTuple):
    """A file that an agent adds while it works.

    Attributes:
        path: The file.
        when: When it is added, in a few words.
        paths: For a rule, the patterns of the files it is for.
    """

    path: Path
    when: str
    paths: tuple[str, ...] = ()


class OnDemandListing(NamedTuple):
    """Files that are loaded on demand, links that lead outside the project, and False if there are too many to list."""

    files: list[OnDemandFile]
    outside: list[Path]
    is_complete: bool


def list_user_directories(agent: str, homes: AgentHomes) -> dict[Path, str]:
    """Return the user's directories from which an agent loads files on demand, each with when."""
    others = {
        "cursor": [homes.user / place for place in (".cursor", ".agents", ".claude", ".codex")],
        "copilot": [homes.copilot, homes.user / ".agents", homes.claude],
        "opencode": [homes.opencode, homes.user / ".agents", homes.claude],
        "goose": [homes.goose, homes.goose.with_name("agents"), homes.claude],
        "cline": [homes.user / ".cline"],
    }
    if agent in others:
        return {place / "skills": WHEN_SKILL_USED for place in others[agent]}
    home = {"claude": homes.claude, "codex": homes.codex, "gemini": homes.gemini}[agent]
    shared = {homes.user / ".agents/skills": WHEN_SKILL_USED}
    own = {home / place.partition("/")[2]: when for place, when in ON_DEMAND_PATHS[agent].items() if agent in place}
    return own if agent == "claude" else {**own, **shared}


def list_on_demand_files(agent: str, cwd: Path, root: Path, homes: AgentHomes) -> OnDemandListing:
    """Return the files that an agent loads on demand when it is started in a directory, except those below it.

    Args:
        agent: The agent, by its key in `PROFILES`.
        cwd: The directory.
        root: The project; links in it must not lead outside.
        homes: The directories of the user's agents.
    """
    # Gemini CLI looks only into the working directory.
    above = [] if agent == "gemini" else [each for each in cwd.parents if each.is_relative_to(root)]
    places = [(each / name, when) for each in (cwd, *above) for name, when in ON_DEMAND_PATHS[agent].items()]
    found = OnDemandListing([], [], is_complete=True)
    for directory, when in places:
        found = _add_directory(found, directory, when, root)
    for directory, when in list_user_directories(agent, homes).items():
        found = _add_directory(found, directory, when, None)
    return found


def is_on_demand_file(place: str, inside: str) -> bool:
    """Return True if a file of an on-demand directory is loaded by itself, not as a part of a skill.

    Args:
        place: The directory, as in `ON_DEMAND_PATHS`.
        inside: The path of the file below it.
    """
    if place.endswith("skills/"):
        return inside.count("/") == 1 and inside.endswith(f"/{SKILL_FILE}")
    return inside.endswith(".md")


def _add_directory(found: OnDemandListing, directory: Path, when: str, root: Path | None) -> OnDemandListing:
    """Return a listing with the files of one more directory. `root` is None if links may lead anywhere."""
    if not os.path.isdir(directory):  # noqa: PTH112 - never fails
        return found
    if root is not None and not real_path(directory).is_relative_to(root):
        return found._replace(outside=[*found.outside, directory])
    is_complete = found.is_complete
    if when == WHEN_SKILL_USED:
        names = list(islice(_list_names(directory), MAX_ENTRIES + 1))
        is_complete = is_complete and len(names) <= MAX_ENTRIES
        paths = [directory / name / SKILL_FILE for name in sorted(names[:MAX_ENTRIES])]
    else:
        real = real_path(directory)
        tree = list_files(real, max_files=MAX_ENTRIES)
        is_complete = is_complete and tree.is_complete
        paths = [directory / each.relative_to(real) for each in (*tree.files, *tree.links) if each.suffix == ".md"]
    # Only checked for its place: a stat of a file elsewhere may mount a directory.
    outside = [each for each in paths if root is not None and not real_path(each).is_relative_to(root)]
    inside = [each for each in paths if each not in outside and os.path.isfile(each)]  # noqa: PTH113 - never fails
    known = {each.path for each in found.files}
    files = [OnDemandFile(each, when) for each in inside if each not in known]
    return OnDemandListing([*found.files, *files], [*found.outside, *outside], is_complete)


def _list_names(directory: Path) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            yield from (entry.name for entry in entries)
    except OSError:
        return
