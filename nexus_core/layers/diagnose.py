"""Findings about settings and texts: invalid, unknown, duplicate, uncacheable."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.config.pointers import dotted_to_pointer, pointer_to
from nexus_core.config.servers import normalize_servers
from nexus_core.config.validate import DISABLED_KEY, find_config_errors, import_settings_models, list_invalid_settings
from nexus_core.dialects.registry import BUILT_IN_NAMES, get_default_registry
from nexus_core.errors import FileError, did_you_mean
from nexus_core.files.read import MAX_FILE_BYTES, LayerReader, read_text
from nexus_core.layers.agent_settings import MAX_CODEX_BYTES, AgentSettings, find_agent_homes, read_codex_settings
from nexus_core.layers.load import find_unknown_names
from nexus_core.layers.policy import enforce_policy, list_plugin_guarded_settings
from nexus_core.text.safety import find_forged_markers
from nexus_core.types.layers import Layer, LayerConfig
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from nexus_core.errors import ConfigError
    from nexus_core.host.manager import Host
    from nexus_core.types.layers import LayerText, LoadedLayers
    from nexus_core.types.prompt import Section
    from nexus_core.types.settings import Settings

# None of these backtracks over more than a few dozen characters: a line may be a megabyte long.
_FENCE = re.compile(r"^[ \t>*+\d.)-]*+(`{3,}+(?=[^`]*+$)|~{3,}+)")
_CODE = re.compile(r"(?<!`)`++[^`]*+`++")
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|ust|ember|tember|ober)?\.?"
_DAY = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\.? {_MONTH},? |{_MONTH} (?:\d{{1,2}}(?:st|nd|rd|th)?,? )?)\d{{4}}"
_DATE = rf"(?:\d{{4}}[-/]\d\d[-/]\d\d|\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}|{_DAY})(?!\d|-\w)"
_IS = r"(?: is)?[ \t*_:=|\"'-]{1,8}(?:(?:on|at|the) )?"
_CHANGED = "(?:updated|modified|changed|edited|generated|refreshed|synced|checked|verified|reviewed)"
_DATED = re.compile(
    rf"(?<![A-Za-z0-9-])(?:(?:today(?:['\u2019]?s date)?|current[ _-](?:date(?:[ _-]?(?:and )?time)?|time|day)){_IS}"
    rf"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|{_DATE}|\d{{1,2}}:\d\d)"
    rf"|(?:last[ _-]?{_CHANGED}{_IS}|(?:generated|refreshed|synced) (?:on|at)[ *_:]{{1,4}}|as of ){_DATE})",
    re.IGNORECASE,
)
_COUNTER = re.compile(
    r"(?<![\w-])(?:(?:run|build|iteration|session) (?:no\. |number )?#\d{2,12}(?!\w)"
    # Without a number sign it counts only where the sentence pauses: "build 4711.", not "build 100 widgets".
    r"|build(?: number)?:? (?!(?:19|20)\d\d\b)\d{3,12}(?=\s*$|[)\],;:]|\.(?!\d)))",
    re.IGNORECASE,
)
_REQUIREMENT = re.compile(r"windows|macos|require|minimum|at least|or (?:later|newer|higher|above)", re.IGNORECASE)
_TIMESTAMP = re.compile(r"(?<![\w\"'=/.:+-])\d{4}-\d\d-\d\d(?:T|[ ,]{1,2})(?!00:00)[012]\d:[0-5]\d(?!\d)")
_FIXED = re.compile(
    r"^[ \t]*+(?:[-*+#|>]|\d{1,4}[.)])[-*+#|>_~\[( \t]*+\d{4}-\d\d-\d\d"  # an entry of a list of changes
    r"|\b(?:e\.g|example|such as|formats?\b|iso[ -]?8601|rfc[ -]?3339)",
    re.IGNORECASE,
)


def find_volatile_sections(first: Iterable[Section], second: Iterable[Section]) -> list[Finding]:
    """Return findings about plugin sections that keep a prompt from being cached.

    Args:
        first: The sections from one call of the plugins.
        second: The sections from another call.
    """
    before, after = ({_get_section_key(section): section.text for section in each} for each in (first, second))
    found = []
    for plugin, name in dict.fromkeys([*before, *after]):
        was, is_now = before.get((plugin, name)), after.get((plugin, name))
        dated = next(filter(None, (find_volatile_text(line) for _, line in iterate_prose(is_now or ""))), None)
        if was != is_now:
            message = f"plugin {plugin!r} returns a different section {name!r} on each call"
        elif dated is not None:
            message = f"plugin {plugin!r} has {dated[0]!r} in its section {name!r}, which changes from day to day"
        else:
            continue
        found.append(Finding("volatile-section", f"{message}, and each change invalidates the prompt cache"))
    return found


def iterate_prose(content: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that are not code, with inline code blanked: times in code are examples."""
    fence = ""
    for number, line in enumerate(content.split("\n"), start=1):
        marker = _FENCE.match(line)
        if fence and marker and marker[1].startswith(fence) and not line[marker.end() :].strip():
            fence = ""
        elif marker and not fence:
            fence = marker[1]
        elif line and not fence:
            yield number, _CODE.sub(lambda code: " " * len(code[0]), line)


