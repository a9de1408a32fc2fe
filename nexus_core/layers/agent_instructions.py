"""Instruction files of Cursor, GitHub Copilot, opencode, goose and Cline.

Most of them have rules for some files only (`globs`, `applyTo`, `paths`). Such a rule is listed as loaded on demand,
with its condition, and is a text of the view only for a file that the agent works on.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.files.read import real_path
from nexus_core.layers.agent_settings import is_contained_name
from nexus_core.layers.instruction_files import RuleCondition
from nexus_core.layers.on_demand import OnDemandFile
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.layers.agent_settings import InstructionPattern
    from nexus_core.layers.instruction_files import InstructionReader, SearchDirectory

_AGENTS_FILE = "AGENTS.md"
_FOR_ALL_FILES = frozenset({"**", "**/*"})
_URL_STARTS = ("https://", "http://")
_GLOB_SIGNS = frozenset("*?[{")
_CLINE_OTHER_DIRECTORIES = frozenset({"workflows", "hooks", "skills"})


def read_cursor(reader: InstructionReader) -> None:
    """Read the project rules, `.cursorrules` and AGENTS.md as Cursor does."""
    for place in reader.list_directories(reader.project):
        rules = place.directory / ".cursor/rules"
        for path in reader.list_rules(place, rules):
            if path.suffix == ".mdc":
                _read_cursor_rule(reader, place, path, place.directory)
            elif path.suffix == ".md" and path.stem.lower() != "readme":
                reader.note_ignored(place, path, "the name of a rule ends with .mdc")
        if place.directory == reader.project:
            reader.read(place, place.directory / ".cursorrules")
        reader.read(place, place.directory / _AGENTS_FILE)
    for path in reader.nested_files():
        directory = _find_directory_above(path, ".cursor")
        if path.name == _AGENTS_FILE and directory is None:
            reader.add_nested(path, path.parent, "when it works on a file")
        elif directory not in (None, reader.cwd) and path.suffix == ".mdc":
            _read_cursor_rule(reader, reader.build_nested_directory(directory), path, directory, is_nested=True)


def _read_cursor_rule(
    reader: InstructionReader, place: SearchDirectory, path: Path, base: Path, *, is_nested: bool = False
) -> None:
    """Read a rule, or list it with its condition: its globs, its description, or its name in a message."""
    rule = reader.read_rule(place, path, "Cursor does not read the rule")
    if rule is None:
        return
    if rule.error is not None:
        reader.skip(place, path, "its front matter cannot be parsed")
        return
    always = str(rule.values.get("alwaysApply", "")).lower()
    if always not in {"", "true", "false"}:
        message = f"alwaysApply is {always!r}, neither true nor false; Cursor takes it for false"
        reader.findings.append(Finding("profile-front-matter", message, path, _find_line(rule.text, "alwaysApply")))
    patterns = rule.get_patterns("globs")
    if always == "true" and is_nested and not reader.works_in(base):
        where = base.relative_to(reader.cwd).as_posix()
        reader.on_demand.append(OnDemandFile(path, f"when it works on a file in {where}/"))
    elif always == "true":
        reader.add_rule(place, path, rule, RuleCondition((), base))
    elif patterns:
        reader.add_rule(place, path, rule, RuleCondition(patterns, base, at_any_depth=True))
    elif rule.values.get("description"):
        reader.on_demand.append(OnDemandFile(path, "when its description fits the task"))
    else:
        reader.on_demand.append(OnDemandFile(path, f"when you name it: @{path.stem}"))


def read_copilot(reader: InstructionReader) -> None:
    """Read the user's, the repository's and the agents' instruction files as GitHub Copilot does."""
    homes, root = reader.homes, reader.project
    user = reader.build_user_directory(homes.copilot, "user")
    reader.read(user, homes.copilot / "copilot-instructions.md")
    _read_copilot_instructions(reader, user, homes.copilot / "instructions")
    for place in reader.list_directories(root):
        reader.read(place, place.directory / ".github/copilot-instructions.md")
        _read_copilot_instructions(reader, place, place.directory / ".github/instructions")
        names = (_AGENTS_FILE, "CLAUDE.md", "GEMINI.md") if place.directory == root else (_AGENTS_FILE,)
        for name in names:
            reader.read(place, place.directory / name)
    for named in filter(None, homes.variables.get("COPILOT_CUSTOM_INSTRUCTIONS_DIRS", "").split(",")):
        directory = Path(os.path.normpath(reader.cwd / Path(named.strip()).expanduser()))
        place = reader.build_user_directory(directory, directory.name)
        reader.read(place, directory / _AGENTS_FILE)
        _read_copilot_instructions(reader, place, directory / ".github/instructions")
    for path in reader.nested_files():
        above = _find_directory_above(path, ".github")
        is_own = above is not None and (path.name == "copilot-instructions.md" and path.parent == above / ".github")
        if path.name == _AGENTS_FILE and above is None:
            reader.add_nested(path, path.parent, "when it works on a file")
        elif above is not None and above != reader.cwd and is_own:
            reader.add_nested(path, above, "when it works on a file")


