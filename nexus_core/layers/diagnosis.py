"""Looks for trouble in what was loaded: what is not used, not approved, there twice, too large, or never the same."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import FileError
from nexus_core.files.admission import Admission
from nexus_core.files.reading import MAX_BYTES, read_text
from nexus_core.layers.agent_settings import CODEX_MAX_BYTES, AgentSettings, find_agent_homes, read_codex_settings
from nexus_core.layers.volatile import find_volatile, prose
from nexus_core.text.markers import forged
from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nexus_core.values.layer import Layer, LayerText
    from nexus_core.values.loaded import Loaded

LONG_TEXT = 20_000
NEAR_CAP = MAX_BYTES * 9 // 10
MAX_FINDINGS = 100  # of one kind in one file; the rest is counted
SHORTEST_PARAGRAPH = 200  # shorter ones are the same by custom rather than by mistake: a heading, a command

_RULES = frozenset({"AGENTS.md", "CLAUDE.md", "GEMINI.md"})
# Why a place contributes nothing although all is well.
_EXPECTED = ("not there", "blank", "your own ", "same ", "the layer has instructions", "context.", "imported ")


def diagnose(loaded: Loaded) -> list[Finding]:
    """What a person should know about what was loaded; its files are read once more for it."""
    uses = _read_files(loaded)
    files = list({file.path.resolve(): file for file in reversed(uses)}.values())[::-1]
    case = _Case(loaded, uses, files)
    found = (check.find(case) for check in CHECKS.values() if check.find)
    return list(dict.fromkeys(chain(loaded.findings, *found)))


class _File(NamedTuple):
    """A file as it is on disk, and the text of a layer that holds it."""

    path: Path
    content: str
    text: LayerText


class _Case(NamedTuple):
    loaded: Loaded
    uses: list[_File]
    files: list[_File]  # each once, with the first text that holds it


def _read_files(loaded: Loaded) -> list[_File]:
    """Every text's own file and those it imports; one that two texts hold is there twice."""
    # A loaded text has its imports in place and was made safe: its lines are not the lines of a file.
    used = [(path, text) for text in loaded.texts for path in (text.path, *text.imports)]
    contents: dict[Path, str] = {}
    for path, text in used:
        with suppress(FileError):  # it was there a moment ago; whoever loads next will hear of it
            contents[path] = _content(path, text.layer)
    return [_File(path, contents[path], text) for path, text in used if contents.get(path)]


def _content(path: Path, layer: Layer | None) -> str:
    text = read_text(path) if layer is None else Admission(layer).read_text(path)
    return text if isinstance(text, str) else ""


def _duplicate_file(case: _Case) -> Iterator[Finding]:
    for skipped in case.loaded.skipped:
        if skipped.reason.startswith("same "):
            yield Finding("duplicate-file", f"{skipped.reason}, which is used", skipped.path, skipped.line or 0)


def _ignored_file(case: _Case) -> Iterator[Finding]:
    for skipped in case.loaded.skipped:
        is_expected = skipped.reason.startswith(_EXPECTED) or skipped.reason.endswith(" comes first")
        if not is_expected and not skipped.is_mistake:  # of which the load has a finding
            yield Finding("ignored-file", f"not used: {skipped.reason}", skipped.path, skipped.line or 0)


def _large_file(case: _Case) -> Iterator[Finding]:
    contents = {file.path: file.content for file in case.uses}
    total = 0
    codex = _read_codex_settings(case.loaded)
    cap = codex.cap or 0
    for text in case.loaded.texts:
        remarks = [f"{len(text.text):,} characters in every prompt"] if len(text.text) > LONG_TEXT else []
        if text.path.name in _RULES:
            size = len(contents.get(text.path, "").encode())  # without its imports: Codex has none
            was_within, total = total <= cap, total + size
            if size > cap:
                remarks.append(f"Codex would cut this at {codex.described_cap}")
            elif was_within and total > cap:
                remarks.append(
                    f"{total:,} bytes with the rules before it; Codex would cut them at {codex.described_cap} in all"
                )
        if remarks:
            yield Finding("large-file", "; ".join(remarks), text.path)


def _read_codex_settings(loaded: Loaded) -> AgentSettings:
    """Return the settings by which Codex would read the rules of the working directory."""
    cwd = next((layer.project for layer in loaded.layers if layer.scope == "local"), None)
    if cwd is None or not any(text.path.name in _RULES for text in loaded.texts):
        return AgentSettings((), cap=CODEX_MAX_BYTES)
    return read_codex_settings(cwd, find_agent_homes(cwd))


