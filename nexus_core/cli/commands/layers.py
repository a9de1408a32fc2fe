"""`nexus layers`: the layers of a directory, and with --all the places without one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.commands.show import agent_view_to_json
from nexus_core.cli.options import AgentFileOption, AgentOption, JsonOption, RequireTrustedOption, check_agent_files
from nexus_core.files.read import REASON_MISSING
from nexus_core.layers import OWN_PROFILE
from nexus_core.text.console import format_count

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.cli.context import CliContext
    from nexus_core.layers.agent_view import AgentView
    from nexus_core.types.layers import Layer, LayerText

app = typer.Typer()


@app.command(epilog="\b\nExamples:\n  nexus layers --all\n  nexus -C services/auth layers --json")
def layers(
    ctx: typer.Context,
    *,
    profile: AgentOption = OWN_PROFILE,
    file: AgentFileOption = None,
    everything: Annotated[bool, typer.Option("--all", help="List the places that are not there, too.")] = False,
    json: JsonOption = False,
    require_trusted: RequireTrustedOption = False,
) -> None:
    """List the layers that this directory is made of.

    Files that are there and contribute nothing are listed with the reason; --all adds the places that were searched and
    are not there, and JSON has both. Later layers extend earlier ones.
    """
    cli: CliContext = ctx.obj
    files = check_agent_files(profile, file)
    with cli.nexus() as nexus:
        context = nexus.context(profile=profile, files=files)
    loaded, view = context.loaded, context.agent_view
    cli.review(loaded, require_trusted=require_trusted)
    cli.note_outside_files(view)
    found = [(layer, loaded.texts_of(layer)) for layer in loaded.layers]
    if json:
        layers = [_layer_to_json(layer, texts, view) for layer, texts in found]
        skipped = [{**asdict(each), "path": str(each.path)} for each in loaded.skipped]
        cli.console.json(
            {"schema": 1, "layers": layers, "skipped": skipped, **(agent_view_to_json(view) if view else {})}
        )
        return
    rows = [
        (layer.name, str(_get_layer_path(layer)), _summarize_texts(layer, texts, view), layer.plugin)
        for layer, texts in found
    ]
    table = [("LAYER", "DIRECTORY", "TEXTS", "FOUND BY"), *rows]
    # The places of another agent are found by no plugin.
    cli.console.table([row[:3] for row in table] if view else table, styles=["bold"])
    places = [(each.reason, each.place) for each in loaded.skipped if everything or each.reason != REASON_MISSING]
    if places:
        cli.console.text("")
        cli.console.table([("SKIPPED BECAUSE", "PLACE"), *places], styles=["bold"])
    if missing := len(loaded.skipped) - len(places):
        cli.console.message(
            f"({format_count(missing, 'more place')} searched, not there; --all lists them)", style="dim"
        )
    if view is None:
        return
    if view.on_demand:
        cli.console.text("")
        cli.console.table([("ON DEMAND", "WHEN"), *((str(each.path), each.when) for each in view.on_demand)])
    cli.console.message(f"Not known: {view.profile.unknown}.", style="dim")


def _get_layer_path(layer: Layer) -> Path:
    # The project of the defaults is where the user's own directory would be.
    return layer.directory if layer.is_own else layer.project


def _layer_to_json(layer: Layer, texts: tuple[LayerText, ...], view: AgentView | None) -> dict[str, object]:
    return {
        "name": layer.name,
        "scope": layer.scope,
        "directory": str(layer.directory),
        "project": str(_get_layer_path(layer)),
        "plugin": layer.plugin,
        "texts": [_text_to_json(text, view) for text in texts],
    }


def _text_to_json(text: LayerText, view: AgentView | None) -> dict[str, object]:
    described = {"path": str(text.path), "purpose": text.purpose, "characters": len(text.text)}
    whole = _get_file_size(text, view)
    return {**described, "file_characters": whole} if whole else described


def _summarize_texts(layer: Layer, texts: tuple[LayerText, ...], view: AgentView | None) -> str:
    named = [(_format_text_path(layer, text.path), _format_size(text, view)) for text in texts]
    return ", ".join(f"{name} ({size} characters)" for name, size in named) or "-"


def _format_text_path(layer: Layer, path: Path) -> str:
    """Return the path of a text in its layer's directory, or its name if it is elsewhere."""
    for directory in (layer.directory, _get_layer_path(layer)):
        if path.is_relative_to(directory):
            return path.relative_to(directory).as_posix()
    return path.name


def _format_size(text: LayerText, view: AgentView | None) -> str:
    whole = _get_file_size(text, view)
    return f"{len(text.text):,} of {whole:,}" if whole else f"{len(text.text):,}"


def _get_file_size(text: LayerText, view: AgentView | None) -> int:
    """Return the characters of a file that a limit truncates, or 0 if none does."""
    return view.whole_sizes.get(text.path, 0) if view else 0