def _read_copilot_instructions(reader: InstructionReader, place: SearchDirectory, directory: Path) -> None:
    for path in reader.list_rules(place, directory):
        if not path.name.endswith(".instructions.md"):
            if path.suffix == ".md" and path.stem.lower() != "readme":
                reader.note_ignored(place, path, "the name of such a file ends with .instructions.md")
            continue
        rule = reader.read_rule(place, path, "it is shown as if it were for all files")
        if rule is None:
            continue
        patterns = rule.get_patterns("applyTo")
        is_for_all = not _FOR_ALL_FILES.isdisjoint(patterns)
        reader.add_rule(place, path, rule, RuleCondition(() if is_for_all else patterns, reader.project))


def read_opencode(reader: InstructionReader) -> None:
    """Read the project's files of one name, the user's file, and those that settings name, as opencode does."""
    names = reader.settings.names
    places = reader.list_directories(reader.project)[::-1]  # the nearest first
    used = next((name for name in names if any(_is_file(each.directory / name) for each in places)), "")
    for place in places:
        for name in names:
            path = place.directory / name
            if name == used or not used:
                reader.read(place, path)
            elif os.path.lexists(path):
                reader.skip(place, path, f"{used} comes first")
    _read_opencode_user(reader)
    for instructions in reader.settings.instructions:
        _read_named_instructions(reader, places, instructions)
    found = {path for path in reader.nested_files() if path.name in names}
    for path in sorted(found):
        earlier = names[: names.index(path.name)]
        if not any(path.with_name(name) in found for name in earlier):
            reader.add_nested(path, path.parent, "when it reads a file")


def _read_opencode_user(reader: InstructionReader) -> None:
    """Read the first of the user's files that exists."""
    homes = reader.homes
    own = [homes.opencode / _AGENTS_FILE]
    if named := homes.variables.get("OPENCODE_CONFIG_DIR"):
        own.insert(0, Path(named) / _AGENTS_FILE)
    own += [homes.user / ".claude/CLAUDE.md"] if "CLAUDE.md" in reader.settings.names else []
    first = next((path for path in own if _is_file(path)), own[0])
    for path in own:
        place = reader.build_user_directory(path.parent, "user")
        if path == first:
            reader.read(place, path)
        elif os.path.lexists(path):
            reader.skip(place, path, f"{first} comes first")


def _read_named_instructions(
    reader: InstructionReader, places: Sequence[SearchDirectory], named: InstructionPattern
) -> None:
    """Read the files that opencode's settings name. A URL is not fetched, and a project names only its own files."""
    pattern = named.pattern
    if pattern.startswith(_URL_STARTS):
        message = f"opencode would fetch {pattern}; it is not shown, because nothing is fetched here"
        reader.findings.append(Finding("profile-unread", message, named.path))
        return
    known = len(reader.findings)
    if "\0" in pattern:
        found = None
    elif pattern.startswith(("~/", "/")):
        # Without `..`, so that the checked path is the one that is searched.
        start = Path(os.path.normpath(reader.homes.user / pattern.removeprefix("~/")))
        place = reader.build_user_directory(start.parent, "user") if named.is_own else places[-1]
        is_inside = named.is_own or start.is_relative_to(reader.project)
        found = _find_named_files(reader, [place], start.parent, start.name, named) if is_inside else None
    else:
        found = _find_named_files(reader, places, None, pattern, named) if is_contained_name(pattern) else None
    if found is None:
        message = f"opencode would read {pattern!r}; it is not shown, because it leads outside {reader.project}"
        reader.findings.append(Finding("profile-unread", message, named.path))
        return
    if not found and len(reader.findings) == known:  # otherwise the pattern was not evaluated, as its finding says
        message = f"opencode finds nothing for {pattern!r} in instructions"
        reader.findings.append(Finding("profile-ignored", message, named.path))
    for place, path in found:
        reader.read(place, path)