def _near_cap(case: _Case) -> Iterator[Finding]:
    for file in case.files:
        if (size := len(file.content.encode())) >= NEAR_CAP:
            yield Finding("near-cap", f"{size:,} bytes; with more than {MAX_BYTES:,} (1 MiB) it is refused", file.path)


def _forged_marker(case: _Case) -> Iterator[Finding]:
    for file in case.files:
        yield from _first(_forged_in(file))


def _forged_in(file: _File) -> Iterator[Finding]:
    for number, line in forged(file.content):
        message = f"{line.strip()[:80]!r} looks like a line that only Nexus writes; the model sees it with a backslash"
        yield Finding("forged-marker", message, file.path, number)


def _first(found: Iterator[Finding]) -> Iterator[Finding]:
    """The first findings in a file, and how many more there are."""
    yield from islice(found, MAX_FINDINGS)
    last = next(found, None)
    if last is not None:
        yield replace(last, message=f"{1 + sum(1 for _ in found):,} more like these from here on", column=0)


def _duplicate_text(case: _Case) -> Iterator[Finding]:
    holders: dict[Path, LayerText] = {}
    for file in case.uses:
        holder = holders.setdefault(file.path.resolve(), file.text)
        if holder is not file.text:
            message = f"in the prompt twice, through {holder.path} and through {file.text.path}"
            yield Finding("duplicate-text", message, file.path, 1)
    # One finding for two files, however much they share.
    for (path, other_path), lines in _shared_paragraphs(case.files).items():
        line, other_line = lines[0]
        more = f", and {len(lines) - 1} more between these files" if len(lines) > 1 else ""
        yield Finding("duplicate-text", f"the same paragraph as {other_path}:{other_line}{more}", path, line)


def _shared_paragraphs(files: list[_File]) -> dict[tuple[Path, Path], list[tuple[int, int]]]:
    """By two files of different texts, in which lines the paragraphs begin that both have."""
    first: dict[str, tuple[_File, int]] = {}
    shared: dict[tuple[Path, Path], list[tuple[int, int]]] = {}
    for file in files:
        for line, paragraph in _paragraphs(file.content):
            other, other_line = first.setdefault(paragraph, (file, line))
            if other.text is not file.text:
                shared.setdefault((file.path, other.path), []).append((line, other_line))
    return shared


def _paragraphs(content: str) -> Iterator[tuple[int, str]]:
    """The longer paragraphs of a text in normal white space, each with the number of its first line."""
    words: list[str] = []
    start = 0
    for number, line in enumerate([*content.split("\n"), ""], start=1):
        if found := line.split():
            start = start if words else number
            words += found
        else:
            paragraph, words = " ".join(words), []
            if len(paragraph) >= SHORTEST_PARAGRAPH:
                yield start, paragraph


def _volatile_text(case: _Case) -> Iterator[Finding]:
    for file in case.files:
        yield from _first(_volatile_in(file))


def _volatile_in(file: _File) -> Iterator[Finding]:
    for number, line in prose(file.content):
        if found := find_volatile(line):
            message = f"{found[0]!r} changes from day to day, and each change invalidates the prompt cache"
            yield Finding("volatile-text", message, file.path, number, found.start() + 1)


class Check(NamedTuple):
    """What a code means, and what finds it."""

    meaning: str
    find: Callable[[_Case], Iterator[Finding]] | None = None  # without one, it was found while loading


CHECKS = {  # every code of the core
    "duplicate-file": Check("A file says the same as another, and only that one is used", _duplicate_file),
    "duplicate-text": Check("Two texts of the prompt have the same paragraph or file in them", _duplicate_text),
    "forged-marker": Check("A line looks like one of those by which Nexus structures the prompt", _forged_marker),
    "hidden-characters": Check("A text has characters in it that no reader sees"),
    "home-in-repository": Check("Your own settings may have come with a repository, and wait for your approval"),
    "ignored-file": Check("A file, an import or an entry is not used, and why", _ignored_file),
    "large-file": Check("A text takes much of every prompt, or is more than other tools read", _large_file),
    "looser-permission": Check("A project tries to loosen what it may only tighten"),
    "near-cap": Check("A file will soon be too large to be read", _near_cap),
    "outdated-approval": Check("An approval was made before approvals covered code, so you are asked again"),
    "protected-setting": Check("A project sets what only you decide"),
    "trust-store": Check("Your approvals cannot be relied upon, so that nothing is trusted"),
    "uncovered-code": Check("A program that you approved runs more code than an approval covers"),
    "unapproved": Check("A setting would do something, and waits for your approval"),
    "volatile-section": Check("What a plugin adds to the prompt is another text each time, or tells the time"),
    "volatile-text": Check("A date or a counter in a text keeps prompts from being cached", _volatile_text),
}
