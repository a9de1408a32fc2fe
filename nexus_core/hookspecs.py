"""The contract between Nexus and its plugins: every hook, in the order of a run.

A plugin is a module (or any object) with functions named as below and marked `@hookimpl`:

    from nexus_core import Section, hookimpl


    @hookimpl
    def nexus_static_sections(request):
        return [Section("motto", title="Motto", text="Measure twice, cut once.")]

Name only the parameters you need. The second paragraph of each docstring says how answers are used:

- Collects: every plugin is asked, all answers are taken and sorted, so order of installation never shows.
- First answer wins: plugins are asked until one answers something other than None; installed plugins are
  asked before bundled ones.
- Announces: every plugin is told, nothing is returned.

A `NexusError` raised in a hook reaches the user as it is. Any other exception, or an answer of the wrong
type, costs the plugin that answer: Nexus names plugin and hook, and goes on (`NEXUS_STRICT=1` stops instead).
Hook wrappers are refused, because they would change answers that carry another plugin's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.budget import Truncation
    from nexus_core.values.command import Command
    from nexus_core.values.compaction import CompactionBudget, CompactionPlan, Summariser, ThreadOutline
    from nexus_core.values.conversation import Tool
    from nexus_core.values.counting import Model, ModelCounter, TokenCounter
    from nexus_core.values.declarations import InitFile, InitScope, MergePolicy, PluginSettings
    from nexus_core.values.finding import Finding
    from nexus_core.values.layer import Layer, LayerConfig, LayerText, Skipped
    from nexus_core.values.ledger import Ledger
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.rendering import AgentRole, Renderer
    from nexus_core.values.request import Request
    from nexus_core.values.section import Section

PROJECT = "nexus"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


# ---- starting ---------------------------------------------------------------------------------------------


@hookspec
def nexus_commands() -> Iterable[Command]:
    """Add command groups to the `nexus` command line.

    Collects. Asked when the command line lists its commands or meets a name it does not know.

    Returns:
        Commands: a name, a help line, and where to import the `typer.Typer` from once it runs. Keep Typer out
        of the module that implements this hook, so that other commands do not pay for it. Inside a command,
        `ctx.obj` is a `nexus_core.plugin.Shell`.

    Example:
        @hookimpl
        def nexus_commands():
            return [Command("git", "What git says about this directory.", "nexus_git._cli:app")]
    """


@hookspec
def nexus_init_files(scope: InitScope) -> Iterable[InitFile]:
    """Say what `nexus init` writes into a new `.nexus3` directory.

    Collects. Asked once per `nexus init`. Of two files with one name, the first plugin's is used.

    Args:
        scope: `local` for a project, `global` for the user's own directory.

    Returns:
        Files by their name inside the directory. What they say must load.

    Example:
        @hookimpl
        def nexus_init_files(scope):
            return [InitFile("RULES.md", "Be kind.")] if scope == "local" else []
    """


@hookspec
def nexus_settings() -> Iterable[PluginSettings]:
    """Declare what may stand under `plugins.<name>` in config.json.

    Collects. Asked once per Nexus. `<name>` is the plugin's own name.

    Returns:
        One `PluginSettings`: the model that checks the settings, which of them are active, and which are only the
        user's to decide. Without it nothing that stands there is checked.

    Example:
        @hookimpl
        def nexus_settings():
            return [PluginSettings("nexus_git._settings:GitSettings", active=("command",))]
    """


@hookspec
def nexus_merge_policies() -> Iterable[MergePolicy]:
    """Say how the lists of several layers become one.

    Collects. Asked once per Nexus. Lists without a policy are joined; of two policies for one key, that of the plugin
    whose name comes first is used.

    Returns:
        Policies by the dotted name of a key.

    Example:
        @hookimpl
        def nexus_merge_policies():
            return [MergePolicy("plugins.git.remotes", "unique")]
    """


# ---- discovering and reading layers -----------------------------------------------------------------------


@hookspec
def nexus_layers(request: Request) -> Iterable[Layer | Skipped]:
    """Find the places on disk that contribute to the prompt.

    Collects. Asked once per load. Sorted by scope (defaults, global, ancestor, local), farthest first.

    Args:
        request: The directory to work in, the user's home, and how far up to look.

    Returns:
        Layers, and `Skipped` for places that were looked at in vain, so that `nexus layers` can say why something
        is missing. Look, but do not read: texts and settings are asked for afterwards, layer by layer.

    Example:
        @hookimpl
        def nexus_layers(request):
            policy = Path("/etc/acme-agents")
            return [Layer("global:acme", policy, "global")] if policy.is_dir() else []
    """


@hookspec
def nexus_layer_config(layer: Layer, request: Request) -> Iterable[LayerConfig | Skipped]:
    """Read the settings of one layer.

    Collects. Asked once per load for each layer, before its texts. Plugins are sorted by name; what a later layer says
    extends what an earlier one said.

    Args:
        layer: The place to read from.
        request: The directory to work in, and the user's home.

    Returns:
        One `LayerConfig` for each file, able to say where each setting stands. Nexus merges, checks and guards them:
        settings that start programs or open connections take effect only where the user trusts them. MCP servers are
        the setting `mcp_servers`, in any of the shapes that other tools have made common.

    Example:
        @hookimpl
        def nexus_layer_config(layer):
            path = layer.directory / "config.json"
            document = read_layer_json(path, Admission(layer), empty={})
            if isinstance(document, Skipped):
                return [document]
            return [LayerConfig(path, document.value, document.position)]
    """


@hookspec
def nexus_layer_texts(layer: Layer) -> Iterable[LayerText | Skipped]:
    """Read the texts of one layer.

    Collects. Asked once per load for each layer, including those found by other plugins. Texts keep the order
    in which a plugin returns them; plugins are sorted by name.

    Args:
        layer: The place to read from.

    Returns:
        Texts, each marked as instructions or as documentation, and `Skipped` for files that were looked at in vain.
        Documentation is used where a layer has no instructions, or always if the user wants it. Read with
        `nexus_core.plugin.Admission`, which refuses what is not a plain, reasonably small text file, what lies outside
        the project, and what a stranger may have written.

    Example:
        @hookimpl
        def nexus_layer_texts(layer):
            path = layer.directory / "RULES.md"
            text = Admission(layer).read_text(path)
            return [text if isinstance(text, Skipped) else LayerText(path, text)]
    """


# ---- contributing to the prompt ---------------------------------------------------------------------------


@hookspec
def nexus_static_sections(request: Request, loaded: Loaded) -> Iterable[Section]:
    """Contribute sections to the stable part of the prompt.

    Collects. Asked once per load; in a session, when a part of the prompt that is frozen begins. Sorted by
    `Section.order`, then by id, then by plugin.

    Args:
        request: The circumstances: working directory, mode, role. What changes from turn to turn is not in it.
        loaded: The layers that were found and their texts.

    Returns:
        Sections whose text depends only on the request and the machine. Providers cache this part of the
        prompt, so a clock or a random number here costs money on every call.

    Example:
        @hookimpl
        def nexus_static_sections(request):
            return [Section("python", title="Python", text=f"Python {sys.version.split()[0]}")]
    """


@hookspec
def nexus_current_sections(request: Request, loaded: Loaded) -> Iterable[Section]:
    """Contribute sections to what is said in this turn.

    Collects. Asked once per turn, when something is said. Sorted by `Section.order`, then by id, then by plugin.

    Args:
        request: The circumstances: the message, the session, the platform, and all the rest.
        loaded: The layers that were found and their texts.

    Returns:
        Sections about this very moment. They are kept with the message and sent again with it, so that they stay true
        to what the model was told. A section of the kind `memory` is left out when there is no room for it; any
        other counts as part of the event.

    Example:
        @hookimpl
        def nexus_current_sections(request):
            return [Section("git", title="Git", text=status(request.cwd))]
    """


@hookspec
def nexus_tools(request: Request, loaded: Loaded) -> Iterable[Tool]:
    """Offer tools to the model.

    Collects. Asked when a part of the prompt that is frozen begins. The caller's own tools come first; of two with one
    name, the caller's is used, then that of the plugin whose name comes first.

    Args:
        request: The circumstances: working directory, role, the caller's tools.
        loaded: The layers that were found and their settings.

    Returns:
        Definitions. Nexus leaves out what role and permissions do not allow, and runs none of them: whoever calls the
        model does.

    Example:
        @hookimpl
        def nexus_tools(request):
            return [Tool(name="git_status", description="What git says.", parameters={"type": "object"})]
    """


@hookspec
def nexus_renderers() -> Iterable[Renderer]:
    """Offer ways to put sections and messages into words.

    Collects. Asked once per Nexus. Of two with one name, the bundled one is used; `labelled` is Nexus's own.

    Returns:
        Renderers by name.

    Example:
        @hookimpl
        def nexus_renderers():
            return [Renderer(name="plain", system=join_texts, current=lambda request, sections, now: request.message)]
    """


@hookspec
def nexus_roles() -> Iterable[AgentRole]:
    """Say what parts an agent can play.

    Collects. Asked once per Nexus. Of two with one name, the bundled one is used; `unified` is Nexus's own.

    Returns:
        Roles by name, each with what its tools may reach. What the role is told, `nexus_static_sections` says.

    Example:
        @hookimpl
        def nexus_roles():
            return [AgentRole(name="reviewer", scopes=("general",))]
    """


# ---- counting and fitting ---------------------------------------------------------------------------------


@hookspec
def nexus_models() -> Iterable[Model]:
    """Say what is known of models: window, tokeniser, the shortest prefix that is cached.

    Collects. Asked once per Nexus. What installed plugins say of a model replaces what bundled ones say; the user's
    `provider.context_window` goes before both.

    Returns:
        Models by name. A date at the end of a name does not matter, and a name that ends in `*` stands for all that
        begin so; the longest name that fits is used.

    Example:
        @hookimpl
        def nexus_models():
            return [Model(name="acme-large*", window=64_000, encoding="o200k_base")]
    """


@hookspec(firstresult=True)
def nexus_token_counter(model: str, encoding: str) -> ModelCounter | None:
    """Count tokens as a model does.

    First answer wins. Asked once per model and Nexus. Where nobody answers, Nexus estimates.

    Args:
        model: The model's name; "" when any will do.
        encoding: The name of its tokeniser, as `nexus_models` tells it; "" when it is not known.

    Returns:
        A counter, or None for a model it knows nothing about.

    Example:
        @hookimpl
        def nexus_token_counter(model):
            return AcmeCounter() if model.startswith("acme-") else None
    """


@hookspec
def nexus_truncations() -> Iterable[Truncation]:
    """Offer ways to choose what stays when a conversation does not fit.

    Collects. Asked once per Nexus. Of two with one name, the bundled one is used.

    Returns:
        Truncations by name: each is given the sizes of groups (a message with tool calls and its results are one) and
        a budget, and says which groups stay.

    Example:
        @hookimpl
        def nexus_truncations():
            return [Truncation("newest_only", lambda groups, budget: [slice(-groups.newest(budget), None)])]
    """


@hookspec(firstresult=True)
def nexus_compaction_plan(
    thread: ThreadOutline, budget: CompactionBudget, counter: TokenCounter
) -> CompactionPlan | None:
    """Say which part of a conversation stays as it is when the rest is summarised.

    First answer wins. Asked once per compaction. Where nobody answers, nothing is summarised; the bundled plugin
    `compaction` keeps the newest turns that fit.

    Args:
        thread: The turns since the latest summary, each in groups of messages that live or die together.
        budget: What there is room for, and what it should come down to.
        counter: Who counts.

    Returns:
        Where the part begins that stays, at the beginning of a turn or of a group of the open turn; None to leave it to
        others. A plan that keeps more than fits, or begins elsewhere, is refused; so is one that summarises nothing,
        unless the summary there is has become too long for the window.

    Example:
        @hookimpl
        def nexus_compaction_plan(thread):
            return CompactionPlan(first_kept=thread.turns[-1].first) if len(thread.turns) > 1 else None
    """


@hookspec
def nexus_summarisers(loaded: Loaded) -> Iterable[Summariser]:
    """Offer ways to summarise a conversation.

    Collects. Asked before each compaction. `compaction.summarisers` says who is asked, in which order. Of two with one
    name, the bundled one is used; `given` and `extractive` are Nexus's own.

    Args:
        loaded: The layers that were found and their settings.

    Returns:
        Summarisers by name. Each is given a `SummaryRequest` and answers with a text, at once or awaited. It may raise
        anything: then the next one is asked.

    Example:
        @hookimpl
        def nexus_summarisers():
            return [Summariser(name="local", summarise=ask_local_model, window=32_000)]
    """


# ---- keeping conversations --------------------------------------------------------------------------------


@hookspec(firstresult=True)
def nexus_ledger(url: str) -> Ledger | None:
    """Open the place where conversations are kept.

    First answer wins. Asked once per Nexus, when a session is first used. `memory:` is answered by Nexus itself.

    Args:
        url: Where it is: `sqlite:///path`, `postgresql://host/name`; the scheme says whose it is.

    Returns:
        An open ledger, made if it was not there, or None for a scheme it does not know.

    Example:
        @hookimpl
        def nexus_ledger(url):
            return RedisLedger(url) if url.startswith("redis://") else None
    """


# ---- looking after it -------------------------------------------------------------------------------------


@hookspec
def nexus_diagnose(request: Request, loaded: Loaded) -> Iterable[Finding]:
    """Look for trouble in what was loaded.

    Collects. Asked by `nexus doctor`. Sorted by file, line and code.

    Args:
        request: The circumstances: working directory, home.
        loaded: The layers that were found, their texts and settings.

    Returns:
        Findings, each with a code of your own, the file and the line.

    Example:
        @hookimpl
        def nexus_diagnose(loaded):
            loud = [text.path for text in loaded.texts if text.text.isupper()]
            return [Finding("shouting", "written in capitals only", path) for path in loud]
    """