def _find_named_files(
    reader: InstructionReader,
    places: Sequence[SearchDirectory],
    parent: Path | None,
    pattern: str,
    named: InstructionPattern,
) -> list[tuple[SearchDirectory, Path]] | None:
    """Return the files that match a pattern; None if a directory would have to be listed outside the project.

    Args:
        reader: The reader, which lists directories.
        places: The directories to search.
        parent: The directory to search in their stead; None for their own.
        pattern: A path, or a glob.
        named: The setting that has the pattern.
    """
    name = pattern.removeprefix("./")
    if _GLOB_SIGNS.isdisjoint(name):
        paths = [(place, (parent or place.directory) / name) for place in places]
        return [(place, path) for place, path in paths if _is_file(path)]
    globs = reader.compile_globs((name,), named.path)
    parts = Path(name).parts
    fixed = next(at for at, part in enumerate(parts) if not _GLOB_SIGNS.isdisjoint(part))
    found: list[tuple[SearchDirectory, Path]] = []
    for place in places:
        directory = parent or place.directory
        inner = directory.joinpath(*parts[:fixed])
        if not named.is_own and not real_path(inner).is_relative_to(reader.project):
            return None
        found += [(place, path) for path in reader.find_matches(directory, inner, globs, named.path)]
    return found


def read_goose(reader: InstructionReader) -> None:
    """Read the hints of the user and of every directory from the repository down, as goose does."""
    names = tuple(filter(is_contained_name, reader.settings.names))
    user = reader.build_user_directory(reader.homes.goose, "user")
    for name in names:
        reader.read(user, reader.homes.goose / name)
    for place in reader.list_directories(reader.project):
        for name in names:
            reader.read(place, place.directory / name)
    for path in reader.nested_files():
        if path.name in names:
            reader.add_nested(path, path.parent, "when it works on a file")


def read_cline(reader: InstructionReader) -> None:
    """Read global rules, the workspace's rules, and files of other agents, as Cline does."""
    home = reader.homes.user
    choices = [home / "Documents/Cline/Rules", home / "Cline/Rules"]
    rules = next((path for path in choices if _is_directory(path)), choices[0])
    user = reader.build_user_directory(rules, "user")
    for path in _list_cline_rules(reader, user, rules):
        _read_cline_rule(reader, user, path)
    reader.read(reader.build_user_directory(home / ".agents", "user"), home / ".agents" / _AGENTS_FILE)
    place = reader.list_directories(reader.cwd)[-1]
    directory = reader.cwd / ".clinerules"
    if _is_directory(directory):
        for path in _list_cline_rules(reader, place, directory):
            _read_cline_rule(reader, place, path)
    else:
        reader.read(place, directory)
    for name in (".cursorrules", ".windsurfrules"):
        reader.read(place, reader.cwd / name)
    for path in reader.list_rules(place, reader.cwd / ".cursor/rules"):
        if path.suffix == ".mdc":
            reader.read(place, path)  # with its front matter, which Cline does not evaluate
    if reader.read(place, reader.cwd / _AGENTS_FILE):
        for path in reader.nested_files():
            if path.name.lower() == _AGENTS_FILE.lower():
                reader.read(reader.build_nested_directory(path.parent), path)


def _list_cline_rules(reader: InstructionReader, place: SearchDirectory, directory: Path) -> Iterator[Path]:
    for path in reader.list_rules(place, directory):
        is_other = path.relative_to(directory).parts[0] in _CLINE_OTHER_DIRECTORIES
        if not is_other and path.suffix in {".md", ".txt"}:
            yield path


def _read_cline_rule(reader: InstructionReader, place: SearchDirectory, path: Path) -> None:
    rule = reader.read_rule(place, path, "Cline reads it with its front matter, for all files")
    if rule is None:
        return
    if rule.error is not None:
        rule = rule._replace(body=rule.text, error=None)
    patterns = rule.get_patterns("paths")
    if "paths" in rule.values and not patterns:
        reader.skip(place, path, "paths is empty")
        return
    reader.add_rule(place, path, rule, RuleCondition(patterns, reader.cwd))


def _find_directory_above(path: Path, name: str) -> Path | None:
    """Return the directory that has a directory of some name on the way to a file; None if there is none."""
    parts = path.parts
    return Path(*parts[: parts.index(name)]) if name in parts[:-1] else None


def _find_line(text: str, key: str) -> int:
    return next((at for at, line in enumerate(text.split("\n"), 1) if line.startswith(key)), 1)


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - never fails


def _is_directory(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - never fails
