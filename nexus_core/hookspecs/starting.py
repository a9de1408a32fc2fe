"""Before anything is loaded: commands, new directories, which settings exist and how they merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.command import Command
    from nexus_core.values.declarations import InitFile, InitScope, MergePolicy, PluginSettings


@hookspec
def nexus_commands() -> Iterable[Command]:
    """Add command groups to the `nexus` command line.

    Collects. Asked when `nexus` lists its commands or is given a command that is not its own.

    Returns:
        Commands: each has a name, a help line, and the place to import its `typer.Typer` from when it runs. Do not
        import Typer in the module that implements this hook, so that other commands do not pay for it. Inside a
        command, `ctx.obj` is a `nexus_core.plugin.Shell`.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Command

        @hookimpl
        def nexus_commands():
            return [Command("git", "What git says about this directory.", "nexus_git._cli:app")]
    """


@hookspec
def nexus_init_files(scope: InitScope) -> Iterable[InitFile]:
    """Say what `nexus init` writes into a new `.nexus3` directory.

    Collects. Asked once per `nexus init`. If two plugins name the same file, the plugin whose name sorts first
    wins.

    Args:
        scope: `local` for a project, `global` for the user's own directory.

    Returns:
        Files, named relative to the directory. Nexus must be able to load what they say.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import InitFile

        @hookimpl
        def nexus_init_files(scope):
            return [InitFile("RULES.md", "Be kind.")] if scope == "local" else []
    """


@hookspec
def nexus_settings() -> Iterable[PluginSettings]:
    """Declare which settings may stand under `plugins.<name>` in config.json.

    Collects. Asked once per Nexus. `<name>` is the plugin's own name.

    Returns:
        One `PluginSettings`: the model that checks the settings, which of them are active, and which only the user may
        decide. Settings of a plugin that declares none are not checked.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import PluginSettings

        @hookimpl
        def nexus_settings():
            return [PluginSettings("nexus_git._settings:GitSettings", active=("command",))]
    """


@hookspec
def nexus_merge_policies() -> Iterable[MergePolicy]:
    """Say how values from several layers are merged.

    Collects. Asked once per Nexus. Without a policy, objects are merged key by key, lists as the user's `merging.lists`
    says (joined by default), and of anything else the most local value wins. If two plugins have a policy for the same
    key, the plugin whose name sorts first wins.

    Returns:
        Policies, each for the dotted name of a key: the name of one for lists, or a function of the inherited and the
        new value for anything. A function that fails or returns no JSON is reported and not used. Settings that guard
        the user (permissions, MCP servers, and what only the user or an approval decides) take no policy of yours,
        except those of your own plugin.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import MergePolicy

        @hookimpl
        def nexus_merge_policies():
            return [MergePolicy("plugins.git.remotes", "unique"), MergePolicy("plugins.git.depth", max)]
    """
