"""Decides which texts of the layers are used, and makes them safe to use."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.text.fence import fence_documentation
from nexus_core.text.hidden import find_hidden, strip_hidden
from nexus_core.text.markers import neutralise
from nexus_core.values.layer import LayerText, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nexus_core.values.finding import Finding
    from nexus_core.values.settings import Settings


class Chosen(NamedTuple):
    """The texts that are used, those that are not and why, and what to know about them."""

    texts: list[LayerText]
    skipped: list[Skipped]
    findings: list[Finding]


def choose_texts(texts: Iterable[LayerText], settings: Settings) -> Chosen:
    """Apply the rules about documentation, leave out what is there twice, and make the rest safe."""
    chosen = Chosen([], [], [])
    seen: dict[object, LayerText] = {}
    for text in _without_unwanted_documentation(list(texts), settings, chosen.skipped):
        file, content = _identity(text.path), text.text.strip()
        twin = seen.get(file) or seen.get(content)
        if twin is not None:
            chosen.skipped.append(_skip(text, _sameness(text, twin)))
            continue
        seen |= dict.fromkeys((file, content, *map(_identity, text.imports)), text)
        chosen.texts.append(_made_safe(text, chosen.findings))
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


def _without_unwanted_documentation(
    texts: list[LayerText], settings: Settings, skipped: list[Skipped]
) -> Iterable[LayerText]:
    always = settings.get("context.include_readme", default=False)
    fallback = settings.get("context.readme_as_fallback", default=True)
    instructed = {text.layer for text in texts if text.purpose == "instructions"}
    # Within a layer, instructions come first whichever plugin found them.
    order = {layer: number for number, layer in enumerate(dict.fromkeys(text.layer for text in texts))}
    for text in sorted(texts, key=lambda text: (order[text.layer], text.purpose != "instructions")):
        if text.purpose == "instructions" or always or (fallback and text.layer not in instructed):
            yield text
        elif fallback:
            skipped.append(_skip(text, "the layer has instructions (context.include_readme is off)"))
        else:
            skipped.append(_skip(text, "context.readme_as_fallback is off"))


def _made_safe(text: LayerText, findings: list[Finding]) -> LayerText:
    body = text.text
    is_own = text.layer is not None and text.layer.is_own
    for hidden in find_hidden(body):
        consequence = "left in, because the file is your own" if is_own else "taken out"
        message = f"{hidden.name} that no reader sees: {hidden.text!r}; {consequence}"
        from nexus_core.values.finding import Finding  # noqa: PLC0415 - most texts hide nothing

        findings.append(Finding("hidden-characters", message, text.path, hidden.line, hidden.column))
    if not is_own:
        body = strip_hidden(body)
    body = neutralise(body)
    if text.purpose == "documentation":
        body = fence_documentation(body)
    return text if body is text.text else replace(text, text=body)


def _skip(text: LayerText, reason: str) -> Skipped:
    source = text.source
    return Skipped(text.path, reason, source.layer if source else "", source.plugin if source else "")
