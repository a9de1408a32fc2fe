"""What `--as` adds to a command: files that another agent loads on demand, its rules, and what is not known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from nexus_core.layers.profiles import ProfileView
    from nexus_core.text.console import Console

MAX_LISTED = 20
"""Files on demand that `nexus show` names; `nexus layers` and JSON have all."""


def profile_view_to_json(view: ProfileView) -> dict[str, object]:
    """Return what JSON output has besides texts."""
    return {
        "agent": view.profile.name,
        "on_demand": [
            {"path": str(each.path), "when": each.when, "paths": list(each.paths)} for each in view.on_demand
        ],
        "on_demand_complete": view.is_complete,
        "unknown": view.profile.unknown,
        "rules": [rule._asdict() for rule in view.profile.rules],
    }


def print_view_notes(console: Console, view: ProfileView) -> None:
    """Print what comes beside a prompt on standard error."""
    for each in view.on_demand[:MAX_LISTED]:
        console.message(visible_line(f"On demand: {each.path}, {each.when}"), style="dim")
    if len(view.on_demand) > MAX_LISTED:
        rest = f"On demand: {len(view.on_demand) - MAX_LISTED:,} more files; `nexus layers --as {view.agent}` has all"
        console.message(rest, style="dim")
    if not view.is_complete:
        console.message("On demand: not all directories were searched; there are too many", style="dim")
    console.message(f"Not known: {view.profile.unknown}.", style="dim")
