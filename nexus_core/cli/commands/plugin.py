"""`nexus plugin`: list, inspect, test and create plugins."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.context import EXIT_CONFIGURATION, EXIT_FINDINGS, redirect_plugin_output
from nexus_core.cli.options import (
    DryRunOption,
    JsonOption,
)
from nexus_core.errors import NexusError, UnknownNameError
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.calls import HookSpec, describe_exception, get_hooks
from nexus_core.host.discovery import find_installed_candidates, read_policy, resolve_plugin_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.host.discovery import PluginCandidate
    from nexus_core.host.manager import PluginReplacement
    from nexus_core.nexus import Nexus
    from nexus_core.text.console import ConsoleStyle
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.plugins import PluginInfo, PluginStatus

app = typer.Typer(
    help="List, inspect, test and create plugins.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus plugin list\n  nexus plugin new git-status",
)

_STATUS_STYLES: dict[PluginStatus, ConsoleStyle] = {
    "active": "plain",
    "disabled": "dim",
    "failed": "red",
    "needs-extra": "yellow",
}


def _list_plugin_names(ctx: typer.Context) -> list[str]:
    with ctx.find_root().obj.nexus() as nexus:
        return [plugin.name for plugin in nexus.plugins]


def _list_hook_names() -> list[str]:
    return list(get_hooks())


PluginArgument = Annotated[str, typer.Argument(metavar="NAME", help="A plugin.", autocompletion=_list_plugin_names)]
OptionalPluginsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Plugins.", autocompletion=_list_plugin_names)
]
OptionalHookArgument = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="A hook.", autocompletion=_list_hook_names)
]


@app.command("list", epilog="\b\nExamples:\n  nexus plugin list\n  nexus plugin list --json")
def list_plugins(ctx: typer.Context, json: JsonOption = False) -> None:
    """List all plugins, loaded or not."""
    cli: CliContext = ctx.obj
    with cli.nexus(strict=False) as nexus:  # the list must show a broken plugin, not fail on it
        plugins, replaced = nexus.plugins, find_replacements(nexus)
    if json:
        rows = [{**asdict(plugin), "replaces": _replaced_to_json(plugin, replaced)} for plugin in plugins]
        cli.console.json({"schema": 1, "plugins": rows})
    else:
        table = [("NAME", "STATUS", "FROM", "HOOKS"), *map(_build_row, plugins)]
        cli.console.table(table, styles=["bold", *(_STATUS_STYLES[plugin.status] for plugin in plugins)])
        for each in replaced:
            cli.console.message(f"Plugin {each.plugin} replaces {each}.")
    if read_policy().strict and any(plugin.status == "failed" for plugin in plugins):
        raise typer.Exit(EXIT_CONFIGURATION)


def _replaced_to_json(plugin: PluginInfo, replaced: Iterable[PluginReplacement]) -> list[dict[str, str]]:
    """Return what a plugin replaces, as JSON. Only a loaded plugin replaces anything."""
    if plugin.status != "active":
        return []
    return [{"kind": each.kind, "name": each.name, "of": each.owner} for each in replaced if each.plugin == plugin.name]


def _build_row(plugin: PluginInfo) -> tuple[str, str, str, str]:
    origin = f"{plugin.distribution} {plugin.version}{' (bundled)' if plugin.bundled else ''}"
    return plugin.name, plugin.status, origin, plugin.error or ", ".join(plugin.hooks)


@app.command(epilog="\b\nExamples:\n  nexus plugin info environment\n  nexus plugin info environment --json")
def info(ctx: typer.Context, name: PluginArgument, json: JsonOption = False) -> None:
    """Show the details of a plugin."""
    cli: CliContext = ctx.obj
    with cli.nexus(strict=False) as nexus:
        # Of two plugins with one name the first is the one that loads; the list shows both.
        plugins = {plugin.name: plugin for plugin in reversed(nexus.plugins)}
        replaced = find_replacements(nexus)
    plugin = plugins[name := resolve_plugin_name(name, plugins)]
    if json:
        details = {**asdict(plugin), "replaces": _replaced_to_json(plugin, replaced)}
        cli.console.json({"schema": 1, "plugin": details})
        return
    facts = [("Name", plugin.name), ("Status", plugin.status), ("From", _build_row(plugin)[2])]
    if plugin.error:
        facts.append(("Error", plugin.error))
    facts += [("Hook", f"{get_hooks()[hook].signature}: {get_hooks()[hook].purpose}") for hook in plugin.hooks]
    facts += [("Replaces", str(each)) for each in replaced if each.plugin == name]
    facts += [("Replaced", f"{each}, by plugin {each.plugin}") for each in replaced if each.owner == name]
    cli.console.table(facts)


@app.command("hooks", epilog="\b\nExamples:\n  nexus plugin hooks\n  nexus plugin hooks nexus_layers")
def list_hooks(ctx: typer.Context, name: OptionalHookArgument = None, json: JsonOption = False) -> None:
    """Print the reference of all hooks or of one."""
    cli: CliContext = ctx.obj
    if name is not None and name not in get_hooks():
        raise UnknownNameError("hook", name, get_hooks())
    chosen = list(get_hooks().values()) if name is None else [get_hooks()[name]]
    if json:
        cli.console.json({"schema": 1, "hooks": [_hook_to_json(hook) for hook in chosen]})
    elif name is not None:
        cli.console.text(f"{chosen[0].declaration}\n\n{chosen[0].reference}")
    else:
        rows = [("HOOK", "KIND", "PURPOSE"), *((hook.signature, hook.kind, hook.purpose) for hook in chosen)]
        cli.console.table(rows, styles=["bold"])
    if not any(hook.reference for hook in chosen):
        cli.console.message("Python was started with -OO, which removes the texts; run it without to see them.")


def _hook_to_json(hook: HookSpec) -> dict[str, object]:
    fields = {"name": hook.name, "kind": hook.kind, "parameters": list(hook.parameters)}
    return {**fields, "reference": hook.reference}


@app.command("test", epilog="\b\nExamples:\n  nexus plugin test\n  nexus plugin test acme --model acme-large")
def run_plugin_checks(
    ctx: typer.Context,
    names: OptionalPluginsArgument = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="A model that it counts tokens for.")] = "",
    json: JsonOption = False,
) -> None:
    """Test plugins against the hook contract.

    Without a name, tests all plugins that do not ship with Nexus. Exits with 1 if something was found.
    """
    cli: CliContext = ctx.obj
    checked = check_installed_plugins(cli.cwd, names or [], model)
    if json:
        rows = [{"name": name, "findings": findings} for name, findings in checked.items()]
        cli.console.json({"schema": 1, "plugins": rows})
    for name, findings in checked.items() if not json else ():
        cli.console.text(f"{name}: {'ok' if not findings else ''}".rstrip())
        for finding in findings:
            cli.console.text(f"  - {finding}")
    if not checked:
        cli.console.message("No plugins are installed besides the bundled ones; name one of those to test it.")
    if any(checked.values()):
        raise typer.Exit(EXIT_FINDINGS)


@app.command(epilog="\b\nExamples:\n  nexus plugin new git-status\n  nexus plugin new acme --hook nexus_token_counter")
def new(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower case letters, digits and hyphens.")],
    hook: Annotated[
        str, typer.Option(metavar="HOOK", help="The hook it implements.", autocompletion=_list_hook_names)
    ] = "nexus_static_sections",
    into: Annotated[Path | None, typer.Option(metavar="DIR", help="Create it in DIR instead of here.")] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Create an installable plugin package."""
    from nexus_core.cli.commands.scaffold import DEFAULT_HOOK, build_plugin_package
    from nexus_core.files.write import require_new_path, write_tree

    cli: CliContext = ctx.obj
    package = build_plugin_package(name, hook)
    root = (cli.cwd / into if into else cli.cwd) / package.distribution
    if dry_run:
        require_new_path(root)
    else:
        write_tree(root, package.files)
    for path in package.files:
        cli.console.text(str(root / path))
    if dry_run:
        cli.console.message("Nothing was written.")
    else:
        place = quote(str(root))
        look = "nexus show" if hook == DEFAULT_HOOK else f"nexus plugin test {package.plugin}"
        cli.console.message(f"Next: pip install -e {place}'[test]' && pytest {place} && {look}")


