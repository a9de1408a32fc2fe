"""Origins of settings, files and sentences, and the agents that read a file."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from functools import cache, cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from nexus_core.config.pointers import SERVERS, follow_keys, join_pointer
from nexus_core.config.secrets import withhold_secrets
from nexus_core.config.validate import split_setting_name
from nexus_core.errors import NexusError
from nexus_core.files.places import find_workspace
from nexus_core.files.read import REASON_MISSING, LayerReader, real_path
from nexus_core.files.tree import list_files
from nexus_core.layers import OWN_PROFILE
from nexus_core.layers.agent_profiles import PROFILES
from nexus_core.layers.agent_settings import OPENCODE_CONFIGS, build_agent_home_layer, find_agent_homes
from nexus_core.layers.agent_view import read_agent_view
from nexus_core.layers.context import LoadedContext
from nexus_core.layers.instruction_files import strip_html_comments
from nexus_core.layers.on_demand import (
    ON_DEMAND_PATHS,
    SKILL_FILE,
    WHEN_SKILL_USED,
    OnDemandFile,
    list_user_directories,
)
from nexus_core.text.front_matter import FrontMatterError, read_front_matter
from nexus_core.text.sentences import SentenceMatcher
from nexus_core.types.layers import Layer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nexus_core.files.tree import FileListing
    from nexus_core.layers.agent_view import AgentView
    from nexus_core.types.layers import LayerText, LoadedLayers, SkippedFile
    from nexus_core.types.plugins import Finding
    from nexus_core.types.prompt import Section
    from nexus_core.types.settings import Settings

AccessStatus = Literal["read", "on-demand", "elsewhere", "cut", "unread"]
"""`elsewhere`: read when started in another directory. `cut`: the file is read, but truncated or without this part."""

# Only files with these suffixes can be instructions in another directory; that directory is loaded to find out.
_INSTRUCTION_SUFFIXES = frozenset({".md", ".mdc", ".txt", ""})
# Files for agents without a profile, by the start of their path below the repository or, for a bare name, by name.
_OTHER_AGENTS = {
    ".windsurf/rules/": "Windsurf",
    ".windsurfrules": "Windsurf",
    ".kiro/steering/": "Kiro",
    ".junie/guidelines.md": "Junie",
}
# Settings by the end of their path, each with the agent that reads them.
_SETTINGS_FILES = {
    ".nexus3/config.json": "Nexus",
    ".nexus3/mcp.json": "Nexus",
    ".claude/settings.json": "Claude Code",
    ".claude/settings.local.json": "Claude Code",
    ".codex/config.toml": "Codex",
    ".gemini/settings.json": "Gemini CLI",
}
# Settings at the root of a project, or below its `.opencode`.
_OPENCODE_SETTINGS = frozenset(OPENCODE_CONFIGS)

# A word after an @, as in `@docs/style.md`; a blank in a path is escaped, and a full stop ends the sentence.
_IMPORT_WORD = re.compile(r"(?<!\S)@((?:\\ |[^\s`\0])*[^\s`.\0])")

MAX_LINE_IMPORTS = 100
"""Words after an @ in one line that are looked up, each with several calls of the system."""


class FileAccess(NamedTuple):
    """An agent's access to a file, or to a sentence in it.

    Attributes:
        agent: `nexus`, or a key of `PROFILES`.
        name: The product name of the agent.
        status: Whether and when it reads the file.
        reason: Why, in a few words; "" without a reason.
    """

    agent: str
    name: str
    status: AccessStatus
    reason: str


class _AgentView(NamedTuple):
    """The files that an agent reads in one directory."""

    texts: Sequence[LayerText]
    skipped: Sequence[SkippedFile]
    findings: Sequence[Finding]
    on_demand: Sequence[OnDemandFile] = ()


class AgentFileIndex:
    """Determines which files one agent reads, started in one directory.

    Args:
        agent: `nexus`, or a key of `PROFILES`.
        name: The product name of the agent.
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
        view_in: Callable[[Path], _AgentView],
        own: Mapping[Path, str],
    ) -> None:
        self.agent = agent
        self.name = name
        self._cwd = cwd
        self._root = root
        self._view_in = view_in
        self._own = {real_path(directory): when for directory, when in own.items()}
        self._views: dict[Path, _AgentView | None] = {}

    @property
    def texts(self) -> Sequence[LayerText]:
        """The texts that the agent reads at the start."""
        view = self._view(self._cwd)
        return view.texts if view else ()

    def find_access(self, path: Path, sentence: SentenceMatcher | None = None, content: str = "") -> FileAccess:
        """Return whether the agent reads a file, or a sentence of the file.

        Args:
            path: The file.
            sentence: The sentence; None for the file as a whole.
            content: The content of the file, to find out why the agent drops the sentence.
        """
        status, reason = self._judge(path, sentence)
        if status == "cut" and not reason:
            is_comment = self.agent == "claude" and sentence and sentence.find(strip_html_comments(content)) is None
            reason = "this is inside an HTML comment" if is_comment else "left out when the file is read"
            reason = self._describe_import_line(path, sentence, content) or reason
        if reason == WHEN_SKILL_USED and sentence and path.name == SKILL_FILE and is_in_front_matter(sentence, content):
            reason = f"{WHEN_SKILL_USED}; it has the description from the start"
        return FileAccess(self.agent, self.name, status, reason)

    def _describe_import_line(self, path: Path, sentence: SentenceMatcher | None, content: str) -> str:
        """Return which file replaces the line of a sentence, if that is an import, or ""."""
        line = sentence.find_line(content) if sentence else None
        if line is None:
            return ""
        imported = {each for text in self.texts for each in text.imports}
        words = _IMPORT_WORD.finditer(content.split("\n")[line - 1])
        for word in islice(words, MAX_LINE_IMPORTS):
            name = word[1].replace("\\ ", " ")
            target = os.path.expanduser(name) if name.startswith("~/") else path.parent / name  # noqa: PTH111 - as agents do
            if real_path(Path(target)) in imported:
                return f"an import, replaced by the content of {name}"
        return ""

    def _judge(self, path: Path, sentence: SentenceMatcher | None) -> tuple[AccessStatus, str]:
        view, real = self._view(self._cwd), real_path(path)
        if view is None:
            return "unread", "what it reads cannot be loaded"
        cut = _describe_cut(view, real)
        holders = [text for text in view.texts if real == real_path(text.path) or real in text.imports]
        for text in holders:
            if sentence.find(text.text) is not None if sentence else not cut:
                return "read", _describe_import(text, path, real)
        if cut or holders:
            return "cut", cut
        for each in view.on_demand:
            if real == real_path(each.path):
                return "on-demand", each.when
            if each.path.name == SKILL_FILE and real.is_relative_to(real_path(each.path.parent)):
                return "on-demand", WHEN_SKILL_USED
        reason = _find_skip_reason(view, real)
        return ("unread", reason) if reason else self._judge_elsewhere(path, real)

    def _judge_elsewhere(self, path: Path, real: Path) -> tuple[AccessStatus, str]:
        home = find_scope_directory(path, self._root)
        is_inside = path.is_relative_to(self._root) and not self._cwd.is_relative_to(home)
        if is_inside and path.suffix.lower() in _INSTRUCTION_SUFFIXES:
            other = self._view(home)
            if other and any(real == real_path(text.path) or real in text.imports for text in other.texts):
                return "elsewhere", f"only in {home} and below"
            if other and (reason := _find_skip_reason(other, real)):
                return "unread", reason
        return self._judge_call(path, real, home)

    def _judge_call(self, path: Path, real: Path, home: Path) -> tuple[AccessStatus, str]:
        """Judge a file that is loaded on demand, such as a skill. `home` is the directory it is about."""
        inside = path.relative_to(home).as_posix()
        when = next(
            (when for start, when in ON_DEMAND_PATHS.get(self.agent, {}).items() if inside.startswith(start)), ""
        )
        if not when or not path.is_relative_to(self._root):
            when = next((when for directory, when in self._own.items() if real.is_relative_to(directory)), "")
            return ("on-demand", when) if when else ("unread", "")
        if self.agent == "claude" and home.is_relative_to(self._cwd):  # it finds them below its directory too
            return "on-demand", when
        if not self._cwd.is_relative_to(home):
            return "elsewhere", f"on demand, only in {home} and below"
        if self.agent == "gemini" and home != self._cwd:
            return "elsewhere", f"on demand, only in {home}"
        # Nexus lists its skills in the prompt; a file that is not among them is not offered.
        is_unlisted = self.agent == OWN_PROFILE
        return ("unread", "it is not among the skills in the prompt") if is_unlisted else ("on-demand", when)

    def _view(self, directory: Path) -> _AgentView | None:
        if directory not in self._views:
            try:
                self._views[directory] = self._view_in(directory)
            except NexusError:
                self._views[directory] = None
        return self._views[directory]


