"""Finds the plugins to check and checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.cli.shell import plugins_at_work
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.candidates import resolve_plugin_name
from nexus_core.host.implementation import describe
from nexus_core.host.installed import installed_candidates
from nexus_core.testing.check import check_plugin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nexus_core.host.candidates import Candidate


def check_installed(cwd: Path, names: Sequence[str], model: str = "") -> dict[str, list[str]]:
    """Return the findings for each plugin.

    Args:
        cwd: The working directory.
        names: The plugins; without names, those that do not ship with Nexus.
        model: A model to try token counters with; "" to look for one.
    """
    installed = installed_candidates(outside=cwd)
    owners: dict[str, Candidate] = {}
    refused: dict[str, list[str]] = {}
    for candidate in (*BUNDLED, *installed):
        owner = owners.setdefault(candidate.name, candidate)
        if owner is not candidate:
            taken = f"{candidate.label} cannot load: the name is taken by {owner.label}"
            refused.setdefault(candidate.name, []).append(taken)
    chosen = [resolve_plugin_name(name, owners) for name in names] or sorted(
        {candidate.name for candidate in installed}
    )
    return {name: [*_check(owners[name], model), *refused.get(name, [])] for name in chosen}


def _check(candidate: Candidate, model: str) -> list[str]:
    with plugins_at_work():
        try:
            plugin = candidate.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a stranger's module may do anything when imported
            return [f"it {describe(error)} while it was loaded"]
        try:
            return check_plugin(plugin, model=model)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - or when somebody looks at it
            return [f"it {describe(error)} while it was checked"]