def find_replacements(nexus: Nexus, loaded: LoadedLayers | None = None) -> tuple[PluginReplacement, ...]:
    """Return what third-party plugins replace. Loads bundled plugins only if needed.

    Args:
        nexus: The plugins.
        loaded: The layers and settings that summarizers depend on; read from disk if None.
    """
    for hook, ask in _list_hook_queries(nexus, loaded).items():
        if nexus.host.has_third_party(hook):
            with suppress(NexusError):  # settings that cannot be read are reported by those who need them
                ask()
    return nexus.host.replacements


def _list_hook_queries(nexus: Nexus, loaded: LoadedLayers | None) -> dict[str, Callable[[], object]]:
    """Return, by hook, a function that asks all plugins for what they offer under a name."""
    host = nexus.host

    def ask_renderers() -> object:
        from nexus_core.rendering import LABELLED_RENDERER

        return host.renderers([LABELLED_RENDERER])

    def ask_roles() -> object:
        from nexus_core.rendering import UNIFIED_ROLE

        return host.roles([UNIFIED_ROLE])

    def ask_summarizers() -> object:
        from nexus_core.compaction.extractive import extractive_summarizer

        return host.summarizers(nexus.load() if loaded is None else loaded, [extractive_summarizer(len)])

    return {
        "nexus_renderers": ask_renderers,
        "nexus_dialects": lambda: nexus.dialects.replacing(),  # noqa: PLW0108 - loads the dialects
        "nexus_roles": ask_roles,
        "nexus_models": host.models,
        "nexus_truncation_strategies": host.truncations,
        "nexus_summarizers": ask_summarizers,
        "nexus_embedders": host.embedders,
        "nexus_providers": lambda: host.providers(nexus.load() if loaded is None else loaded),
        "nexus_toolsets": host.toolsets,
        "nexus_transcripts": host.transcripts,
    }