def find_volatile_text(line: str) -> re.Match[str] | None:
    """Return the first date, counter or time in a line that will soon change, or None."""
    if found := _DATED.search(line):
        return found
    if (found := _COUNTER.search(line)) and not _REQUIREMENT.search(line):
        return found
    return None if _FIXED.search(line) else _TIMESTAMP.search(line)


def _get_section_key(section: Section) -> tuple[str, str]:
    return section.source.plugin if section.source else "", section.id


INVALID_SETTING_CODE, UNKNOWN_NAME_CODE = "invalid-setting", "unknown-name"
"""Codes of findings: a setting with an invalid value, and one that names something unknown."""

MAX_SETTING_FINDINGS = 100
"""Errors that become findings; the rest is counted."""

PROVIDER_SETTING, _SUMMARIZERS_SETTING = "provider.provider", "compaction.summarizers"
_BUILT_IN_SUMMARIZERS = ("given", "extractive")
"""Summarizers that need no plugin."""


def find_invalid_settings(settings: Settings, host: Host) -> list[Finding]:
    """Return a finding for every error for which settings are refused, file by file from the top."""
    errors = list_invalid_settings(
        settings, import_settings_models(host.setting_models()), find_unknown_names(settings, host)
    )
    found = [
        locate_finding(Finding(INVALID_SETTING_CODE, each.message), settings, each.pointer)
        for each in errors[:MAX_SETTING_FINDINGS]
    ]
    return (
        [*found, Finding(INVALID_SETTING_CODE, f"and {len(errors) - MAX_SETTING_FINDINGS:,} more")]
        if errors[MAX_SETTING_FINDINGS:]
        else found
    )


def find_setting_errors(settings: Settings, host: Host) -> Iterator[ConfigError]:
    """Yield the errors of `find_invalid_settings` as the exceptions that loading would raise."""
    return find_config_errors(
        settings, import_settings_models(host.setting_models()), find_unknown_names(settings, host)
    )


def find_missing_names(loaded: LoadedLayers, host: Host) -> Iterator[Finding]:
    """Yield findings for unknown plugins, summarizers and providers in settings that are used nevertheless.

    A name that may be right on another machine is a note; one that is similar to a known name is a finding.
    """
    settings = loaded.settings
    plugins = settings.get("plugins")
    for name in plugins if isinstance(plugins, dict) else ():
        if name != DISABLED_KEY:
            yield from _find_unknown_plugin(name, settings, host)
    provider = settings.get(PROVIDER_SETTING)
    if isinstance(provider, str):
        yield from _find_unknown_provider(provider, loaded, host)
    summarizers = settings.get(_SUMMARIZERS_SETTING)
    if isinstance(summarizers, list):
        yield from _find_unknown_summarizers(summarizers, loaded, host)


