"""Layers found by plugins, with settings merged and texts turned into sections."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nexus_core.config.merge import merge_configs
from nexus_core.config.nexus3 import strip_nexus3_settings
from nexus_core.config.pointers import SERVERS, dotted_to_pointer
from nexus_core.config.renamed import rename_settings
from nexus_core.errors import FileError, UnknownNameError
from nexus_core.files.places import find_home_repository, find_workspace
from nexus_core.layers.mcp import find_servers, normalize_servers_if_any
from nexus_core.layers.policy import SETTINGS_WITHOUT_PLUGIN_MERGE, enforce_policy, list_plugin_guarded_settings
from nexus_core.rendering import LABELLED_RENDERER
from nexus_core.text.safety import fence_documentation, find_hidden, neutralize, one_line, strip_hidden, visible_line
from nexus_core.types.layers import LayerText, LoadedLayers, SkippedFile
from nexus_core.types.plugins import Finding
from nexus_core.types.prompt import Section, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from nexus_core.config.validate import InvalidSetting
    from nexus_core.host.manager import ContributionRegistry, Host
    from nexus_core.trust.store import TrustStore
    from nexus_core.types.layers import Layer, LayerScope
    from nexus_core.types.mcp import ActiveSetting, TrustDecision
    from nexus_core.types.prompt import Renderer
    from nexus_core.types.request import Request
    from nexus_core.types.settings import Settings

T = TypeVar("T")


def load_layers(host: Host, request: Request, *, unreadable: list[FileError] | None = None) -> LoadedLayers:
    """Load what the plugins find for a request. Nothing is cached, so a second call sees changed files.

    Args:
        host: The plugins.
        request: The directory, and how it is loaded.
        unreadable: Collects the errors of texts that cannot be read; the layer of such a text has no texts. None to
            raise them.
    """
    layers, skipped = host.layers(request)
    decisions = _ApprovalDecisions(request)
    home = decisions.judge_home()
    if home is not None and home.decision != "allowed":
        layers = [replace(layer, from_repository=True) if layer.scope == "global" else layer for layer in layers]
    found = _collect_from_layers(partial(host.layer_config, request=request), layers, skipped)
    found, foreign = strip_nexus3_settings(found)
    found, renamed = rename_settings(found)
    configs = normalize_servers_if_any(found, skipped, lenient=request.lenient)
    guarded = enforce_policy(configs, decisions.decide, *list_plugin_guarded_settings(host))
    settings = merge_configs(guarded.configs, host.merge_policies(SETTINGS_WITHOUT_PLUGIN_MERGE))
    read_texts = partial(_read_texts, host, settings=settings, unreadable=unreadable)
    chosen = choose_texts(_collect_from_layers(read_texts, layers, skipped), settings)
    return LoadedLayers(
        layers=tuple(layers),
        texts=tuple(chosen.texts),
        configs=tuple(guarded.configs),
        settings=settings,
        servers=find_servers(settings, guarded.configs, guarded.active),
        active=(*([home] if home is not None else ()), *map(decisions.with_code_digests, guarded.active)),
        skipped=(*skipped, *chosen.skipped),
        findings=(
            *foreign,
            *renamed,
            *decisions.findings,
            *guarded.findings,
            *chosen.findings,
            *_find_ignored_fields(skipped),
        ),
        repeated=tuple(chosen.repeated),
    )


def _read_texts(
    host: Host, layer: Layer, *, settings: Settings, unreadable: list[FileError] | None
) -> tuple[list[LayerText], list[SkippedFile]]:
    try:
        return host.layer_texts(layer, settings)
    except FileError as error:
        if unreadable is None:
            raise
        unreadable.append(error)
        return [], []


def _find_ignored_fields(skipped: Iterable[SkippedFile]) -> Iterator[Finding]:
    """Yield a finding for every part of a file that has no effect although its author expects one."""
    mistakes = [each for each in skipped if each.is_mistake]
    if mistakes:
        for each in mistakes:
            yield Finding("ignored-field", f"not used: {each.reason}", each.path, each.line or 0)


class _ApprovalDecisions:
    """The user's approval decisions. The store is opened only when something needs approval."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.findings: list[Finding] = []

    @cached_property
    def _store(self) -> TrustStore:
        from nexus_core.trust.store import TrustStore

        store = TrustStore(self._request.home, workspace=find_workspace(self._request.cwd))
        if store.problem:
            self.findings.append(Finding("trust-store", store.problem))
        return store

    def decide(self, part: ActiveSetting) -> TrustDecision:
        """Return the user's decision. The code directories of servers are compared only before a start."""
        decision = self._store.decide(part, is_quick=part.pointer.startswith(f"/{SERVERS}/"))
        if decision == "changed":
            self._find_outdated(part)
        return decision

    def with_code_digests(self, part: ActiveSetting) -> ActiveSetting:
        """Return a part with the digests of its code, if all of it was read, so that a later change can be detected."""
        if part.decision != "allowed" or part.pointer.startswith(f"/{SERVERS}/"):
            return part
        return replace(part, content=self._store.approved_content(part) or part.content)

    def judge_home(self) -> ActiveSetting | None:
        """Return the user's own settings with the decision about them, if they may have come with a repository."""
        repository = find_home_repository(self._request.home)
        if repository is None:
            return None
        from nexus_core.trust.store import find_home_setting

        part = find_home_setting(self._request.home)
        if part is None:
            return None
        part = replace(part, decision=self._store.decide(part))
        if part.decision != "allowed":
            changed = "; they have changed since you approved them" if part.decision == "changed" else ""
            message = (
                f"your home directory lies in the repository {repository}, so the settings in {part.path} may have "
                f"come with it, and count as those of a project{changed}; if they are yours, `nexus trust allow home` "
                "approves them as they are now, or set NEXUS_HOME to a directory outside the repository"
            )
            self.findings.append(Finding("home-in-repository", message, part.path))
        return part

    def _find_outdated(self, part: ActiveSetting) -> None:
        """Add a finding for an approval that was made before approvals covered code."""
        from nexus_core.trust.coverage import predates_code_coverage

        if predates_code_coverage(self._store.approved_content(part) or "", part.content):
            message = (
                f"you approved {one_line(part.pointer)} before approvals covered all the code that a program of the "
                "project runs, so you are asked once more; `nexus trust allow` shows what is covered, and decides"
            )
            self.findings.append(Finding("outdated-approval", message, part.path, part.line))


