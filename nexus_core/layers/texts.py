"""Decides which texts of the layers are used, and makes them safe to use."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.text.fence import fence_documentation
from nexus_core.text.hidden import find_hidden, strip_hidden
from nexus_core.text.markers import neutralise
from nexus_core.values.layer import LayerText, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from nexus_core.values.finding import Finding
    from nexus_core.values.layer import Layer
    from nexus_core.values.settings import Settings

LONGEST_REMEMBERED = 64 * 1024
"""Of texts with at most this many characters, it is remembered of the last 64 whether they were plain."""


MAX_HIDDEN = 100
"""How many hidden characters of a text are reported one by one; the rest is counted."""


class Chosen(NamedTuple):
    """The texts that are used, those that are not and why, what to know about them, and those that only repeat."""

    texts: list[LayerText]
    skipped: list[Skipped]
    findings: list[Finding]
    repeated: list[LayerText]


class Known:
    """Texts that are used already, found again by their file, by a file they import, or by what they say."""

    def __init__(self, texts: Iterable[LayerText] = ()) -> None:
        self._seen: dict[object, LayerText] = {}
        for text in texts:
            self.add(text)

    def add(self, text: LayerText) -> LayerText | None:
        """Remember a text, unless it is known already; then the one that is known."""
        file, content = _identity(text.path), text.text.strip()
        twin = self._seen.get(file) or self._seen.get(content)
        if twin is None:
            self._seen |= dict.fromkeys((file, content, *map(_identity, text.imports)), text)
        return twin


def choose_texts(texts: Sequence[LayerText], settings: Settings) -> Chosen:
    """Apply the rules about personas and documentation, leave out what is there twice, and make the rest safe."""
    chosen = Chosen([], [], [], [])
    known = Known()
    wanted = _most_local_persona(texts, chosen.skipped)
    for text in _without_unwanted_documentation(wanted, settings, chosen.skipped):
        twin = known.add(text)
        if twin is None:
            chosen.texts.append(_made_safe(text, chosen.findings))
        else:
            chosen.skipped.append(_skip(text, _sameness(text, twin)))
            chosen.repeated.append(_made_safe(text, []))
    return chosen


def _sameness(text: LayerText, twin: LayerText) -> str:
    file = _identity(text.path)
    if file in map(_identity, twin.imports):
        return f"imported by {twin.path}"
    return f"same {'file' if file == _identity(twin.path) else 'text'} as {twin.path}"


def _identity(path: Path) -> object:
    """The same for every way to reach a file; comparing the names without links would take many times as long."""
    try:
        facts = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return path
    return facts.st_dev, facts.st_ino


def _most_local_persona(texts: Sequence[LayerText], skipped: list[Skipped]) -> Iterator[LayerText]:
    """Everything but the farther ones of several persona texts with one title: nobody has two souls."""
    last = {text.title: text for text in texts if text.kind == "persona"}
    for text in texts:
        if text.kind != "persona" or last[text.title] is text:
            yield text
        else:
            skipped.append(_skip(text, f"{last[text.title].path} comes first"))


def _without_unwanted_documentation(
    texts: Iterable[LayerText], settings: Settings, skipped: list[Skipped]
) -> Iterator[LayerText]:
    listed = settings.get("context.instruction_files")  # which says what is read, documentation or not
    always = listed is not None or settings.get("context.include_readme", default=False)
    fallback = settings.get("context.readme_as_fallback", default=True)
    by_layer: dict[Layer | None, list[LayerText]] = {}
    for text in texts:
        by_layer.setdefault(text.layer, []).append(text)
    for found in by_layer.values():
        # Within a layer, instructions come first whichever plugin found them.
        instructions = [text for text in found if text.purpose == "instructions"]
        documentation = [text for text in found if text.purpose != "instructions"]
        yield from instructions
        if always or (fallback and all(text.kind == "persona" for text in instructions)):
            yield from documentation
        elif fallback:
            reason = "the layer has instructions (context.include_readme is off)"
            skipped += [_skip(text, reason) for text in documentation]
        else:
            skipped += [_skip(text, "context.readme_as_fallback is off") for text in documentation]


def _made_safe(text: LayerText, findings: list[Finding]) -> LayerText:
    # Searching a text takes longer than reading it, and most are the same when they are read again.
    is_plain = _was_plain if len(text.text) <= LONGEST_REMEMBERED else _is_plain
    body = text.text if is_plain(text.text) else _cleaned(text, findings)
    if text.purpose == "documentation":
        body = fence_documentation(body)
    return text if body is text.text else replace(text, text=body)


def _is_plain(body: str) -> bool:
    """Whether a text hides nothing and forges nothing."""
    return not find_hidden(body) and neutralise(body) is body


_was_plain = lru_cache(maxsize=64)(_is_plain)


def _cleaned(text: LayerText, findings: list[Finding]) -> str:
    from nexus_core.layers.pieces import Pieces  # noqa: PLC0415 - most texts are plain
    from nexus_core.text.visible import visible_line  # noqa: PLC0415 - as above
    from nexus_core.values.finding import Finding  # noqa: PLC0415 - as above

    is_own = text.layer is not None and text.layer.is_own
    consequence = "kept, because the file is yours" if is_own else "removed"
    pieces = Pieces(text)
    found = find_hidden(text.text)
    for hidden in found[:MAX_HIDDEN]:
        message = f"invisible {hidden.name}: '{visible_line(hidden.text)}'; {consequence}"
        findings.append(Finding("hidden-characters", message, *pieces.origin(hidden.line, hidden.column)))
    if len(found) > MAX_HIDDEN:
        line, column = found[MAX_HIDDEN][:2]
        message = f"{len(found) - MAX_HIDDEN:,} more runs of invisible characters; {consequence}"
        findings.append(Finding("hidden-characters", message, *pieces.origin(line, column)))
    return neutralise(text.text if is_own else strip_hidden(text.text))


def _skip(text: LayerText, reason: str) -> Skipped:
    source = text.source
    return Skipped(text.path, reason, source.layer if source else "", source.plugin if source else "")