def find_ignored_settings(path: Path, settings: dict[str, object], loaded: LoadedLayers, host: Host) -> list[Finding]:
    """Return findings about user-only settings in a project's config.json, which have no effect.

    Args:
        path: The file.
        settings: Its content.
        loaded: The layers loaded beside it.
        host: The plugins, some of whose settings are user-only.
    """
    layer = Layer("local", path.parent, "local", root=path.parent.parent)
    own = [config for config in loaded.configs if config.layer is not None and config.layer.is_own]
    project = normalize_servers([LayerConfig(path, settings, layer=layer)], [])
    return enforce_policy([*own, *project], lambda _: "allowed", *list_plugin_guarded_settings(host)).findings


def locate_finding(finding: Finding, settings: Settings, pointer: str) -> Finding:
    """Return a finding about a setting with the position where it is set."""
    origins = settings.origins.get(pointer)
    if not origins:
        return finding
    return replace(finding, path=origins[0].path, line=origins[0].line, column=origins[0].column)


def _find_unknown_plugin(name: str, settings: Settings, host: Host) -> Iterator[Finding]:
    installed = {plugin.name: plugin for plugin in host.plugins}
    if name not in installed:
        nearest = did_you_mean(name, installed)
        message = f"plugins.{name}: no such plugin is installed{f'; {nearest}' if nearest else ''}"
    elif installed[name].status == "active" and name not in host.setting_models():
        nearest, message = "", f"plugins.{name}: the plugin declares no settings, so these are not validated"
    else:
        return
    finding = Finding(UNKNOWN_NAME_CODE, message, is_note=not nearest)
    yield locate_finding(finding, settings, pointer_to("/plugins", name))


def suggest_provider(name: str, loaded: LoadedLayers, host: Host) -> str:
    """Return a hint with the provider that an unknown name resembles, "" for a known name or one like no other.

    Many servers are compatible with a known API, so a name of its own may be right.
    """
    if name in BUILT_IN_NAMES:
        return ""
    known = {*get_default_registry(host).names, *host.providers(loaded)}
    return "" if name in known else did_you_mean(name, known)


def _find_unknown_provider(name: str, loaded: LoadedLayers, host: Host) -> Iterator[Finding]:
    if nearest := suggest_provider(name, loaded, host):
        finding = Finding(UNKNOWN_NAME_CODE, f"{PROVIDER_SETTING}: no API is called {name!r}; {nearest}")
        yield locate_finding(finding, loaded.settings, dotted_to_pointer(PROVIDER_SETTING))


def _find_unknown_summarizers(names: list[object], loaded: LoadedLayers, host: Host) -> Iterator[Finding]:
    known = {*_BUILT_IN_SUMMARIZERS, *host.summarizers(loaded)}
    for name in names:
        if isinstance(name, str) and name not in known:
            hint = did_you_mean(name, known) or f"known here: {', '.join(sorted(known))}"
            finding = Finding(UNKNOWN_NAME_CODE, f"{_SUMMARIZERS_SETTING}: no summarizer is called {name!r}; {hint}")
            yield locate_finding(finding, loaded.settings, dotted_to_pointer(_SUMMARIZERS_SETTING))


MIN_LARGE_TEXT_CHARACTERS = 20_000
MIN_NEAR_CAP_BYTES = MAX_FILE_BYTES * 9 // 10
MAX_FINDINGS_PER_FILE = 100  # of one kind in one file; the rest is counted
MIN_PARAGRAPH_CHARACTERS = 200  # shorter ones repeat by convention rather than by mistake: a heading, a command

_RULE_FILES = frozenset({"AGENTS.md", "CLAUDE.md", "GEMINI.md"})
# Reasons to skip a file that are not a problem.
_EXPECTED_REASONS = ("not there", "blank", "your own ", "same ", "the layer has instructions", "context.", "imported ")


def diagnose(loaded: LoadedLayers) -> list[Finding]:
    """Return the findings about what was loaded. Reads its files once more."""
    uses = _read_files(loaded)
    files = list({file.path.resolve(): file for file in reversed(uses)}.values())[::-1]
    case = _DiagnosisInput(loaded, uses, files)
    found = (check.find(case) for check in DIAGNOSTIC_CHECKS.values() if check.find)
    return list(dict.fromkeys(chain(loaded.findings, *found)))


class _InstructionFile(NamedTuple):
    """A file as it is on disk, and the layer text that contains it."""

    path: Path
    content: str
    text: LayerText


