"""Reading of another agent's instruction files: once each, inside the project, within its limits, with its imports."""

from __future__ import annotations

import os
import re
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core.errors import FileError
from nexus_core.files.places import is_outside_path
from nexus_core.files.read import LayerReader, real_path
from nexus_core.files.tree import list_files
from nexus_core.layers.agent_profiles import CLAUDE_PROFILE
from nexus_core.layers.agent_settings import build_agent_home_layer
from nexus_core.layers.load import choose_texts
from nexus_core.layers.on_demand import OnDemandFile, list_on_demand_files
from nexus_core.layers.path_globs import GlobCompiler
from nexus_core.layers.rule_files import list_rule_globs, parse_rule
from nexus_core.text.safety import AGENT_INSTRUCTIONS_TITLE
from nexus_core.types.layers import Layer, LayerText, SkippedFile
from nexus_core.types.plugins import Finding
from nexus_core.types.prompt import Source
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.files.tree import FileListing
    from nexus_core.layers.agent_profiles import AgentProfile
    from nexus_core.layers.agent_settings import AgentHomes, AgentSettings
    from nexus_core.layers.path_globs import PathGlobs
    from nexus_core.layers.rule_files import RuleFile

MAX_IMPORT_LOOKUPS = 4_000  # words after an @; without a limit, a file full of them would take many seconds
MAX_RULE_FILES = 1_000  # files in one directory of rules
MAX_GLOB_COMPARISONS = 2_000_000  # globs times files to which they are compared
LISTING_COMPARISONS = 20  # to list a file takes about as long as so many comparisons
MAX_SHOWN_CHARACTERS = 60  # of a pattern in a finding
POLICY_LABEL = "policy"
"""The label of an administrator's directory, whose files no setting excludes."""

# Code first, so that its content is not an import: a fenced block, closed or not, then inline code.
_FENCED = r"^[ \t]*+(?P<fence>`{3,}+|~{3,}+).*?(?:^[ \t]*+(?P=fence)|\Z)"
_CODE_OR_IMPORT = re.compile(
    rf"(?ms){_FENCED}|(?<!`)(?P<ticks>`++)[^`\n]*+(?P=ticks)(?!`)|(?<!\S)@(?P<path>(?>(?:\\ |[^\s`])+))"
)
# An import of goose, which looks into code as well. A full stop at the end is not part of the path.
_PLAIN_IMPORT = re.compile(r"(?<!\S)@(?P<path>[A-Za-z0-9_\-./]*[A-Za-z0-9_\-])")
# Only a comment on lines of its own: it begins a line and ends one.
_CODE_OR_COMMENT = re.compile(rf"(?ms)(?P<code>{_FENCED})|^[ \t]*+<!--(?>(?:(?!-->).)*)-->[ \t]*+(?:\n|\Z)")


class RuleCondition(NamedTuple):
    """The files that a rule is for.

    Attributes:
        patterns: Globs of the files; a rule without any is read at the start.
        base: The directory to which they are relative.
        at_any_depth: True if a pattern without a slash matches a file in any directory.
    """

    patterns: tuple[str, ...]
    base: Path
    at_any_depth: bool = False


class SearchDirectory(NamedTuple):
    """A directory that an agent searches, and `root`, outside of which nothing is read on its behalf."""

    directory: Path
    label: str
    layer: Layer
    admission: LayerReader
    root: Path


