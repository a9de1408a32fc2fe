"""`nexus plugins list|info|hooks|new|check`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - Typer reads annotations at run time
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.exits import CONFIGURATION, FINDINGS
from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - as Path
from nexus_core.errors import NexusError, UnknownNameError
from nexus_core.host.candidates import resolve_plugin_name
from nexus_core.host.contract import Hook, hooks
from nexus_core.host.policy import read_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.cli.shell import CommandShell
    from nexus_core.host.registry import PluginReplacement
    from nexus_core.nexus import Nexus
    from nexus_core.text.console import Style
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.plugin import PluginInfo, Status

app = typer.Typer(
    help="List, inspect, create and check plugins.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus plugins list\n  nexus plugins new git-status",
)

_STYLES: dict[Status, Style] = {"active": "plain", "disabled": "dim", "failed": "red", "needs-extra": "yellow"}


def _plugin_names(ctx: typer.Context) -> list[str]:
    with ctx.find_root().obj.nexus() as nexus:
        return [plugin.name for plugin in nexus.plugins]


def _hook_names() -> list[str]:
    return list(hooks())


PluginName = Annotated[str, typer.Argument(metavar="NAME", help="A plugin.", autocompletion=_plugin_names)]
PluginNames = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Plugins.", autocompletion=_plugin_names)
]
HookName = Annotated[str | None, typer.Argument(metavar="[NAME]", help="A hook.", autocompletion=_hook_names)]


@app.command("list", epilog="\b\nExamples:\n  nexus plugins list\n  nexus plugins list --json")
def list_plugins(ctx: typer.Context, json: Json = False) -> None:
    """List every plugin that was found, whether it loaded or not."""
    shell: CommandShell = ctx.obj
    with shell.nexus(strict=False) as nexus:  # the list must show a broken plugin, not fail on it
        plugins, replaced = nexus.plugins, find_replacements(nexus)
    if json:
        rows = [{**asdict(plugin), "replaces": _describe_replaced(plugin, replaced)} for plugin in plugins]
        shell.console.json({"schema": 1, "plugins": rows})
    else:
        table = [("NAME", "STATUS", "FROM", "HOOKS"), *map(_row, plugins)]
        shell.console.table(table, styles=["bold", *(_STYLES[plugin.status] for plugin in plugins)])
        for each in replaced:
            shell.console.message(f"Plugin {each.plugin} replaces {each}.")
    if read_policy().strict and any(plugin.status == "failed" for plugin in plugins):
        raise typer.Exit(CONFIGURATION)


def _describe_replaced(plugin: PluginInfo, replaced: Iterable[PluginReplacement]) -> list[dict[str, str]]:
    """Return what a plugin replaces, as JSON; of two plugins with one name, only the loaded one replaces anything."""
    if plugin.status != "active":
        return []
    return [{"kind": each.kind, "name": each.name, "of": each.owner} for each in replaced if each.plugin == plugin.name]


def _row(plugin: PluginInfo) -> tuple[str, str, str, str]:
    origin = f"{plugin.distribution} {plugin.version}{' (bundled)' if plugin.bundled else ''}"
    return plugin.name, plugin.status, origin, plugin.error or ", ".join(plugin.hooks)


@app.command(epilog="\b\nExamples:\n  nexus plugins info environment\n  nexus plugins info environment --json")
def info(ctx: typer.Context, name: PluginName, json: Json = False) -> None:
    """Show everything that is known about one plugin."""
    shell: CommandShell = ctx.obj
    with shell.nexus(strict=False) as nexus:
        # Of two plugins with one name the first is the one that loads; the list shows both.
        plugins = {plugin.name: plugin for plugin in reversed(nexus.plugins)}
        replaced = find_replacements(nexus)
    plugin = plugins[name := resolve_plugin_name(name, plugins)]
    if json:
        facts_of_it = {**asdict(plugin), "replaces": _describe_replaced(plugin, replaced)}
        shell.console.json({"schema": 1, "plugin": facts_of_it})
        return
    facts = [("Name", plugin.name), ("Status", plugin.status), ("From", _row(plugin)[2])]
    if plugin.error:
        facts.append(("Error", plugin.error))
    facts += [("Hook", f"{hooks()[hook].signature}: {hooks()[hook].purpose}") for hook in plugin.hooks]
    facts += [("Replaces", str(each)) for each in replaced if each.plugin == name]
    facts += [("Replaced", f"{each}, by plugin {each.plugin}") for each in replaced if each.owner == name]
    shell.console.table(facts)


@app.command("hooks", epilog="\b\nExamples:\n  nexus plugins hooks\n  nexus plugins hooks nexus_layers")
def list_hooks(ctx: typer.Context, name: HookName = None, json: Json = False) -> None:
    """Print the contract: every hook, or the reference of one."""
    shell: CommandShell = ctx.obj
    if name is not None and name not in hooks():
        raise UnknownNameError("hook", name, hooks())
    chosen = list(hooks().values()) if name is None else [hooks()[name]]
    if json:
        shell.console.json({"schema": 1, "hooks": [_describe(hook) for hook in chosen]})
    elif name is not None:
        shell.console.text(f"{chosen[0].declaration}\n\n{chosen[0].reference}")
    else:
        rows = [("HOOK", "KIND", "PURPOSE"), *((hook.signature, hook.kind, hook.purpose) for hook in chosen)]
        shell.console.table(rows, styles=["bold"])
    if not any(hook.reference for hook in chosen):
        shell.console.message("Python was started with -OO, which removes the texts; run it without to see them.")


def _describe(hook: Hook) -> dict[str, object]:
    told = {"name": hook.name, "kind": hook.kind, "parameters": list(hook.parameters)}
    return {**told, "reference": hook.reference}


@app.command(epilog="\b\nExamples:\n  nexus plugins check\n  nexus plugins check acme --model acme-large")
def check(
    ctx: typer.Context,
    names: PluginNames = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="A model that it counts tokens for.")] = "",
    json: Json = False,
) -> None:
    """Check plugins against the contract.

    Without a name, checks all plugins that do not ship with Nexus. Exits with 1 if something was found.
    """
    from nexus_core.cli.plugin_check import check_installed  # noqa: PLC0415 - `list` need not import the checker

    shell: CommandShell = ctx.obj
    checked = check_installed(shell.cwd, names or [], model)
    if json:
        rows = [{"name": name, "findings": findings} for name, findings in checked.items()]
        shell.console.json({"schema": 1, "plugins": rows})
    for name, findings in checked.items() if not json else ():
        shell.console.text(f"{name}: {'ok' if not findings else ''}".rstrip())
        for finding in findings:
            shell.console.text(f"  - {finding}")
    if not checked:
        shell.console.message("No plugins are installed besides the bundled ones; name one of those to check it.")
    if any(checked.values()):
        raise typer.Exit(FINDINGS)


@app.command(
    epilog="\b\nExamples:\n  nexus plugins new git-status\n  nexus plugins new acme --hook nexus_token_counter"
)
def new(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower case letters, digits and hyphens.")],
    hook: Annotated[
        str, typer.Option(metavar="HOOK", help="The hook it implements.", autocompletion=_hook_names)
    ] = "nexus_static_sections",
    into: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to create it; here by default.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Create a complete, installable plugin package."""
    from nexus_core.cli.scaffold import DEFAULT_HOOK, scaffold  # noqa: PLC0415 - as above
    from nexus_core.files.writing import ensure_new, write_tree  # noqa: PLC0415 - as above

    shell: CommandShell = ctx.obj
    package = scaffold(name, hook)
    root = (shell.cwd / into if into else shell.cwd) / package.distribution
    if dry_run:
        ensure_new(root)
    else:
        write_tree(root, package.files)
    for path in package.files:
        shell.console.text(str(root / path))
    if dry_run:
        shell.console.message("Nothing was written.")
    else:
        place = quote(str(root))
        look = "nexus show" if hook == DEFAULT_HOOK else f"nexus plugins check {package.plugin}"
        shell.console.message(f"Next: pip install -e {place}'[test]' && pytest {place} && {look}")