def build_agent_indexes(
    cwd: Path,
    loaded: LoadedLayers,
    view: AgentView | None,
    *,
    root: Path,
    files: Mapping[Path, str],
    load_in: Callable[[Path], LoadedLayers] | None,
) -> list[AgentFileIndex]:
    """Return the agents to check files against: Nexus first, then the others.

    Args:
        cwd: The directory in which they are started.
        loaded: The layers loaded there.
        view: What another agent reads there, to check only that agent; None for all agents.
        root: The project that the directory belongs to.
        files: The files that the prompt of Nexus has a part of, each with how the rest is read.
        load_in: Loads another directory of the project for Nexus.
    """
    homes = find_agent_homes(cwd)
    list_once = cache(lambda: list_files(cwd))  # one search for all agents

    def read_in(agent: str, directory: Path) -> _AgentView:
        # Files loaded on demand count where the agent is started, not in directories to compare with.
        is_here = directory == cwd
        seen = view
        if seen is None or not is_here:
            seen = read_agent_view(agent, directory, homes, nested=is_here, list_nested=list_once)
        return _AgentView(seen.texts, seen.skipped, seen.findings, seen.on_demand)

    def read_as_nexus(directory: Path) -> _AgentView:
        if directory != cwd and load_in is None:
            return _AgentView((), (), ())
        there = loaded if directory == cwd or load_in is None else load_in(directory)
        on_demand = [OnDemandFile(path, f"by {how}") for path, how in files.items()] if directory == cwd else []
        return _AgentView(there.texts, there.skipped, there.findings, on_demand)

    nexus = AgentFileIndex(OWN_PROFILE, "Nexus", cwd=cwd, root=root, view_in=read_as_nexus, own={})
    others = [
        AgentFileIndex(
            agent,
            PROFILES[agent].name,
            cwd=cwd,
            root=root,
            view_in=partial(read_in, agent),
            own=list_user_directories(agent, homes),
        )
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
    """Return the directory that an instruction file is about: above `.claude`, `.nexus3` and the like."""
    if not path.is_relative_to(root):
        return path.parent
    parts = path.relative_to(root).parts[:-1]
    hidden = next((at for at, part in enumerate(parts) if part.startswith(".")), len(parts))
    return root.joinpath(*parts[:hidden])


def describe_unread_file(path: Path, root: Path) -> str:
    """Describe in a few words a file that no agent reads."""
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    for start, agent in _OTHER_AGENTS.items():
        if name.startswith(start) or f"/{start}" in name:
            return f"a file for {agent}, which neither Nexus nor an agent that --as knows reads"
    return "no agent reads this file by itself"


def _find_skip_reason(view: _AgentView, real: Path) -> str:
    """Return why a file is skipped, in a few words, or "" if the agent did not find it."""
    reasons = (each.reason for each in view.skipped if each.line is None and real == real_path(each.path))
    return next((reason for reason in reasons if reason != REASON_MISSING), "")


def _describe_cut(view: _AgentView, real: Path) -> str:
    """Return where a limit cuts a file, in a few words, or "" if none does or the whole file is beyond it."""
    for finding in view.findings:
        if finding.code == "profile-cap" and finding.path is not None and real_path(finding.path) == real:
            where = finding.message.partition("would cut this ")[2]
            return f"cut {where}" if where else ""
    return ""


def _describe_import(text: LayerText, path: Path, real: Path) -> str:
    if real in text.imports and real != real_path(text.path):
        return f"imported by {text.path}"
    return "" if text.path in {path, real} else f"as {text.path}"


MAX_EXPLAINED_FILES = 50
"""Most files that one explanation lists: those that contain a sentence, or those of a directory."""
MAX_SEARCHED_BYTES = 64 * 1024 * 1024
"""Most bytes of all files that are searched for a sentence; reading them takes about a second."""

# Files with these suffixes are searched first, so that a limit ends the search in the less likely ones.
_LIKELY_SUFFIXES = frozenset({".md", ".mdc", ".markdown", ".txt", ".rst", ".adoc"})
_BINARY_SUFFIX = re.compile(
    r"(?i)\.(?:png|jpe?g|gif|webp|ico|pdf|zip|gz|xz|zst|tar|whl|jar|so|dylib|dll|exe|pyc|o|a|woff2?|[to]tf|mp[34]|mov|db)"
)


class ExplainedContext(Protocol):
    """A directory and the sections of its prompt: of a session, of `ContextLoader` or of another agent."""

    @property
    def cwd(self) -> Path:
        """The directory."""

    @property
    def loaded(self) -> LoadedLayers:
        """Layers, texts, settings and servers."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the prompt, in their order."""


class Explanation(NamedTuple):
    """One explanation: its subject, its location, and a remark.

    Attributes:
        subject: The setting, file or section it is about.
        place: The file with its line, or "" if there is none.
        remark: The meaning, in a few words.
        readers: For a file, the access of each agent; the one that was asked about comes first.
        note: For a file or step that is sent as a memory, its path or `step:<id>` as the memory has it; "" for others.
    """

    subject: str
    place: str
    remark: str
    readers: tuple[FileAccess, ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the explanation as JSON, without the note, which the remark describes."""
        facts = {name: value for name, value in self._asdict().items() if name != "note"}
        return {**facts, "readers": [each._asdict() for each in self.readers]}


class SearchExtent(NamedTuple):
    """The files that were searched for a sentence.

    Attributes:
        root: The directory below which they lie.
        files: How many were read.
        size: Their bytes.
        is_complete: False if a limit ended the search, a file could not be read, or there are more matches than an
            explanation lists.
    """

    root: Path
    files: int
    size: int
    is_complete: bool

    def to_json(self) -> dict[str, object]:
        """Return the extent as JSON."""
        return {"root": str(self.root), "files": self.files, "bytes": self.size, "complete": self.is_complete}


class QueryExplanations(NamedTuple):
    """The explanations, and the extent of the search (None if no file was searched)."""

    explanations: list[Explanation]
    searched: SearchExtent | None = None


def explain(
    context: ExplainedContext, query: str, *, load_in: Callable[[Path], LoadedLayers] | None = None
) -> list[Explanation]:
    """Return the explanations of `answer_query` for a setting's dotted name, a path, or a sentence."""
    return answer_query(context, query, load_in=load_in).explanations


def answer_query(
    context: ExplainedContext,
    query: str,
    *,
    load_in: Callable[[Path], LoadedLayers] | None = None,
    find_notes: Callable[[], Mapping[Path, str]] = dict,
) -> QueryExplanations:
    """Explain a setting, an MCP server, a path or a sentence, in this order.

    A sentence is searched in the prompt and in every file of the project, whatever its case, line breaks and
    Markdown decoration.

    Args:
        context: A directory and its prompt.
        query: The question.
        load_in: Loads another directory of the project, to determine what would be read there.
        find_notes: Returns the files of memories, each with when it is sent.
    """
    project = _ProjectSearch(context, load_in, find_notes)
    named = [*_explain_setting(context, query), *_explain_server(context, query)]
    found = project.explain_path(query)
    if not found and not named:
        found = sorted(project.explain_directory(query), key=_rank_readers)
    # A word may name a file or directory and also occur in a sentence.
    is_path = query.startswith(".") or os.sep in query or os.path.splitext(query)[1] != ""  # noqa: PTH122 - any text
    if named or (found and is_path):
        return QueryExplanations([*named, *found])
    answer = project.explain_sentence(query)
    known = {each.place for each in found}
    more = [each for each in answer.explanations if each.place.rpartition(":")[0] not in known]
    return answer._replace(explanations=sorted([*found, *more], key=_rank_readers))


def _rank_readers(explanation: Explanation) -> int:
    """Return 0 for what the agent that was asked about reads, 1 for what another one reads, 2 for files of no agent."""
    statuses = [each.status for each in explanation.readers]
    if not statuses:
        return 2 if explanation.remark.startswith("not ") else 0  # such as a file that is not there
    if statuses[0] == "read":
        return 0
    return 1 if any(status != "unread" for status in statuses) else 2


def _explain_setting(context: ExplainedContext, query: str) -> Iterator[Explanation]:
    settings, keys = context.loaded.settings, split_setting_name(query)
    pointer, value = join_pointer(keys), follow_keys(withhold_secrets(settings.value), keys)
    is_group = isinstance(value, dict | list)
    deciding = _list_deciding_files(settings, pointer) if is_group else set()
    for number, origin in enumerate(settings.origins.get(pointer, ())):
        if number:
            fate = "some of it" if origin.path in deciding else "overridden"
            yield Explanation(query, str(origin), f"{fate} ({origin.layer})")
        else:
            shown = repr(value) if _is_plain_value(value) else "a group of settings"
            policy = settings.policies.get(pointer)
            merged = f", merged by {policy}" if policy else ""
            yield Explanation(query, str(origin), f"{shown} ({origin.layer}{merged})")
    for finding in context.loaded.findings:
        if finding.message.startswith(f"{query} "):
            yield Explanation(query, finding.place, finding.message)


def _explain_server(context: ExplainedContext, query: str) -> Iterator[Explanation]:
    for server in context.loaded.servers:
        name = f"{SERVERS}.{server.config.name}"
        if query in {server.config.name, name}:
            yield Explanation(name, f"{server.source_path}:{server.line}", f"{server.status} ({server.origin})")
            if server.shadows is not None:
                yield Explanation(name, str(server.shadows), f"overridden ({server.shadows.layer})")


def _is_plain_value(value: object) -> bool:
    """Return True if a value is a scalar or a list of scalars."""
    items = value if isinstance(value, list) else [value]
    return not any(isinstance(item, dict | list) for item in items)


def _list_deciding_files(settings: Settings, pointer: str) -> set[Path]:
    """Return the files that provide the effective value of a setting in a group."""
    inside = f"{pointer}/"
    return {origins[0].path for each, origins in settings.origins.items() if each.startswith(inside)}


class _ProjectSearch:
    """The files of a project, and the agents that may read them."""

    def __init__(
        self,
        context: ExplainedContext,
        load_in: Callable[[Path], LoadedLayers] | None,
        find_notes: Callable[[], Mapping[Path, str]],
    ) -> None:
        self._context = context
        self._load_in = load_in
        self._find_notes = find_notes
        self._admission = LayerReader(Layer("local", context.cwd, "local", root=context.cwd))
        self._workspace = find_workspace(context.cwd)
        self._read: dict[Path, str] = {}
        self._unread: set[Path] = set()
        self._size = 0

    @cached_property
    def _indexes(self) -> list[AgentFileIndex]:
        """The agents, built lazily because questions about settings need none."""
        context = self._context
        view = context.agent_view if isinstance(context, LoadedContext) else None
        root, files = self._admission.root, self._files
        return build_agent_indexes(context.cwd, context.loaded, view, root=root, files=files, load_in=self._load_in)

    @cached_property
    def _files(self) -> dict[Path, str]:
        """The files that computed sections include in part, each with how the rest is read."""
        return {path: how for section in self._context.sections for path, how in section.files.items()}

    @cached_property
    def _notes(self) -> dict[Path, tuple[Path, str]]:
        """The files of memories by real path, each with the path of the memory and when it is sent."""
        return {real_path(path): (path, when) for path, when in self._find_notes().items()}

    def explain_path(self, query: str) -> list[Explanation]:
        """Explain a file by its path, relative to the working directory or to the root of the project."""
        # NEXUS.md may be in the directory or in its `.nexus3`.
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
        return [each for path in there[:1] for each in self._explain_known_file(path)]

    def explain_directory(self, query: str) -> list[Explanation]:
        """Explain the files of a directory in the project."""
        for place in (self._context.cwd, self._admission.root):
            try:
                path = real_path(place / query)
            except ValueError:
                return []
            if os.path.isdir(path) and path.is_relative_to(self._admission.root):  # noqa: PTH112 - never fails
                files = list_files(path, max_files=MAX_EXPLAINED_FILES).files
                return [each for file in files for each in self._explain_known_file(file)]
        return []

    def explain_sentence(self, query: str) -> QueryExplanations:
        """Find a sentence in the prompt, in the files other agents read, and in the files of the project."""
        sentence = SentenceMatcher(query)
        found = list(self._explain_sections(sentence))
        known = {real_path(self._context.cwd / each.place.rpartition(":")[0]) for each in found if each.readers}
        root = self._workspace and self._admission.root
        tree = list_files(root) if root else None
        is_complete = tree is None or tree.is_complete
        for path in self._candidates(tree):
            if path in known:
                continue
            if len(found) >= MAX_EXPLAINED_FILES or self._size > MAX_SEARCHED_BYTES:
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
            # A text with imports is built from several files.
            for path in dict.fromkeys((file, *imported.get(file, ()))):
                line = sentence.find_line(self._text(path))
                if line is not None:
                    readers = self._find_readers(path, sentence)
                    yield Explanation(section.title, f"{path}:{line}", "in the prompt", readers)
                    break
            else:
                yield Explanation(section.title, "", "in the prompt")

    def _explain_parts(self, section: Section, sentence: SentenceMatcher) -> Iterator[Explanation]:
        """Explain a sentence that a computed section took from the front matter of some files."""
        for path, how in section.files.items():
            content = self._text(path)
            if not is_in_front_matter(sentence, content):
                continue
            own, *others = self._find_readers(path, sentence)
            reason = f"its description is in the prompt; the guide is read on demand ({how})"
            place = f"{path}:{sentence.find_line(content)}"
            yield Explanation(section.title, place, reason, (own._replace(status="read", reason=reason), *others))

    def _candidates(self, tree: FileListing | None) -> Iterator[Path]:
        """Yield the files to search by real path: those that an agent reads or might read, then all others."""
        read = (path for index in self._indexes for text in index.texts for path in (text.path, *text.imports))
        skipped = (each.path for each in self._context.loaded.skipped if each.line is None)
        for path in chain(read, self._files, skipped, self._notes):
            yield real_path(path)
        if tree is not None:
            files = (path for path in tree.files if not _BINARY_SUFFIX.fullmatch(path.suffix))
            yield from sorted(files, key=lambda path: path.suffix.lower() not in _LIKELY_SUFFIXES and path.suffix != "")

    def _text(self, path: Path) -> str:
        """Return the text of a file, or "" if it may not be read."""
        path = real_path(path)
        if path not in self._read:
            self._read[path] = text = self._load(path)
            self._size += len(text)
        return self._read[path]

    def _load(self, path: Path) -> str:
        # The same restrictions apply as when reading for the prompt.
        layer = self._owners.get(path)
        admission = self._admission if layer is None else LayerReader(layer)
        try:
            # A file may be too large for a prompt and still contain the sentence.
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
        """The layers of the files that an agent reads or skips. Other files belong to the project."""
        loaded = self._context.loaded
        layers = {layer.name: layer for layer in loaded.layers}
        owners = {real_path(each.path): layers[each.layer] for each in loaded.skipped if each.layer in layers}
        for text in (text for index in self._indexes for text in index.texts):
            if text.layer is not None:
                owners.update(dict.fromkeys((real_path(text.path), *text.imports), text.layer))
        for path in chain(self._files, self._notes):
            if not path.is_relative_to(self._admission.root):
                around = (each for each in loaded.layers if not each.is_own and path.is_relative_to(each.project))
                owners[real_path(path)] = next(around, build_agent_home_layer(path.parent, self._context.cwd))
        return owners

    def _explain_loaded(self, path: Path) -> Iterator[Explanation]:
        """Explain what Nexus, or the agent that was asked about, did with a file that it found."""
        loaded = self._context.loaded
        for text in loaded.texts:
            if path == real_path(text.path):
                layer = text.layer.name if text.layer else "-"
                yield Explanation(str(text.path), str(text.path), f"in the prompt ({layer})", self._find_readers(path))
        importers = [str(text.path) for text in loaded.texts if path in text.imports]
        if importers:
            remark = f"in the prompt, imported by {' and '.join(importers)}"
            yield Explanation(str(path), str(path), remark, self._find_readers(path))
        for config in loaded.configs:
            if path == real_path(config.path):
                layer = config.layer.name if config.layer else "-"
                yield Explanation(str(path), str(path), f"settings ({layer})")
        for skipped in loaded.skipped:
            is_imported = bool(importers) and skipped.reason.startswith("imported ")  # and so in the prompt
            if path == real_path(skipped.path) and not is_imported:
                # A skipped file with a line is a part of a file that is used.
                fate = "not in the prompt" if skipped.line is None else "not used"
                is_there = skipped.line is None and os.path.isfile(path)  # noqa: PTH113 - never fails
                reads = self._find_readers(path) if is_there else ()
                yield Explanation(str(skipped.path), skipped.place, f"{fate}: {skipped.reason}", reads)

    def _explain_known_file(self, path: Path) -> list[Explanation]:
        """Explain an existing file in the same words, whether its path or its directory was asked about."""
        return list(self._explain_loaded(real_path(path))) or [self._explain_file(path)]

    def _explain_file(self, path: Path, line: int = 0, sentence: SentenceMatcher | None = None) -> Explanation:
        readers = self._find_readers(path, sentence)
        place = f"{path}:{line}" if line else str(path)
        note = self._find_note(path, readers)
        remark = self._remark(path, readers) if note is None else f"a note: {note[1]}"
        return Explanation(str(path), place, remark, readers, "" if note is None else str(note[0]))

    def _find_note(self, path: Path, readers: Sequence[FileAccess]) -> tuple[Path, str] | None:
        """Return the path of a memory in a file that no agent reads, and when it is sent."""
        if readers[0].status != "unread" or readers[0].reason or self._describe_settings_file(path, readers):
            return None
        return self._notes.get(real_path(path))

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
        settings = self._describe_settings_file(path, readers)
        if settings:
            return f"not in the prompt: {settings}"
        is_unread = len(readers) > 1 and all(each.status == "unread" and not each.reason for each in readers)
        kind = (
            describe_unread_file(path, self._admission.root) if is_unread else f"{own.name} does not read {path.name}"
        )
        return f"not in the prompt: {own.reason or kind}"

    def _describe_settings_file(self, path: Path, readers: Sequence[FileAccess]) -> str:
        """Return which agent reads a file as its settings, and where, or "" if none of the readers does."""
        end = "/".join(path.parts[-2:])
        # An agent with a reason does not read the file, such as Codex in a project that it does not trust.
        unread = {each.name for each in readers if each.status == "unread" and not each.reason}
        agent = _SETTINGS_FILES.get(end, "opencode" if path.name in _OPENCODE_SETTINGS else "")
        if agent in unread:
            home, cwd = path.parent.parent, self._context.cwd
            is_near = cwd.is_relative_to(home) or not path.is_relative_to(self._admission.root)
            return f"{agent} reads it as its settings" + ("" if is_near else f", only in {home} and below")
        own = {real_path(layer.directory) for layer in self._context.loaded.layers if layer.scope == "global"}
        is_store = path.name == "trust.json" and real_path(path.parent) in own
        return "Nexus keeps your approvals in it" if is_store and "Nexus" in unread else ""