class _DiagnosisInput(NamedTuple):
    loaded: LoadedLayers
    uses: list[_InstructionFile]
    files: list[_InstructionFile]  # each once, with the first text that holds it


def _read_files(loaded: LoadedLayers) -> list[_InstructionFile]:
    """Return every text's own file and its imports. A file in two texts is listed twice."""
    # A loaded text contains its imports and is sanitized, so its lines are not the lines of a file.
    used = [(path, text) for text in loaded.texts for path in (text.path, *text.imports)]
    contents: dict[Path, str] = {}
    for path, text in used:
        with suppress(FileError):  # it was readable a moment ago; the next load reports it
            contents[path] = _read_content(path, text.layer)
    return [_InstructionFile(path, contents[path], text) for path, text in used if contents.get(path)]


def _read_content(path: Path, layer: Layer | None) -> str:
    text = read_text(path) if layer is None else LayerReader(layer).read_text(path)
    return text if isinstance(text, str) else ""


def _find_duplicate_files(case: _DiagnosisInput) -> Iterator[Finding]:
    for skipped in case.loaded.skipped:
        if skipped.reason.startswith("same "):
            yield Finding("duplicate-file", f"{skipped.reason}, which is used", skipped.path, skipped.line or 0)


def _find_ignored_files(case: _DiagnosisInput) -> Iterator[Finding]:
    for skipped in case.loaded.skipped:
        is_expected = skipped.reason.startswith(_EXPECTED_REASONS) or skipped.reason.endswith(" comes first")
        if not is_expected and not skipped.is_mistake:  # loading reports mistakes
            yield Finding("ignored-file", f"not used: {skipped.reason}", skipped.path, skipped.line or 0)


def _find_large_files(case: _DiagnosisInput) -> Iterator[Finding]:
    contents = {file.path: file.content for file in case.uses}
    total = 0
    codex = _read_codex_settings(case.loaded)
    cap = codex.cap or 0
    for text in case.loaded.texts:
        remarks = (
            [f"{len(text.text):,} characters in every prompt"] if len(text.text) > MIN_LARGE_TEXT_CHARACTERS else []
        )
        if text.path.name in _RULE_FILES:
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


def _read_codex_settings(loaded: LoadedLayers) -> AgentSettings:
    """Return the settings by which Codex would read the rules of the working directory."""
    cwd = next((layer.project for layer in loaded.layers if layer.scope == "local"), None)
    if cwd is None or not any(text.path.name in _RULE_FILES for text in loaded.texts):
        return AgentSettings((), cap=MAX_CODEX_BYTES)
    return read_codex_settings(cwd, find_agent_homes(cwd))


def _find_files_near_cap(case: _DiagnosisInput) -> Iterator[Finding]:
    for file in case.files:
        if (size := len(file.content.encode())) >= MIN_NEAR_CAP_BYTES:
            yield Finding(
                "near-cap", f"{size:,} bytes; with more than {MAX_FILE_BYTES:,} (1 MiB) it is refused", file.path
            )


def _find_forged_markers(case: _DiagnosisInput) -> Iterator[Finding]:
    for file in case.files:
        yield from _limit_findings(_find_forged_lines(file))


def _find_forged_lines(file: _InstructionFile) -> Iterator[Finding]:
    for number, line in find_forged_markers(file.content):
        message = f"{line.strip()[:80]!r} looks like a line that only Nexus writes; the model sees it with a backslash"
        yield Finding("forged-marker", message, file.path, number)


def _limit_findings(found: Iterator[Finding]) -> Iterator[Finding]:
    """Yield the first findings in a file, and one with the number of the rest."""
    yield from islice(found, MAX_FINDINGS_PER_FILE)
    last = next(found, None)
    if last is not None:
        yield replace(last, message=f"{1 + sum(1 for _ in found):,} more like these from here on", column=0)