def find_replacements(nexus: Nexus, loaded: Loaded | None = None) -> tuple[PluginReplacement, ...]:
    """Return what third-party plugins replace; bundled plugins are loaded only where there may be something.

    Args:
        nexus: The plugins.
        loaded: The layers and settings that summarizers depend on; read from disk if None.
    """
    for hook, ask in _questions(nexus, loaded).items():
        if nexus.host.has_third_party(hook):
            with suppress(NexusError):  # settings that cannot be read are reported by those who need them
                ask()
    return nexus.host.replacements


def _questions(nexus: Nexus, loaded: Loaded | None) -> dict[str, Callable[[], object]]:
    """Return, by hook, a function that asks all plugins for what they offer under a name."""
    host = nexus.host

    def ask_renderers() -> object:
        from nexus_core.rendering.core import LABELLED  # noqa: PLC0415 - few plugins offer one

        return host.renderers([LABELLED])

    def ask_roles() -> object:
        from nexus_core.rendering.core import UNIFIED  # noqa: PLC0415 - as above

        return host.roles([UNIFIED])

    def ask_summarizers() -> object:
        from nexus_core.compaction.extractive import extractive_summariser  # noqa: PLC0415 - as above

        return host.summarisers(nexus.load() if loaded is None else loaded, [extractive_summariser(len)])

    return {
        "nexus_renderers": ask_renderers,
        "nexus_dialects": lambda: nexus.dialects.replacing(),  # noqa: PLW0108 - loads the dialects
        "nexus_roles": ask_roles,
        "nexus_models": host.models,
        "nexus_truncations": host.truncations,
        "nexus_summarisers": ask_summarizers,
    }
