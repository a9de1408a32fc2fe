"""Which agents read a file, when, and why not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core.errors import NexusError
from nexus_core.files.admission import MISSING, real_path
from nexus_core.layers.agent_settings import find_agent_homes
from nexus_core.layers.loader import OWN_PROFILE
from nexus_core.layers.profiles import PROFILES, OnDemandFile, read_as, strip_comments
from nexus_core.text.front_matter import FrontMatterError, read_front_matter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from nexus_core.layers.profiles import ProfileView
    from nexus_core.text.sentences import SentenceMatcher
    from nexus_core.values.finding import Finding
    from nexus_core.values.layer import LayerText, Skipped
    from nexus_core.values.loaded import Loaded

AccessStatus = Literal["read", "on-demand", "elsewhere", "cut", "unread"]
"""`elsewhere`: when it is started in another directory. `cut`: it reads the file, but not as far, or without this."""

# Only files of these kinds can be instructions in another directory; whatever is there is loaded to find out.
_SUFFIXES = frozenset({".md", ".mdc", ".txt", ""})
# Files for agents that have no profile, by how their path begins below the repository or, for a bare name, by name.
_OTHER_AGENTS = {
    ".cursor/rules/": "Cursor",
    ".cursorrules": "Cursor",
    ".github/copilot-instructions.md": "GitHub Copilot",
    ".github/instructions/": "GitHub Copilot",
    ".windsurf/rules/": "Windsurf",
    ".windsurfrules": "Windsurf",
    ".clinerules": "Cline",
}

_SKILL = "when the skill is used"
SKILL_FILE = "SKILL.md"
# What an agent loads when it is asked for, by how its path begins below a directory.
_ON_CALL: dict[str, dict[str, str]] = {
    OWN_PROFILE: {f"{place}/skills/": _SKILL for place in (".nexus3", ".claude", ".agents", ".codex")},
    "claude": {
        ".claude/skills/": _SKILL,
        ".claude/agents/": "when the subagent is started",
        ".claude/commands/": "when the command is called",
    },
    "codex": {".codex/skills/": _SKILL, ".agents/skills/": _SKILL},
    "gemini": {".gemini/skills/": _SKILL, ".agents/skills/": _SKILL},
}


class FileAccess(NamedTuple):
    """Whether one agent reads a file, or a sentence in it.

    Attributes:
        agent: `nexus`, or a key of `PROFILES`.
        name: What its users call it.
        status: Whether, and when.
        reason: Why, in a few words; "" where there is nothing to say.
    """

    agent: str
    name: str
    status: AccessStatus
    reason: str


class _View(NamedTuple):
    """What an agent reads in one directory."""

    texts: Sequence[LayerText]
    skipped: Sequence[Skipped]
    findings: Sequence[Finding]
    on_demand: Sequence[OnDemandFile] = ()


class AgentFileIndex:
    """Answers for one agent, started in one directory, which files it reads.

    Args:
        agent: `nexus`, or a key of `PROFILES`.
        name: What its users call it.
        cwd: The directory.
        root: The project, below which other directories are considered.
        view_in: Loads what the agent reads in a directory; may raise NexusError.
        own: The user's directories from which the agent loads files on demand, each with when.
    """

    def __init__(
        self,
        agent: str,
        name: str,
        *,
        cwd: Path,
        root: Path,
        view_in: Callable[[Path], _View],
        own: Mapping[Path, str],
    ) -> None:
        self.agent = agent
        self.name = name
        self._cwd = cwd
        self._root = root
        self._view_in = view_in
        self._own = {real_path(directory): when for directory, when in own.items()}
        self._views: dict[Path, _View | None] = {}

    @property
    def texts(self) -> Sequence[LayerText]:
        """What the agent reads at the start."""
        view = self._view(self._cwd)
        return view.texts if view else ()

    def find_access(self, path: Path, sentence: SentenceMatcher | None = None, content: str = "") -> FileAccess:
        """Return whether the agent reads a file, or a sentence that the file has.

        Args:
            path: The file.
            sentence: The sentence; None for the file as a whole.
            content: What the file holds, to say why the agent leaves out the sentence.
        """
        status, reason = self._judge(path, sentence)
        if status == "cut" and not reason:
            is_comment = self.agent == "claude" and sentence and sentence.find(strip_comments(content)) is None
            reason = "this is inside an HTML comment" if is_comment else "left out when the file is read"
        if reason == _SKILL and sentence and path.name == SKILL_FILE and is_in_front_matter(sentence, content):
            reason = f"{_SKILL}; it has the description from the start"
        return FileAccess(self.agent, self.name, status, reason)

    def _judge(self, path: Path, sentence: SentenceMatcher | None) -> tuple[AccessStatus, str]:
        view, real = self._view(self._cwd), real_path(path)
        if view is None:
            return "unread", "what it reads cannot be loaded"
        cut = _find_cut(view, real)
        holders = [text for text in view.texts if real == real_path(text.path) or real in text.imports]
        for text in holders:
            if sentence.find(text.text) is not None if sentence else not cut:
                return "read", _say_how(text, path, real)
        if cut or holders:
            return "cut", cut
        for each in view.on_demand:
            if real == real_path(each.path):
                return "on-demand", each.when
            if each.path.name == SKILL_FILE and real.is_relative_to(real_path(each.path.parent)):
                return "on-demand", _SKILL
        reason = _find_reason(view, real)
        return ("unread", reason) if reason else self._judge_elsewhere(path, real)

    def _judge_elsewhere(self, path: Path, real: Path) -> tuple[AccessStatus, str]:
        home = find_scope_directory(path, self._root)
        is_inside = path.is_relative_to(self._root) and not self._cwd.is_relative_to(home)
        if is_inside and path.suffix.lower() in _SUFFIXES:
            other = self._view(home)
            if other and any(real == real_path(text.path) or real in text.imports for text in other.texts):
                return "elsewhere", f"only in {home} and below"
            if other and (reason := _find_reason(other, real)):
                return "unread", reason
        return self._judge_call(path, real, home)

    def _judge_call(self, path: Path, real: Path, home: Path) -> tuple[AccessStatus, str]:
        """Judge a file that is loaded when it is asked for, such as a skill; `home` is the directory it is about."""
        inside = path.relative_to(home).as_posix()
        when = next((when for start, when in _ON_CALL.get(self.agent, {}).items() if inside.startswith(start)), "")
        if not when or not path.is_relative_to(self._root):
            when = next((when for directory, when in self._own.items() if real.is_relative_to(directory)), "")
            return ("on-demand", when) if when else ("unread", "")
        if self.agent == "claude":  # which finds them below its directory too
            return "on-demand", when
        if not self._cwd.is_relative_to(home):
            return "elsewhere", f"on demand, only in {home} and below"
        if self.agent == "gemini" and home != self._cwd:
            return "elsewhere", f"on demand, only in {home}"
        # Nexus knows its skills; what is none of them is not offered.
        is_left_out = self.agent == OWN_PROFILE
        return ("unread", "it is not among the skills in the prompt") if is_left_out else ("on-demand", when)

    def _view(self, directory: Path) -> _View | None:
        if directory not in self._views:
            try:
                self._views[directory] = self._view_in(directory)
            except NexusError:
                self._views[directory] = None
        return self._views[directory]


def build_agent_indexes(
    cwd: Path,
    loaded: Loaded,
    view: ProfileView | None,
    *,
    root: Path,
    files: Mapping[Path, str],
    load_in: Callable[[Path], Loaded] | None,
) -> list[AgentFileIndex]:
    """Return the agents to ask about files: Nexus first, then the others.

    Args:
        cwd: The directory in which they are started.
        loaded: What was loaded there.
        view: What another agent reads there, when only that agent is asked.
        root: The project that the directory belongs to.
        files: The files that the prompt of Nexus has a part of, each with how the rest is read.
        load_in: Loads another directory of the project for Nexus.
    """
    homes = find_agent_homes(cwd)

    def read_in(agent: str, directory: Path) -> _View:
        # What is added on demand counts where the agent is started, and not in directories to compare with.
        is_here = directory == cwd
        seen = view if view is not None and is_here else read_as(agent, directory, homes, nested=is_here)
        return _View(seen.texts, seen.skipped, seen.findings, seen.on_demand)

    def read_as_nexus(directory: Path) -> _View:
        if directory != cwd and load_in is None:
            return _View((), (), ())
        there = loaded if directory == cwd or load_in is None else load_in(directory)
        on_demand = [OnDemandFile(path, f"by {how}") for path, how in files.items()] if directory == cwd else []
        return _View(there.texts, there.skipped, there.findings, on_demand)

    shared = homes.user / ".agents/skills"
    own: dict[str, dict[Path, str]] = {
        "claude": {homes.claude / name.partition("/")[2]: when for name, when in _ON_CALL["claude"].items()},
        "codex": dict.fromkeys((homes.codex / "skills", shared), _SKILL),
        "gemini": dict.fromkeys((homes.gemini / "skills", shared), _SKILL),
    }
    nexus = AgentFileIndex(OWN_PROFILE, "Nexus", cwd=cwd, root=root, view_in=read_as_nexus, own={})
    others = [
        AgentFileIndex(agent, PROFILES[agent].name, cwd=cwd, root=root, view_in=partial(read_in, agent), own=own[agent])
        for agent in ([view.agent] if view else PROFILES)
    ]
    return others if view else [nexus, *others]


def is_in_front_matter(sentence: SentenceMatcher, content: str) -> bool:
    """Return True if a sentence is in the front matter of a file."""
    try:
        body = read_front_matter(content).body
    except FrontMatterError:
        return False
    return sentence.find(content.removesuffix(body)) is not None


def find_scope_directory(path: Path, root: Path) -> Path:
    """Return the directory that a file of instructions is about: above `.claude`, `.nexus3` and the like."""
    if not path.is_relative_to(root):
        return path.parent
    parts = path.relative_to(root).parts[:-1]
    hidden = next((at for at, part in enumerate(parts) if part.startswith(".")), len(parts))
    return root.joinpath(*parts[:hidden])


def describe_unread_file(path: Path, root: Path) -> str:
    """Say in a few words what a file is that no agent reads."""
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    for start, agent in _OTHER_AGENTS.items():
        if name.startswith(start) or f"/{start}" in name:
            return f"a file for {agent}, which Nexus, Claude Code, Codex and Gemini CLI do not read"
    return "no agent reads this file by itself"


def _find_reason(view: _View, real: Path) -> str:
    """Why a file is passed over, in a few words; "" if the agent did not look at it."""
    reasons = (each.reason for each in view.skipped if each.line is None and real == real_path(each.path))
    return next((reason for reason in reasons if reason != MISSING), "")


def _find_cut(view: _View, real: Path) -> str:
    """Where a limit cuts a file, in a few words; "" if none does, or all of the file is beyond it."""
    for finding in view.findings:
        if finding.code == "profile-cap" and finding.path is not None and real_path(finding.path) == real:
            where = finding.message.partition("would cut this ")[2]
            return f"cut {where}" if where else ""
    return ""


def _say_how(text: LayerText, path: Path, real: Path) -> str:
    if real in text.imports and real != real_path(text.path):
        return f"imported by {text.path}"
    return "" if text.path in {path, real} else f"as {text.path}"