def _collect_from_layers(
    ask: Callable[[Layer], tuple[list[T], list[SkippedFile]]], layers: Iterable[Layer], skipped: list[SkippedFile]
) -> list[T]:
    """Return what is found in all layers, and add the skipped files to `skipped`."""
    gathered: list[T] = []
    for layer in layers:
        found, skipped_here = ask(layer)
        gathered += found
        skipped += skipped_here
    return gathered


TRUNCATION_SETTINGS = ("truncation.strategy", "context.truncation_strategy")
RENDERER_SETTING = "renderer"


def find_unknown_names(settings: Settings, host: Host) -> Iterator[InvalidSetting]:
    """Yield an error for each setting with an unknown name. Plugins are called only if such a setting exists."""
    for key in (*TRUNCATION_SETTINGS, RENDERER_SETTING):
        name = settings.get(key)
        if not isinstance(name, str):
            continue
        try:
            _get_renderers(host).get(name) if key == RENDERER_SETTING else host.truncations().get(name)
        except UnknownNameError as error:
            from nexus_core.config.validate import InvalidSetting

            yield InvalidSetting(dotted_to_pointer(key), f"{key}: {error.what}; {error.hint}")


def _get_renderers(host: Host) -> ContributionRegistry[Renderer]:
    return host.renderers([LABELLED_RENDERER])


MAX_REMEMBERED_CHARACTERS = 64 * 1024
"""For texts up to this size, the last 64 results of the check for plain text are cached."""


MAX_HIDDEN_FINDINGS = 100
"""Hidden characters of a text that are reported one by one; the rest is counted."""


class ChosenTexts(NamedTuple):
    """Texts that are used, skipped files with reasons, findings, and texts that only repeat others."""

    texts: list[LayerText]
    skipped: list[SkippedFile]
    findings: list[Finding]
    repeated: list[LayerText]


class SeenTexts:
    """Texts in use, found again by their file, by a file they import, or by their content."""

    def __init__(self, texts: Iterable[LayerText] = ()) -> None:
        self._seen: dict[object, LayerText] = {}
        for text in texts:
            self.add(text)

    def add(self, text: LayerText) -> LayerText | None:
        """Add a text unless it is known already. Return the known one, or None."""
        file, content = _get_file_identity(text.path), text.text.strip()
        twin = self._seen.get(file) or self._seen.get(content)
        if twin is None:
            self._seen |= dict.fromkeys((file, content, *map(_get_file_identity, text.imports)), text)
        return twin


def choose_texts(texts: Sequence[LayerText], settings: Settings) -> ChosenTexts:
    """Apply the rules for personas and documentation, drop duplicates, and sanitize the rest."""
    chosen = ChosenTexts([], [], [], [])
    known = SeenTexts()
    wanted = _drop_shadowed_personas(texts, chosen.skipped)
    for text in _drop_unwanted_documentation(wanted, settings, chosen.skipped):
        twin = known.add(text)
        if twin is None:
            chosen.texts.append(_make_safe(text, chosen.findings))
        else:
            chosen.skipped.append(_build_skipped(text, _describe_duplicate(text, twin)))
            chosen.repeated.append(_make_safe(text, []))
    return chosen


