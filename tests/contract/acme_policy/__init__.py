"""The rules of a company, from a place and in files of its own: each hook answered as no bundled plugin answers it."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from nexus_core import Finding, Message, Section, Tool, hookimpl
from nexus_core.plugin import (
    AgentRole,
    Command,
    InitFile,
    Layer,
    LayerConfig,
    LayerText,
    MergePolicy,
    PluginSettings,
    Renderer,
    SkippedFile,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core import AssembledContext, Request, Usage
    from nexus_core.plugin import InitScope, LoadedLayers

COSTS: dict[str, dict[str, int]] = {}
"""By session, how often a model was asked and what that cost."""
TEXT = "POLICY.md"
SETTINGS = "policy.toml"


@hookimpl
def nexus_commands() -> list[Command]:
    return [Command("policy", "Print who may decide.", "acme_policy._cli:app")]


@hookimpl
def nexus_init_files(scope: InitScope) -> list[InitFile]:
    return [InitFile(TEXT, "Ask before you push.\n")] if scope == "local" else []


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    return [PluginSettings("acme_policy._settings:PolicySettings", active=("endpoint",))]


@hookimpl
def nexus_merge_policies() -> list[MergePolicy]:
    return [MergePolicy("plugins.policy.teams", "unique")]


@hookimpl
def nexus_layers(request: Request) -> list[Layer | SkippedFile]:
    place = request.home.parent / "policy"
    return [Layer("global:policy", place, "global") if place.is_dir() else SkippedFile(place, "no policy here")]


@hookimpl
def nexus_layer_config(layer: Layer) -> list[LayerConfig | SkippedFile]:
    path = layer.directory / SETTINGS
    text = read_text(path)
    return [SkippedFile(path, "not there") if text is None else LayerConfig(path, tomllib.loads(text))]


@hookimpl
def nexus_layer_texts(layer: Layer) -> list[LayerText | SkippedFile]:
    path = layer.directory / TEXT
    text = read_text(path)
    return [LayerText(path, text, title="Company Policy") if text else SkippedFile(path, "not there")]


@hookimpl
def nexus_static_sections(loaded: LoadedLayers) -> list[Section]:
    teams = loaded.settings.get("plugins.policy.teams", [])
    return [Section("teams", title="Teams", text=", ".join(map(str, teams)))] if isinstance(teams, list) else []


@hookimpl
def nexus_current_sections(request: Request) -> list[Section]:
    text = f"{request.source} asks through {request.platform}" if request.source else ""
    return [Section("desk", title="Service Desk", text=text)]


@hookimpl
def nexus_tools(request: Request) -> list[Tool]:
    return [Tool(name="ask_legal", description=f"Ask whether a {request.role} may.", parameters={"type": "object"})]


@hookimpl
def nexus_renderers() -> list[Renderer]:
    return [Renderer(name="memo", system=_as_memo, current=_as_said)]


@hookimpl
def nexus_roles() -> list[AgentRole]:
    return [AgentRole(name="auditor", scopes=("general",), sees_platform=True)]


def _as_memo(sections: Sequence[Section]) -> str:
    return "MEMO\n" + "\n".join(section.text.strip() for section in sections)


def _as_said(request: Request, sections: Sequence[Section], now: int) -> Message:  # noqa: ARG001 - a memo has no clock
    lines = [section.text for section in sections if section.text]
    return Message("user", "\n".join([*lines, request.message.content if request.message else ""]))


@hookimpl
def nexus_call_assembled(context: AssembledContext) -> None:
    _count(context.session_label, calls=1)


@hookimpl
def nexus_step_recorded(session: str, usage: Usage | None) -> None:
    if usage is not None:
        _count(session, tokens=usage.total_tokens)


def _count(session: str, **more: int) -> None:
    costs = COSTS.setdefault(session, {"calls": 0, "tokens": 0})
    for name, number in more.items():
        costs[name] += number


@hookimpl
def nexus_diagnose(loaded: LoadedLayers) -> list[Finding]:
    has_policy = any(text.path.name == TEXT for text in loaded.texts)
    return [] if has_policy else [Finding("no-policy", "nobody says what is allowed here")]