def check_installed_plugins(cwd: Path, names: Sequence[str], model: str = "") -> dict[str, list[str]]:
    """Return the findings for each plugin.

    Args:
        cwd: The working directory.
        names: The plugins; without names, those that do not ship with Nexus.
        model: A model to try token counters with; "" to look for one.
    """
    installed = find_installed_candidates(outside=cwd)
    owners: dict[str, PluginCandidate] = {}
    refused: dict[str, list[str]] = {}
    for candidate in (*BUNDLED, *installed):
        owner = owners.setdefault(candidate.name, candidate)
        if owner is not candidate:
            taken = f"{candidate.label} cannot load: the name is taken by {owner.label}"
            refused.setdefault(candidate.name, []).append(taken)
    chosen = [resolve_plugin_name(name, owners) for name in names] or sorted(
        {candidate.name for candidate in installed}
    )
    return {name: [*_check_candidate(owners[name], model), *refused.get(name, [])] for name in chosen}


def _check_candidate(candidate: PluginCandidate, model: str) -> list[str]:
    from nexus_core.testing.check import check_plugin

    with redirect_plugin_output():
        try:
            plugin = candidate.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a third-party module may raise anything when imported
            return [f"it {describe_exception(error)} while it was loaded"]
        try:
            return check_plugin(plugin, model=model)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - or when it is inspected
            return [f"it {describe_exception(error)} while it was checked"]
