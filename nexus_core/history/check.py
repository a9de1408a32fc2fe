"""Says what an API would refuse in a list of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.history.repair import findings_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.host.host import Host
    from nexus_core.values.api import ApiRules
    from nexus_core.values.finding import Finding


def check(
    messages: Iterable[object],
    api: str | ApiRules | None = None,
    *,
    source: str | None = None,
    tools: Iterable[object] | None = None,
    host: Host | None = None,
) -> tuple[Finding, ...]:
    """What an API would refuse: all that `repair` would put right, a list without messages, and invalid tools.

    Args:
        messages: Dicts, objects of an API's SDK, or `Message`.
        api: Whose rules count: `openai`, `responses`, `anthropic`, `gemini`, `neutral`, or what a plugin offers; the
            list's own by default.
        source: The dialect of the list, where it cannot be told from the messages.
        tools: Definitions of tools that are sent along, in any API's shape.
        host: Whose plugins to ask for other dialects; the user's own by default.

    Returns:
        Findings; `index` is the message, `code` is explained in docs/reference/findings.md.

    Raises:
        MessageError: Something in the list is no message, or no definition of a tool; names it.
        UnknownNameError: There is no such API.
    """
    return findings_in(messages, api, source, tools, host)
