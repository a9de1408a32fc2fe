"""A conversation is counted, made to fit, summarised and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.budget import Truncation
    from nexus_core.values.compaction import CompactionBudget, CompactionPlan, Summariser, ThreadOutline
    from nexus_core.values.counting import Model, ModelCounter, TokenCounter
    from nexus_core.values.ledger import Ledger
    from nexus_core.values.loaded import Loaded


@hookspec
def nexus_models() -> Iterable[Model]:
    """Describe models: context window, tokeniser, shortest prefix that is cached.

    Collects. Asked once per Nexus. What an installed plugin says about a model replaces what a bundled one says; of two
    installed plugins, that whose name sorts first wins. The user's `provider.context_window` overrides all of them.

    Returns:
        Models by name. A date at the end of a name is ignored, and a name that ends in `*` matches all names that begin
        that way; the longest match is used.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Model

        @hookimpl
        def nexus_models():
            return [Model(name="acme-large*", window=64_000, encoding="o200k_base")]
    """


@hookspec(firstresult=True)
def nexus_token_counter(model: str, encoding: str) -> ModelCounter | None:
    """Count tokens the way a model does.

    First answer wins. Asked once per model and Nexus. If no plugin answers, Nexus estimates.

    Args:
        model: The model's name, or "" if any counter will do.
        encoding: The name of its tokeniser, as given by `nexus_models`, or "" if it is not known.

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
def nexus_truncations() -> Iterable[Truncation]:
    """Offer ways to choose what stays when a conversation does not fit.

    Collects. Asked once per Nexus. Yours replaces a bundled one of the same name. Of two installed plugins with the
    same name, that of the plugin whose name sorts first wins.

    Returns:
        Truncations by name. Each is given the sizes of the groups (a message with tool calls and its results are one
        group) and a budget, and says which groups stay.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Truncation

        @hookimpl
        def nexus_truncations():
            return [Truncation("newest_only", lambda groups, budget: [slice(-groups.newest(budget), None)])]
    """


@hookspec(firstresult=True)
def nexus_compaction_plan(
    thread: ThreadOutline, budget: CompactionBudget, counter: TokenCounter
) -> CompactionPlan | None:
    """Say which part of a conversation stays as it is when the rest is summarised.

    First answer wins. Asked once per compaction. If no plugin answers, nothing is summarised; the bundled plugin
    `compaction` keeps the newest turns that fit.

    Args:
        thread: The turns since the latest summary, each in groups of messages that live or die together.
        budget: How many tokens there is room for, and how many should be left.
        counter: Counts tokens.

    Returns:
        The first step that stays, which must begin a turn, or a group of the open turn; None to leave it to others. A
        plan that keeps more than fits or begins elsewhere is refused. So is one that summarises nothing, unless the
        existing summary has become too long for the window.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import CompactionPlan

        @hookimpl
        def nexus_compaction_plan(thread):
            return CompactionPlan(first_kept=thread.turns[-1].first) if len(thread.turns) > 1 else None
    """


@hookspec
def nexus_summarisers(loaded: Loaded) -> Iterable[Summariser]:
    """Offer ways to summarise a conversation.

    Collects. Asked before each compaction. `compaction.summarisers` says who is asked, in which order. Yours replaces a
    bundled one of the same name, also `extractive`, which is built in; `given` is the caller's own and cannot be
    replaced. Of two installed plugins with the same name, that of the plugin whose name sorts first wins.

    Args:
        loaded: The layers that were found and their settings.

    Returns:
        Summarisers by name. Each is given a `SummaryRequest` and returns the text, or an awaitable of it. If it raises
        an exception, the next one is asked.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Summariser

        @hookimpl
        def nexus_summarisers():
            return [Summariser(name="local", summarise=ask_local_model, window=32_000)]
    """


@hookspec(firstresult=True)
def nexus_ledger(url: str) -> Ledger | None:
    """Open the place where conversations are kept.

    First answer wins. Asked once per Nexus, when a session is first used. `memory:` is built in.

    Args:
        url: Where they are, such as `sqlite:///path` or `postgresql://host/name`; the scheme says which plugin is
            meant.

    Returns:
        An open ledger, created if it does not exist yet, or None for a scheme that this plugin does not know.

    Example:
        from nexus_core import hookimpl

        @hookimpl
        def nexus_ledger(url):
            return RedisLedger(url) if url.startswith("redis://") else None
    """