def _find_duplicate_texts(case: _DiagnosisInput) -> Iterator[Finding]:
    holders: dict[Path, LayerText] = {}
    for file in case.uses:
        holder = holders.setdefault(file.path.resolve(), file.text)
        if holder is not file.text:
            message = f"in the prompt twice, through {holder.path} and through {file.text.path}"
            yield Finding("duplicate-text", message, file.path, 1)
    # One finding for each pair of files, however much they share.
    for (path, other_path), lines in _find_shared_paragraphs(case.files).items():
        line, other_line = lines[0]
        more = f", and {len(lines) - 1} more between these files" if len(lines) > 1 else ""
        yield Finding("duplicate-text", f"the same paragraph as {other_path}:{other_line}{more}", path, line)


def _find_shared_paragraphs(files: list[_InstructionFile]) -> dict[tuple[Path, Path], list[tuple[int, int]]]:
    """Return by each pair of files of different texts the lines at which shared paragraphs begin."""
    first: dict[str, tuple[_InstructionFile, int]] = {}
    shared: dict[tuple[Path, Path], list[tuple[int, int]]] = {}
    for file in files:
        for line, paragraph in _iterate_paragraphs(file.content):
            other, other_line = first.setdefault(paragraph, (file, line))
            if other.text is not file.text:
                shared.setdefault((file.path, other.path), []).append((line, other_line))
    return shared


def _iterate_paragraphs(content: str) -> Iterator[tuple[int, str]]:
    """Yield the longer paragraphs of a text with normalized white space and the number of the first line."""
    words: list[str] = []
    start = 0
    for number, line in enumerate([*content.split("\n"), ""], start=1):
        if found := line.split():
            start = start if words else number
            words += found
        else:
            paragraph, words = " ".join(words), []
            if len(paragraph) >= MIN_PARAGRAPH_CHARACTERS:
                yield start, paragraph


def _find_volatile_texts(case: _DiagnosisInput) -> Iterator[Finding]:
    for file in case.files:
        yield from _limit_findings(_find_volatile_lines(file))


def _find_volatile_lines(file: _InstructionFile) -> Iterator[Finding]:
    for number, line in iterate_prose(file.content):
        if found := find_volatile_text(line):
            message = f"{found[0]!r} changes from day to day, and each change invalidates the prompt cache"
            yield Finding("volatile-text", message, file.path, number, found.start() + 1)


class DiagnosticCheck(NamedTuple):
    """The meaning of a finding's code, and the function that finds it."""

    meaning: str
    find: Callable[[_DiagnosisInput], Iterator[Finding]] | None = None  # None if loading finds it


DIAGNOSTIC_CHECKS = {  # every code of the core
    "duplicate-file": DiagnosticCheck(
        "A file has the same content as another, and only that one is used", _find_duplicate_files
    ),
    "duplicate-text": DiagnosticCheck(
        "Two texts of the prompt contain the same paragraph or file", _find_duplicate_texts
    ),
    "forged-marker": DiagnosticCheck(
        "A line imitates the markup by which Nexus structures the prompt", _find_forged_markers
    ),
    "hidden-characters": DiagnosticCheck("A text contains invisible characters"),
    "home-in-repository": DiagnosticCheck(
        "Your own settings may have come with a repository, and wait for your approval"
    ),
    "ignored-file": DiagnosticCheck("A file, an import or an entry is not used, and why", _find_ignored_files),
    "large-file": DiagnosticCheck(
        "A text is a large part of every prompt, or more than other tools read", _find_large_files
    ),
    "looser-permission": DiagnosticCheck("A project tries to loosen what it may only tighten"),
    "near-cap": DiagnosticCheck("A file will soon be too large to be read", _find_files_near_cap),
    "outdated-approval": DiagnosticCheck("An approval was made before approvals covered code, so you are asked again"),
    "protected-setting": DiagnosticCheck("A project sets something that only you may set"),
    "trust-store": DiagnosticCheck("Your approvals cannot be relied upon, so nothing is trusted"),
    "uncovered-code": DiagnosticCheck("A program that you approved runs more code than an approval covers"),
    "unapproved": DiagnosticCheck("A setting would take effect, and waits for your approval"),
    "volatile-section": DiagnosticCheck(
        "A plugin's section changes on every call or contains the time, so the prompt cannot be cached"
    ),
    "volatile-text": DiagnosticCheck(
        "A date or a counter in a text keeps prompts from being cached", _find_volatile_texts
    ),
}