def _describe_duplicate(text: LayerText, twin: LayerText) -> str:
    file = _get_file_identity(text.path)
    if file in map(_get_file_identity, twin.imports):
        return f"imported by {twin.path}"
    return f"same {'file' if file == _get_file_identity(twin.path) else 'text'} as {twin.path}"


def _get_file_identity(path: Path) -> object:
    """Return the same value for every path to a file. Resolving links would take many times as long."""
    try:
        status = os.stat(path)  # noqa: PTH116 - many times faster than a Path
    except OSError:
        return path
    return status.st_dev, status.st_ino


def _drop_shadowed_personas(texts: Sequence[LayerText], skipped: list[SkippedFile]) -> Iterator[LayerText]:
    """Yield all texts except the farther ones of several persona texts with one title: an agent has one persona."""
    last = {text.title: text for text in texts if text.kind == "persona"}
    for text in texts:
        if text.kind != "persona" or last[text.title] is text:
            yield text
        else:
            skipped.append(_build_skipped(text, f"{last[text.title].path} comes first"))


def _drop_unwanted_documentation(
    texts: Iterable[LayerText], settings: Settings, skipped: list[SkippedFile]
) -> Iterator[LayerText]:
    listed = settings.get("context.instruction_files")  # an explicit list, documentation or not
    always = listed is not None or settings.get("context.include_readme", default=False)
    fallback = settings.get("context.readme_as_fallback", default=True)
    by_layer: dict[Layer | None, list[LayerText]] = {}
    for text in texts:
        by_layer.setdefault(text.layer, []).append(text)
    for found in by_layer.values():
        # Within a layer, instructions come first, regardless of the plugin that found them.
        instructions = [text for text in found if text.purpose == "instructions"]
        documentation = [text for text in found if text.purpose != "instructions"]
        yield from instructions
        if always or (fallback and all(text.kind == "persona" for text in instructions)):
            yield from documentation
        elif fallback:
            reason = "the layer has instructions (context.include_readme is off)"
            skipped += [_build_skipped(text, reason) for text in documentation]
        else:
            skipped += [_build_skipped(text, "context.readme_as_fallback is off") for text in documentation]


def _make_safe(text: LayerText, findings: list[Finding]) -> LayerText:
    # Scanning a text takes longer than reading it, and most texts are unchanged when they are read again.
    is_plain = _is_plain_cached if len(text.text) <= MAX_REMEMBERED_CHARACTERS else _is_plain
    body = text.text if is_plain(text.text) else _clean_and_report(text, findings)
    if text.purpose == "documentation":
        body = fence_documentation(body)
    return text if body is text.text else replace(text, text=body)


def _is_plain(body: str) -> bool:
    """Return True if a text contains neither hidden characters nor markup that imitates Nexus."""
    return not find_hidden(body) and neutralize(body) is body


_is_plain_cached = lru_cache(maxsize=64)(_is_plain)


def _clean_and_report(text: LayerText, findings: list[Finding]) -> str:
    is_own = text.layer is not None and text.layer.is_own
    consequence = "kept, because the file is yours" if is_own else "removed"
    pieces = TextOrigins(text)
    found = find_hidden(text.text)
    for hidden in found[:MAX_HIDDEN_FINDINGS]:
        message = f"invisible {hidden.name}: '{visible_line(hidden.text)}'; {consequence}"
        findings.append(Finding("hidden-characters", message, *pieces.origin(hidden.line, hidden.column)))
    if len(found) > MAX_HIDDEN_FINDINGS:
        line, column = found[MAX_HIDDEN_FINDINGS][:2]
        message = f"{len(found) - MAX_HIDDEN_FINDINGS:,} more runs of invisible characters; {consequence}"
        findings.append(Finding("hidden-characters", message, *pieces.origin(line, column)))
    return neutralize(text.text if is_own else strip_hidden(text.text))


def _build_skipped(text: LayerText, reason: str) -> SkippedFile:
    source = text.source
    return SkippedFile(text.path, reason, source.layer if source else "", source.plugin if source else "")


