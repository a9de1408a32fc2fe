"""`nexus layers`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from nexus_core.cli.options import Json, Profile, RequireTrusted  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.show import profile_view_to_json
from nexus_core.layers.loader import OWN_PROFILE

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.cli.shell import CommandShell
    from nexus_core.layers.profiles import ProfileView
    from nexus_core.values.layer import Layer, LayerText

app = typer.Typer()


@app.command(epilog="\b\nExamples:\n  nexus layers\n  nexus -C services/auth layers --json")
def layers(
    ctx: typer.Context, profile: Profile = OWN_PROFILE, json: Json = False, require_trusted: RequireTrusted = False
) -> None:
    """List the layers of a directory, and every place that contributes nothing; later layers extend earlier ones."""
    shell: CommandShell = ctx.obj
    with shell.nexus() as nexus:
        context = nexus.context(profile=profile)
    loaded, view = context.loaded, context.agent_view
    shell.review(loaded, require_trusted=require_trusted)
    found = [(layer, loaded.texts_of(layer)) for layer in loaded.layers]
    if json:
        layers = [_describe(layer, texts, view) for layer, texts in found]
        skipped = [{**asdict(each), "path": str(each.path)} for each in loaded.skipped]
        shell.console.json(
            {"schema": 1, "layers": layers, "skipped": skipped, **(profile_view_to_json(view) if view else {})}
        )
        return
    rows = [(layer.name, str(_place(layer)), _summary(texts, view), layer.plugin) for layer, texts in found]
    table = [("LAYER", "DIRECTORY", "TEXTS", "FOUND BY"), *rows]
    # The places of another agent are found by no plugin.
    shell.console.table([row[:3] for row in table] if view else table, styles=["bold"])
    shell.console.text("")
    places = [(each.reason, each.place) for each in loaded.skipped]
    shell.console.table([("SKIPPED BECAUSE", "PLACE"), *places], styles=["bold"])
    if view is None:
        return
    if view.on_demand:
        shell.console.text("")
        shell.console.table([("ON DEMAND", "WHEN"), *((str(each.path), each.when) for each in view.on_demand)])
    shell.console.message(f"Not known: {view.profile.unknown}.", style="dim")


def _place(layer: Layer) -> Path:
    # The project of the defaults is where the user's own directory would be.
    return layer.directory if layer.is_own else layer.project


def _describe(layer: Layer, texts: tuple[LayerText, ...], view: ProfileView | None) -> dict[str, object]:
    return {
        "name": layer.name,
        "scope": layer.scope,
        "directory": str(layer.directory),
        "project": str(_place(layer)),
        "plugin": layer.plugin,
        "texts": [_describe_text(text, view) for text in texts],
    }


def _describe_text(text: LayerText, view: ProfileView | None) -> dict[str, object]:
    described = {"path": str(text.path), "purpose": text.purpose, "characters": len(text.text)}
    whole = _whole_size(text, view)
    return {**described, "file_characters": whole} if whole else described


def _summary(texts: tuple[LayerText, ...], view: ProfileView | None) -> str:
    return ", ".join(f"{text.path.name} ({_size(text, view)} characters)" for text in texts) or "-"


def _size(text: LayerText, view: ProfileView | None) -> str:
    whole = _whole_size(text, view)
    return f"{len(text.text):,} of {whole:,}" if whole else f"{len(text.text):,}"


def _whole_size(text: LayerText, view: ProfileView | None) -> int:
    """Return how many characters the file has of which a limit cuts off some; 0 if none does."""
    return view.whole_sizes.get(text.path, 0) if view else 0
