"""The contract between Nexus and its plugins: every hook, in the order of a run.

Start          nexus_commands, nexus_init_files, nexus_settings, nexus_merge_policies
Layers         nexus_layers, nexus_layer_config, nexus_layer_texts
Prompt         nexus_static_sections, nexus_current_sections, nexus_tools, nexus_renderers, nexus_dialects, nexus_roles
Conversation   nexus_models, nexus_token_counter, nexus_truncation_strategies, nexus_compaction_plan, nexus_summarizers,
               nexus_ledger, nexus_memory_sources, nexus_embedders, nexus_providers, nexus_toolsets, nexus_transcripts
Events         nexus_call_assembled, nexus_step_recorded
Diagnosis      nexus_diagnose

A plugin is a module (or any object) with functions that are named after hooks and marked `@hookimpl`:

    from nexus_core import Section, hookimpl


    @hookimpl
    def nexus_static_sections(request):
        return [Section("motto", title="Motto", text="Measure twice, cut once.")]

Name only the parameters you need. Every type can be imported from `nexus_core` or `nexus_core.plugin`. The second
paragraph about each hook says how its results are used:

- Collects: every plugin is called, and all results are used. They are sorted, so the order of installation does not
  matter.
- First answer wins: plugins are called until one returns something other than None. Installed plugins are called
  before bundled ones.
- Announces: every plugin is called after something happened, in the order of their names. It returns None.

A `NexusError` raised in a hook reaches the user unchanged, unless the hook announces. After any other exception, or a
result of the wrong type, Nexus drops that result, reports the plugin and the hook, and continues (with
`NEXUS_STRICT=1` it stops instead). Hook wrappers are refused, because they would change results that carry another
plugin's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.types.api import Dialect
    from nexus_core.types.assembled import AssembledContext, CacheReport
    from nexus_core.types.budget import Model, ModelCounter, TokenCounter, TruncationStrategy
    from nexus_core.types.compaction import CompactionBudget, CompactionPlan, Summarizer, ThreadOutline
    from nexus_core.types.layers import Layer, LayerConfig, LayerText, LoadedLayers, SkippedFile
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.memory import Embedder, MemorySource
    from nexus_core.types.messages import Tool, Usage
    from nexus_core.types.plugins import Command, Finding, Toolset
    from nexus_core.types.prompt import AgentRole, Renderer, Section
    from nexus_core.types.providers import Provider
    from nexus_core.types.request import Request
    from nexus_core.types.settings import InitFile, InitScope, MergePolicy, PluginSettings, Settings
    from nexus_core.types.transcripts import TranscriptReader

__all__ = ["PROJECT", "hookimpl"]

PROJECT = "nexus"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

RENAMED_HOOKS = {
    "nexus_assembled": "nexus_call_assembled",
    "nexus_recorded": "nexus_step_recorded",
    "nexus_summarisers": "nexus_summarizers",
    "nexus_truncations": "nexus_truncation_strategies",
}
"""Former names of hooks. Plugins that implement them work for one more release."""


@hookspec
def nexus_commands() -> Iterable[Command]:
    """Add command groups to the `nexus` command line.

    Collects. Called when `nexus` lists its commands or is given a command that is not built in.

    Returns:
        Commands: each has a name, a help line, and the `module:attribute` of its `typer.Typer`, imported when the
        command runs. Do not import Typer in the module that implements this hook: that would slow down every other
        command. Inside a command, `ctx.obj` is a `nexus_core.plugin.CommandContext`.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Command

        @hookimpl
        def nexus_commands():
            return [Command("git", "Show the git status of this directory.", "nexus_git._cli:app")]
    """


@hookspec
def nexus_init_files(scope: InitScope) -> Iterable[InitFile]:
    """Return the files that `nexus init` writes into a new `.nexus3` directory.

    Collects. Called once per `nexus init`. If two plugins return the same file, the plugin whose name sorts first
    wins.

    Args:
        scope: `local` for a project, `global` for the user's own directory.

    Returns:
        Files, with paths relative to the directory. Nexus must be able to load their content.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import InitFile

        @hookimpl
        def nexus_init_files(scope):
            return [InitFile("RULES.md", "Be kind.")] if scope == "local" else []
    """


@hookspec
def nexus_settings() -> Iterable[PluginSettings]:
    """Declare the settings under `plugins.<name>` in config.json.

    Collects. Called once per Nexus. `<name>` is the plugin's own name.

    Returns:
        One `PluginSettings`: the model that validates the settings, which of them need approval in a project
        (`active`), and which only the user may set. Settings of a plugin that declares none are not validated.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import PluginSettings

        @hookimpl
        def nexus_settings():
            return [PluginSettings("nexus_git._settings:GitSettings", active=("command",))]
    """


@hookspec
def nexus_merge_policies() -> Iterable[MergePolicy]:
    """Return merge policies for settings that several layers have.

    Collects. Called once per Nexus. Without a policy, objects are merged key by key, lists according to the user's
    `merging.lists` (joined by default), and for any other value the most local one wins. If two plugins have a policy
    for the same key, the plugin whose name sorts first wins.

    Returns:
        Policies, each for the dotted name of a key: the name of a list policy, or a function of the inherited and the
        new value for any type. A function that raises or does not return JSON is reported and not used. A policy for a
        setting that protects the user (permissions, MCP servers, user-only settings and settings that need approval)
        is refused, except for the settings of your own plugin.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import MergePolicy

        @hookimpl
        def nexus_merge_policies():
            return [MergePolicy("plugins.git.remotes", "unique"), MergePolicy("plugins.git.depth", max)]
    """


@hookspec
def nexus_layers(request: Request) -> Iterable[Layer | SkippedFile]:
    """Find the layers on disk that contribute to the prompt.

    Collects. Called once per load. Sorted by scope (defaults, global, ancestor, local), farthest first.

    Args:
        request: The working directory, the user's home, and how many ancestor directories to search.

    Returns:
        Layers, and a `SkippedFile` for each location without anything usable, so that `nexus layers` can explain why
        something is missing. Do not read files yet: the other hooks read settings and texts afterwards, layer by layer.

    Example:
        from pathlib import Path

        from nexus_core import hookimpl
        from nexus_core.plugin import Layer

        @hookimpl
        def nexus_layers(request):
            policy = Path("/etc/acme-agents")
            return [Layer("global:acme", policy, "global")] if policy.is_dir() else []
    """


@hookspec
def nexus_layer_config(layer: Layer, request: Request) -> Iterable[LayerConfig | SkippedFile]:
    """Read the settings of one layer.

    Collects. Called once per load for each layer, before its texts. Plugins are called in the order of their names;
    later layers extend earlier ones.

    Args:
        layer: The layer to read from.
        request: The working directory, and the user's home.

    Returns:
        One `LayerConfig` per file, with a function that returns the line and column of each setting. Nexus merges and
        validates them and enforces its policy: settings that start programs or open connections take effect only once
        the user trusts them. MCP servers go under `mcp_servers`, in any of the shapes that other tools use.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import LayerConfig, SkippedFile
        from nexus_core.plugin.files import LayerReader, read_layer_json

        @hookimpl
        def nexus_layer_config(layer):
            path = layer.directory / "config.json"
            document = read_layer_json(path, LayerReader(layer), empty={})
            if isinstance(document, SkippedFile):
                return [document]
            return [LayerConfig(path, document.value, document.position)]
    """


@hookspec
def nexus_layer_texts(layer: Layer, settings: Settings) -> Iterable[LayerText | SkippedFile]:
    """Read the texts of one layer.

    Collects. Called once per load for each layer, including those found by other plugins. Texts keep the order in
    which a plugin returns them; plugins are called in the order of their names.

    Args:
        layer: The layer to read from.
        settings: The merged settings of all layers, not validated yet.

    Returns:
        Texts, each marked as instructions or as documentation, and `SkippedFile` for files that cannot be used.
        Documentation is used if a layer has no instructions, or always if the user wants it. Read files with
        `nexus_core.plugin.files.LayerReader`, which refuses anything that is not a plain text file of reasonable size,
        lies outside the project, or has an untrusted owner.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import LayerText, SkippedFile
        from nexus_core.plugin.files import LayerReader

        @hookimpl
        def nexus_layer_texts(layer):
            path = layer.directory / "RULES.md"
            text = LayerReader(layer).read_text(path)
            return [text if isinstance(text, SkippedFile) else LayerText(path, text)]
    """


@hookspec
def nexus_static_sections(request: Request, loaded: LoadedLayers) -> Iterable[Section]:
    """Contribute sections to the stable part of the prompt.

    Collects. Called once per load; in a session, once per epoch (the steps that share one frozen prompt prefix).
    Sorted by `Section.order`, then by id, then by plugin.

    Args:
        request: The working directory, mode, role and so on, without values that change from turn to turn.
        loaded: The layers, with their texts and settings.

    Returns:
        Sections whose text depends only on the request and the machine. Providers cache this part of the prompt, so a
        clock or a random number in it costs money on every call. A section of the kind `memory` is used, but reported
        as a problem.

    Example:
        import sys

        from nexus_core import Section, hookimpl

        @hookimpl
        def nexus_static_sections(request):
            return [Section("python", title="Python", text=f"Python {sys.version.split()[0]}")]
    """


@hookspec
def nexus_current_sections(request: Request, loaded: LoadedLayers) -> Iterable[Section]:
    """Contribute sections to the user message of this turn.

    Collects. Called once per turn, when the user message arrives. Sorted by `Section.order`, then by id, then by
    plugin.

    Args:
        request: The user message, the session, the platform and everything else about this turn.
        loaded: The layers, with their texts and settings.

    Returns:
        Sections about this turn. They are stored with the user message and sent again with it in later calls,
        unchanged. A section of the kind `memory` is dropped if it exceeds the budget; any other counts as part of the
        event.

    Example:
        from nexus_core import Section, hookimpl

        @hookimpl
        def nexus_current_sections(request):
            return [Section("git", title="Git", text=status(request.cwd))]
    """


@hookspec
def nexus_tools(request: Request, loaded: LoadedLayers) -> Iterable[Tool]:
    """Offer tools to the model.

    Collects. Called once per epoch. The caller's own tools come first. If two tools have the same name, the caller's
    wins, then that of the plugin whose name sorts first.

    Args:
        request: The working directory, role, the caller's tools and so on.
        loaded: The layers, with their texts and settings.

    Returns:
        Tool definitions. Nexus leaves out tools that the role or the permissions do not allow. A tool is run
        by the program that calls the model: yours, or an agent of Nexus.

    Example:
        from nexus_core import Tool, hookimpl

        @hookimpl
        def nexus_tools(request):
            return [Tool(name="git_status", description="Run git status.", parameters={"type": "object"})]
    """


@hookspec
def nexus_renderers() -> Iterable[Renderer]:
    """Provide renderers, which turn sections and messages into text.

    Collects. Called once per Nexus. Yours replaces a bundled one of the same name, also `labelled`, which is built in.
    If two installed plugins use the same name, the plugin whose own name sorts first wins.

    Returns:
        Renderers by name.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Renderer

        @hookimpl
        def nexus_renderers():
            return [Renderer(name="plain", system=join_texts, current=lambda request, sections, now: request.message)]
    """


@hookspec
def nexus_dialects() -> Iterable[Dialect]:
    """Provide the dialect of another API: its messages, tools, request bodies and replies.

    Collects. Called once per Nexus, when a dialect is first needed. `openai`, `responses`, `anthropic`, `gemini` and
    `neutral` are built in. Yours replaces a bundled or built-in one of the same name, except `neutral`, the format in
    which conversations are stored. If two installed plugins use the same name, the plugin whose own name sorts first
    wins.

    Returns:
        Dialects: objects of any class with the members of the protocol `Dialect`, or `ApiDialect`, which is built from
        functions. docs/how-to/speak-another-api.md writes one.

    Example:
        from nexus_core import hookimpl

        @hookimpl
        def nexus_dialects():
            return [AcmeDialect()]
    """


@hookspec
def nexus_roles() -> Iterable[AgentRole]:
    """Define roles that an agent can have.

    Collects. Called once per Nexus. Yours replaces a bundled one of the same name, also `unified`, which is built in.
    If two installed plugins use the same name, the plugin whose own name sorts first wins.

    Returns:
        Agent roles, each with the scopes of the tools it may use. To give a role instructions, implement
        `nexus_static_sections` as well.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import AgentRole

        @hookimpl
        def nexus_roles():
            return [AgentRole(name="reviewer", scopes=("general",))]
    """


@hookspec
def nexus_models() -> Iterable[Model]:
    """Describe models: context window, tokenizer, minimum cacheable prefix, price.

    Collects. Called once per Nexus. A model of an installed plugin replaces a bundled one; if two installed plugins
    describe the same model, the plugin whose name sorts first wins. The user's `provider.context_window` overrides all
    of them.

    Returns:
        Models. A date at the end of a name is ignored, and a name that ends in `*` matches all names with that prefix;
        the longest match is used.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Model, ModelPrice

        @hookimpl
        def nexus_models():
            price = ModelPrice(input="1.25", output="10", cache_read="0.125", date="2026-11-17")
            return [Model(name="acme-large*", window=64_000, encoding="o200k_base", price=price)]
    """


@hookspec(firstresult=True)
def nexus_token_counter(model: str, encoding: str) -> ModelCounter | None:
    """Return the token counter of a model.

    First answer wins. Called once per model and Nexus. If all plugins return None, Nexus estimates.

    Args:
        model: The model's name, or "" if any counter will do.
        encoding: The name of its tokenizer, as given by `nexus_models`, or "" if it is not known.

    Returns:
        A counter, or None for a model that this plugin does not know. `TextCounter` has every method but `count`; a
        class of your own needs `name`, `exact`, `count`, `count_many` and `count_messages`.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import TextCounter

        class AcmeCounter(TextCounter):
            name = "acme:v1"
            exact = True

            def count(self, text):
                return len(text.encode()) // 3 + 1

        @hookimpl
        def nexus_token_counter(model):
            return AcmeCounter() if model.startswith("acme-") else None
    """


@hookspec
def nexus_truncation_strategies() -> Iterable[TruncationStrategy]:
    """Provide truncation strategies, which choose the messages to keep when not all fit.

    Collects. Called once per Nexus. Yours replaces a bundled one of the same name. If two installed plugins use the
    same name, the plugin whose own name sorts first wins.

    Returns:
        Strategies. Each is called with the sizes of the message groups (a message with tool calls and its results are
        one group) and a budget, and returns which groups stay.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import TruncationStrategy

        @hookimpl
        def nexus_truncation_strategies():
            return [TruncationStrategy("newest_only", lambda groups, budget: [slice(-groups.newest(budget), None)])]
    """


@hookspec(firstresult=True)
def nexus_compaction_plan(
    thread: ThreadOutline, budget: CompactionBudget, counter: TokenCounter
) -> CompactionPlan | None:
    """Return which part of a conversation stays verbatim when the rest is summarized.

    First answer wins. Called once per compaction. If all plugins return None, nothing is summarized; the bundled plugin
    `compaction` keeps the newest turns that fit.

    Args:
        thread: The turns since the latest summary, each split into groups of messages that must stay together.
        budget: Tokens available, and tokens to aim for.
        counter: Token counter of the model.

    Returns:
        The first step that stays, which must begin a turn or a group of the open turn; None to let the next plugin
        decide. A plan that keeps more than fits or begins elsewhere is refused. So is one that summarizes nothing,
        unless the existing summary has become too long for the window.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import CompactionPlan

        @hookimpl
        def nexus_compaction_plan(thread):
            return CompactionPlan(first_kept=thread.turns[-1].first) if len(thread.turns) > 1 else None
    """


@hookspec
def nexus_summarizers(loaded: LoadedLayers) -> Iterable[Summarizer]:
    """Provide summarizers of conversations.

    Collects. Called before each compaction. The setting `compaction.summarizers` lists the ones to call, in order.
    Yours replaces a bundled one of the same name, also `extractive`, which is built in; `given` is the caller's own and
    cannot be replaced. If two installed plugins use the same name, the plugin whose own name sorts first wins.

    Args:
        loaded: The layers, with their texts and settings.

    Returns:
        Summarizers. Each is called with a `SummaryRequest` and returns the text, or an awaitable of it. If it raises
        an exception, the next one is called.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Summarizer

        @hookimpl
        def nexus_summarizers():
            return [Summarizer(name="local", summarise=ask_local_model, window=32_000)]
    """


@hookspec(firstresult=True)
def nexus_ledger(url: str) -> Ledger | None:
    """Open the ledger of a URL.

    First answer wins. Called once per Nexus, when a session is first used. `memory:` is built in.

    Args:
        url: The ledger's URL, such as `sqlite:///path` or `postgresql://host/name`; its scheme selects the plugin.

    Returns:
        An open ledger, created if it does not exist yet, or None for a scheme that this plugin does not know.

    Example:
        from nexus_core import hookimpl

        @hookimpl
        def nexus_ledger(url):
            return RedisLedger(url) if url.startswith("redis://") else None
    """


@hookspec
def nexus_memory_sources(request: Request, loaded: LoadedLayers, ledger: Ledger) -> Iterable[MemorySource]:
    """Provide sources of memories: notes, rules of the user, turns of other sessions, guides.

    Collects. Called once per turn if the setting `memory.enabled` is on, and by `nexus memory`. The setting
    `memory.sources` lists the ones to search. Yours replaces a bundled one of the same name. If two installed plugins
    use the same name, the plugin whose own name sorts first wins.

    Args:
        request: The user message, the session and everything else about this turn.
        loaded: The layers, with their texts and settings.
        ledger: The open ledger.

    Returns:
        Sources. Each is called with a `MemoryQuery` and returns memories, the best first. Nexus fuses the ranks of all
        sources, leaves out what the model has read already, and quotes text of tools, files and the web. A source that
        raises an exception is reported, and the others are used.

    Example:
        from nexus_core import Source, hookimpl
        from nexus_core.plugin import Memory, MemorySource

        FRIDAYS = Memory(text="Ada deploys on Fridays.", kind="note", source=Source(uri="/wiki/deploy.md"), score=0.5)

        def search_wiki(query):
            return [FRIDAYS] if "deploy" in query.text else []

        @hookimpl
        def nexus_memory_sources():
            return [MemorySource(name="wiki", search=search_wiki)]
    """


@hookspec
def nexus_embedders() -> Iterable[Embedder]:
    """Provide models that turn texts into vectors, to find memories that say the same in other words.

    Collects. Called once per search for memories if the setting `memory.embedder` names one, and by nothing else. If
    two installed plugins use the same name, the plugin whose own name sorts first wins.

    Returns:
        Embedders. The one that is named gets the message and the memories that were found by their words. The first ten
        of these stay where they are; the others are ordered by the ranks of both. An embedder that raises an exception
        is reported, and the order by words is used.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Embedder

        def count_letters(texts):
            return [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

        @hookimpl
        def nexus_embedders():
            return [Embedder(name="letters", embed=count_letters)]
    """


@hookspec
def nexus_providers(loaded: LoadedLayers) -> Iterable[Provider]:
    """Provide models: functions that send an assembled call and yield the reply.

    Collects. Called when an agent is opened, and by nothing else: sessions call no model. Yours replaces a bundled one
    of the same name. If two installed plugins use the same name, the plugin whose own name sorts first wins.

    Args:
        loaded: The layers, with their texts and settings.

    Returns:
        Providers. Each is called with an `AssembledContext` and a `CancelSignal`, in a thread of its own, and yields
        `TextDelta`, `ReasoningDelta`, `ProviderToolCall` and `ProviderUsage`, and at the end one `ProviderReply`. If
        there is no reply, it raises a `ProviderError`. Do not connect before the function is called.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Provider

        @hookimpl
        def nexus_providers():
            return [Provider(name="local", stream=ask_local_model)]
    """


@hookspec
def nexus_toolsets() -> Iterable[Toolset]:
    """Run the tools that `nexus_tools` offers, for agents of the command line.

    Collects. Called by `nexus chat`. Yours replaces a bundled one of the same name. If two installed plugins use the
    same name, the plugin whose own name sorts first wins.

    Returns:
        Toolsets. Each is opened when a model first calls a tool, and closed at the end of the chat. Its value says
        with `in` which tools it runs, and runs a call: `run(call)` returns `call.result(…)`. Its attribute `risk`
        (`low`, `medium` or `high`; `high` without it) decides with the permission level if the user is asked.

    Example:
        from contextlib import nullcontext

        from nexus_core import hookimpl
        from nexus_core.plugin import Toolset

        class GitTools:
            risk = "low"

            def __contains__(self, name):
                return name == "git_status"

            def run(self, call):
                return call.result("nothing to commit")

        @hookimpl
        def nexus_toolsets():
            return [Toolset(name="git", open=lambda nexus: nullcontext(GitTools()))]
    """


@hookspec
def nexus_transcripts() -> Iterable[TranscriptReader]:
    """Add readers for the transcripts of other programs, and writers for their formats.

    Collects. Called when a transcript is read or looked for, by `nexus context`, `nexus diff` and `nexus session
    import`, and when a session is written for another agent, by `nexus session export --format`. Yours replaces a
    bundled one of the same name; the formats of Nexus itself cannot be replaced. If two installed plugins use the same
    name, the plugin whose own name sorts first wins.

    Returns:
        Readers: each has a name, the program's name, the `module:attribute` of its `TranscriptFormat`, and where the
        program keeps its files. The module is imported when a transcript is read. The format scores the shape of every
        line (or of the document), and the format that explains most of a file reads it. A format with a `writer`
        (`TranscriptWriter`) can be exported. See `nexus_core.plugin.transcripts`.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import TranscriptLocation, TranscriptReader

        @hookimpl
        def nexus_transcripts():
            logs = TranscriptLocation("~/.git-agent", "sessions/*.jsonl")
            return [TranscriptReader("git-agent", "Git Agent", "nexus_git._reader:FORMAT", (logs,))]
    """


@hookspec
def nexus_call_assembled(context: AssembledContext) -> None:
    """Called when a call has been assembled and is about to be sent.

    Announces. Called by `ask`, `next` and `recover` of a session, also if the same call is assembled twice, and by
    `Nexus.assemble`. Not called by read-only operations: `preview`, `replay`, `fit_messages`, and all commands of
    `nexus` except `session record`.

    Args:
        context: The assembled call, with its tokens, decisions and findings. `session_label` is the session's name, ""
            for a call without a session. It is a copy, made lazily as you read it.

    Returns:
        None.

    Example:
        from nexus_core import hookimpl

        LARGEST = {}

        @hookimpl
        def nexus_call_assembled(context):
            tokens = context.token_budget.total
            LARGEST[context.session_label] = max(tokens, LARGEST.get(context.session_label, 0))
    """


@hookspec
def nexus_step_recorded(step: Step, session: str, usage: Usage | None, cache: CacheReport) -> None:
    """Called when a reply, tool results or a whole turn is recorded, or a turn is interrupted.

    Announces. Called after the step is in the ledger, once for each step: not for steps that were recorded before, and
    not for imports.

    Args:
        step: The new step; `kind` is `reply`, `result`, `turn` or `interrupted`. It is a copy.
        session: The name of the session. The reply of a worker (subagent) is announced twice: as a reply in its own
            session, and as a tool result in the session that created it.
        usage: Token usage of the call that produced the reply, or of the whole turn; None if the API did not report it.
        cache: Prompt cache report of the call that produced the reply; all fields are unknown for other steps.

    Returns:
        None.

    Example:
        from nexus_core import hookimpl

        SPENT = {}

        @hookimpl
        def nexus_step_recorded(session, usage):
            if usage is not None:
                SPENT[session] = SPENT.get(session, 0) + usage.total_tokens
    """


@hookspec
def nexus_diagnose(request: Request, loaded: LoadedLayers) -> Iterable[Finding]:
    """Report problems in the loaded layers.

    Collects. Called by `nexus doctor`. Sorted by file, line and code.

    Args:
        request: The working directory, the user's home and so on.
        loaded: The layers, with their texts and settings.

    Returns:
        Findings, each with a code of your own, the file and the line.

    Example:
        from nexus_core import Finding, hookimpl

        @hookimpl
        def nexus_diagnose(loaded):
            loud = [text.path for text in loaded.texts if text.text.isupper()]
            return [Finding("shouting", "written in capitals only", path) for path in loud]
    """
