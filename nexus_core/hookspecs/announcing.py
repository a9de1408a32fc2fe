"""What has happened in a conversation, for plugins that watch: nothing that they do changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.hookspecs.markers import hookspec

if TYPE_CHECKING:
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.cache import CacheReport
    from nexus_core.values.conversation import Usage
    from nexus_core.values.ledger import Step


@hookspec
def nexus_assembled(context: AssembledContext) -> None:
    """Hear that a call is put together and is about to be sent.

    Announces. Told each time by `ask`, `next` and `recover` of a session, also for the same call twice, and by
    `Nexus.assemble`. Not told by whoever only looks: `preview`, `replay`, `fit`, and the commands of `nexus` but for
    `session record`.

    Args:
        context: All of the call, with its tokens, decisions and findings. `session_label` says of which session, ""
            for a call without one. It is a copy, made as far as you look at it.

    Returns:
        Nothing.

    Example:
        from nexus_core import hookimpl

        LARGEST = {}

        @hookimpl
        def nexus_assembled(context):
            tokens = context.token_budget.total
            LARGEST[context.session_label] = max(tokens, LARGEST.get(context.session_label, 0))
    """


@hookspec
def nexus_recorded(step: Step, session: str, usage: Usage | None, cache: CacheReport) -> None:
    """Hear that a reply, results of tools or a whole turn is recorded, or that a turn was given up.

    Announces. Told after the step is in the ledger, once for each step: what was recorded before is not told again,
    and neither is what was imported.

    Args:
        step: What was added; `kind` is `reply`, `result`, `turn` or `interrupted`. It is a copy.
        session: The name of the session. A worker's answer is told twice: as a reply of its own session, and as a
            result in the session that made it.
        usage: What the call cost that a reply answers, or a whole turn; None where the API did not say.
        cache: What became of the provider's cache in the call that a reply answers; all of it unknown for other steps.

    Returns:
        Nothing.

    Example:
        from nexus_core import hookimpl

        SPENT = {}

        @hookimpl
        def nexus_recorded(session, usage):
            if usage is not None:
                SPENT[session] = SPENT.get(session, 0) + usage.total_tokens
    """