class TextOrigins:
    """Maps positions in a text to the files it was built from.

    Args:
        text: A layer text; its `pieces` are empty if it is one file.
    """

    def __init__(self, text: LayerText) -> None:
        self._text = text

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(newline.end() for newline in re.finditer("\n", self._text.text))]

    def origin(self, line: int, column: int) -> tuple[Path, int, int]:
        """Return the file, line and column for a line and column of the text, all counted from 1."""
        offset = self._lines[line - 1] + column - 1 if self._text.pieces else 0
        at = bisect_right(self._text.pieces, offset, key=lambda piece: piece.start) - 1
        if at < 0:
            return self._text.path, line, column
        piece = self._text.pieces[at]
        lines_before = line - bisect_right(self._lines, piece.start)
        if lines_before:
            return piece.path, piece.line + lines_before, column
        return piece.path, piece.line, piece.column + offset - piece.start


FIRST_LAYER_ORDER = 100
FIRST_TITLED_ORDER = 200
LAST_LAYER_ORDER = 299
FIRST_PERSONA_ORDER = 300
LAST_PERSONA_ORDER = 399
PERMISSIONS_SECTION = "permissions"
ACTIVE_CONFIGURATION_SECTION = "active-configuration"
ACTIVE_CONFIGURATION_ORDER = 700

_TITLES_BY_SCOPE: dict[LayerScope, str] = {
    "defaults": "Default Configuration",
    "global": "Global Configuration",
    "ancestor": "Ancestor Configuration",
    "local": "Project Configuration",
}


def build_layer_sections(loaded: LoadedLayers) -> tuple[Section, ...]:
    """Return one section for each layer text, in the order of the layers. Blank texts contribute nothing.

    Texts with a title of their own follow the main texts of their layer.
    """
    texts = [text for text in loaded.texts if text.text.strip()]
    return tuple(
        Section(
            id=f"layer-{index:05}",
            title=text.title or _build_section_title(text.layer),
            text=text.text,
            kind=text.kind,
            order=_get_section_order(text, index),
            source=text.source,
            data=text.data,
        )
        for index, text in enumerate(texts)
    )


def _get_section_order(text: LayerText, index: int) -> int:
    if text.kind == "persona":
        return min(FIRST_PERSONA_ORDER + index, LAST_PERSONA_ORDER)
    return min((FIRST_TITLED_ORDER if text.title else FIRST_LAYER_ORDER) + index, LAST_LAYER_ORDER)


def _build_section_title(layer: Layer | None) -> str:
    if layer is None:
        return "Configuration"
    # `global` needs no suffix; `ancestor:company` and `global:policy` name which one.
    own_name = layer.name.partition(":")[2] or layer.name
    return _TITLES_BY_SCOPE[layer.scope] + (f" ({own_name})" if own_name != layer.scope else "")


def build_active_configuration(settings: Settings, window: int | None) -> Section:
    """Return the section `Active Configuration`: the model, its window if known, and the permission level."""
    model = settings.model_id()
    lines = [
        f"Model: {_to_one_line(model)}" if model else "",
        f"Context window: {window} tokens" if window else "",
        f"Permission level: {settings.get('permissions.level', 'trusted')}",
    ]
    return Section(
        ACTIVE_CONFIGURATION_SECTION,
        title="Active Configuration",
        text="\n".join(filter(None, lines)),
        order=ACTIVE_CONFIGURATION_ORDER,
        source=Source(uri="settings:"),
    )


def build_permissions_section(settings: Settings, granted: Iterable[str] = ()) -> Section:
    """Return the section `Agent Permissions` of a session, whose prompt has no `Active Configuration`.

    Args:
        settings: The settings, of which `permissions` is rendered.
        granted: Descriptions of what the caller lets the agent do.
    """
    level = settings.get("permissions.level", "trusted")
    named = {
        "Allowed tools": settings.get("permissions.tools.allow"),
        "Denied tools": settings.get("permissions.tools.deny") or None,
        "Granted": _strip_full_stops(list(granted)) or None,
    }
    lines = [f"Permission level: {level} (from loosest to tightest: yolo, trusted, sandboxed)"]
    lines += [
        f"{title}: {', '.join(map(_to_one_line, names)) or 'none'}"
        for title, names in named.items()
        if isinstance(names, list)
    ]
    return Section(
        PERMISSIONS_SECTION,
        title="Agent Permissions",
        text="\n".join(lines),
        kind="persona",
        order=LAST_PERSONA_ORDER,
        source=Source(uri="settings:"),
    )


def _strip_full_stops(sentences: list[str]) -> list[str]:
    """Return sentences without full stops, to be joined with commas. A single one stays unchanged."""
    if len(sentences) == 1:
        return sentences
    return [each if each.rstrip().endswith("..") else each.rstrip().removesuffix(".") for each in sentences]


def _to_one_line(value: object) -> str:
    # A project chooses the model's name; it must not start a heading or contain invisible characters.
    return visible_line(strip_hidden(str(value)))