class InstructionReader:
    """Reads each file once, even if several paths lead to it."""

    def __init__(
        self,
        profile: AgentProfile,
        settings: AgentSettings,
        cwd: Path,
        homes: AgentHomes,
        *,
        nested: bool,
        files: Sequence[Path] = (),
        list_nested: Callable[[], FileListing] | None = None,
    ) -> None:
        self.profile = profile
        self.settings = settings
        self.cwd = cwd
        self.homes = homes
        self._nested = nested
        self._files = files
        self._list_nested = list_nested or partial(list_files, cwd)
        self._home = real_path(homes.user)
        self._admission = LayerReader(Layer("local", cwd, "local", root=cwd))
        self._bytes_left = settings.cap
        self._lookups = 0
        self._seen: set[Path] = set()
        self._globs = GlobCompiler()
        self._trees: dict[Path, list[str]] = {}
        self._comparisons_left = MAX_GLOB_COMPARISONS
        self.texts: list[LayerText] = []
        self.findings: list[Finding] = []
        self.skipped: list[SkippedFile] = []
        self.on_demand: list[OnDemandFile] = []
        self.is_complete = True
        self.whole_sizes: dict[Path, int] = {}
        self._beyond_cap: dict[Path, str] = {}

    @property
    def project(self) -> Path:
        """The root of the project that the working directory belongs to."""
        return self._admission.root

    def build_user_directory(self, directory: Path, label: str) -> SearchDirectory:
        """Return an agent's home, or an administrator's directory."""
        layer = build_agent_home_layer(directory, self.cwd)
        admission = LayerReader(layer)
        return SearchDirectory(
            directory, label, layer, admission, real_path(directory) if layer.is_own else admission.root
        )

    def list_directories(self, root: Path | None) -> list[SearchDirectory]:
        """Return the directories from a root, or from below `/`, down to the working directory."""
        # One reader for all: which owners are trusted is decided for `cwd`, not for a directory above it.
        admission = self._admission
        places = []
        for distance, directory in enumerate((self.cwd, *self.cwd.parents)):
            if directory == directory.parent if root is None else not directory.is_relative_to(root):
                break
            name = f"ancestor:{directory.name}" if distance else "local"
            layer = Layer(name, directory, "ancestor" if distance else "local", distance)
            # Above the repository, each directory is its own root.
            limit = admission.root if directory.is_relative_to(admission.root) else directory
            places.append(SearchDirectory(directory, directory.name or str(directory), layer, admission, limit))
        return places[::-1]

    def read_first(self, place: SearchDirectory, names: Sequence[str]) -> None:
        """Read the first of some files that exists."""
        used = ""
        for name in names:
            path = place.directory / name
            if used and os.path.lexists(path):
                self.skip(place, path, f"{used} comes first")
            elif not used and self.read(place, path):
                used = name

    def read(self, place: SearchDirectory, path: Path) -> bool:
        """Read a file. Return True if the agent then ignores files of lower priority."""
        if not os.path.isfile(path):  # noqa: PTH113 - never fails
            return self.skip(place, path, "not there")
        if place.label != POLICY_LABEL and self.is_excluded(path):
            return self.skip(place, path, "claudeMdExcludes names it")
        text = self.read_content(place, path)
        if text is not None and not text.strip():
            self.skip(place, path, self._beyond_cap.get(path, "blank"))
            return not place.layer.is_own
        if text is not None:
            self.add_text(place, path, text)
        return True

    def add_text(self, place: SearchDirectory, path: Path, text: str) -> None:
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

    def read_content(self, place: SearchDirectory, path: Path) -> str | None:
        """Return the content of a file, once, or None if it must not or cannot be read."""
        # Links in the user's own directory may lead anywhere.
        return self._read_content(place, path, None if place.layer.is_own else place.root)

    def is_excluded(self, path: Path) -> bool:
        """Return True if the agent's settings exclude a file, by its path or by its link target."""
        if not self.settings.excludes:
            return False
        return any(self._excludes.matches(each.as_posix()) for each in (path, real_path(path)))

    @cached_property
    def _excludes(self) -> PathGlobs:
        return self.compile_globs(self.settings.excludes, None)

    def compile_globs(self, patterns: Sequence[str], path: Path | None) -> PathGlobs:
        """Return the globs of some patterns from a file. Those that exceed a limit are a finding.

        Args:
            patterns: The patterns.
            path: The file; None for several.
        """
        globs, refused = self._globs.compile(patterns)
        if refused:
            first = refused[0] if len(refused[0]) <= MAX_SHOWN_CHARACTERS else f"{refused[0][:MAX_SHOWN_CHARACTERS]}…"
            others = f" and {len(refused) - 1:,} more" if refused[1:] else ""
            message = (
                f"{self.profile.name} would use {first!r}{others}; not evaluated here: too long or too many braces"
            )
            self.findings.append(Finding("profile-unread", message, path))
        return globs

    def find_matches(self, directory: Path, inner: Path, globs: PathGlobs, path: Path) -> Iterator[Path]:
        """Yield the files that match some globs, sorted. Each directory is listed once.

        Args:
            directory: The directory to which the globs are relative.
            inner: The directory in it below which files can match.
            globs: The globs.
            path: The file that has them.
        """
        real = real_path(inner)
        if real not in self._trees and self._comparisons_left > 0:
            tree = list_files(real)
            self._trees[real] = [each.relative_to(real).as_posix() for each in sorted((*tree.files, *tree.links))]
            self.is_complete = self.is_complete and tree.is_complete
            self._comparisons_left -= LISTING_COMPARISONS * len(tree.files)
        found = self._trees.get(real, [])
        self._comparisons_left -= (1 + len(found)) * len(globs.alternatives)
        if self._comparisons_left < 0:
            message = f"{self.profile.name} would search {inner}; it is not searched here: too many globs and files"
            self.findings.append(Finding("profile-unread", message, path))
            return
        start = "" if inner == directory else f"{inner.relative_to(directory).as_posix()}/"
        for name in found:
            if globs.matches(f"{start}{name}"):
                yield inner / name

    def skip(self, place: SearchDirectory, path: Path, reason: str) -> Literal[False]:
        """Record that a file is not read."""
        self.skipped.append(SkippedFile(path, reason, place.layer.name))
        return False

    def note_unread(self, place: SearchDirectory, path: Path, reason: str) -> None:
        """Record that the agent reads a file which Nexus does not."""
        self.skip(place, path, reason)
        message = f"{self.profile.name} would read this; it is not shown: {reason}"
        self.findings.append(Finding("profile-unread", message, path))

    def read_rule(self, place: SearchDirectory, path: Path, consequence: str) -> RuleFile | None:
        """Return a rule, once, or None if it must not or cannot be read.

        Args:
            place: The directory in which it was searched for.
            path: The file.
            consequence: For the finding about front matter that cannot be parsed: what the agent does then.
        """
        text = self.read_content(place, path)
        if text is None:
            return None
        rule = parse_rule(text)
        if rule.error is not None:
            message = f"front matter that cannot be parsed: {rule.error}; {consequence}"
            self.findings.append(Finding("profile-front-matter", message, path, rule.error.line))
        return rule

    def note_ignored(self, place: SearchDirectory, path: Path, reason: str, line: int = 0) -> None:
        """Record a file that its author meant for the agent, and that the agent ignores."""
        self.skip(place, path, reason)
        self.findings.append(Finding("profile-ignored", f"{self.profile.name} ignores this: {reason}", path, line))

    def works_in(self, directory: Path) -> bool:
        """Return True if the agent works on a file of a directory."""
        return any(file.is_relative_to(directory) for file in self._files)

    def build_nested_directory(self, directory: Path) -> SearchDirectory:
        """Return a directory below the working directory, with the rights of the project."""
        return self.list_directories(self.cwd)[-1]._replace(directory=directory, label=directory.name)

    def list_rules(self, place: SearchDirectory, directory: Path) -> Iterator[Path]:
        """Yield the files of a directory of rules and those below it, sorted, by the path that leads there."""
        if not os.path.isdir(directory):  # noqa: PTH112 - never fails
            return
        real = real_path(directory)
        if not place.layer.is_own and not real.is_relative_to(place.root):
            self.note_unread(place, directory, f"leads outside {place.root}")
            return
        tree = list_files(real, max_files=MAX_RULE_FILES)
        self.is_complete = self.is_complete and tree.is_complete
        for path in sorted((*tree.files, *tree.links)):
            named = directory / path.relative_to(real)
            if os.path.isdir(path):  # noqa: PTH112 - never fails
                self.note_unread(place, named, "a link to a directory")
            else:
                yield named

    def add_rule(self, place: SearchDirectory, path: Path, rule: RuleFile, condition: RuleCondition) -> None:
        """Append a rule that holds for all files or for those the agent works on. Others are listed as on demand."""
        patterns = condition.patterns
        globs = self.compile_globs(list_rule_globs(patterns, at_any_depth=condition.at_any_depth), path)
        files = [
            file.relative_to(condition.base).as_posix() for file in self._files if file.is_relative_to(condition.base)
        ]
        is_wanted = not patterns or any(map(globs.matches, files))
        if not is_wanted:
            self.on_demand.append(OnDemandFile(path, f"for files that match {', '.join(patterns)}", patterns))
        elif rule.body.strip():
            self.add_text(place, path, rule.body)
        else:
            self.skip(place, path, "blank")

    def add_nested(self, path: Path, directory: Path, verb: str) -> None:
        """Record a file below the working directory that is added on demand, or read it if the agent works there."""
        if self.is_excluded(path):
            self.skipped.append(SkippedFile(path, "claudeMdExcludes names it", "local"))
        elif self.works_in(directory):
            self.read(self.build_nested_directory(directory), path)
        else:
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
        tree = self._list_nested()
        self.is_complete = self.is_complete and tree.is_complete
        for path in (*tree.files, *tree.links):
            if path.parent != self.cwd:
                yield path

    def _read_content(self, place: SearchDirectory, path: Path, root: Path | None) -> str | None:
        data = self._read_data(place, path, root)
        if data is None:
            return None
        self._seen.add(real_path(path))
        return _decode_text(self._apply_cap(place, path, data))

    def _read_data(self, place: SearchDirectory, path: Path, root: Path | None) -> bytes | None:
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

    def _apply_cap(self, place: SearchDirectory, path: Path, data: bytes) -> bytes:
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
        return strip_html_comments(text) if self.profile is CLAUDE_PROFILE else text

    def _resolve_imports(self, place: SearchDirectory, path: Path, text: str, found: list[Path], depth: int = 1) -> str:
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
        return (_PLAIN_IMPORT if self.profile.imports_in_code else _CODE_OR_IMPORT).sub(content, text)


def _decode_text(data: bytes) -> str:
    # These agents decode invalid UTF-8 with replacement characters; so does one that cuts a character in two.
    return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


def strip_html_comments(text: str) -> str:
    """Return a text without its HTML comments, as Claude Code reads it. Comments in code stay."""
    return _CODE_OR_COMMENT.sub(lambda match: match["code"] or "", text)
