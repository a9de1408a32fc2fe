"""What `nexus context --json` says without a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexus_core.cli.context.request import Looked
    from nexus_core.cli.context.shares import Share


def facts_of(found: Looked, *, tree: bool) -> dict[str, object]:
    """All that is known of where the tokens of a request go, and the tree of its pieces where that is wanted."""
    shares, budget = found.shares, found.shares.budget
    facts: dict[str, object] = {
        "schema": 1,
        "directory": found.directory,
        "session": found.session,
        **found.measure.facts(shares.total, exact=found.is_all_text),
        "fits": found.fits,
        "zones": shares.zones(),
        "kinds": shares.kinds(),
        "layers": shares.layers(),
        "files": shares.files(),
        "sections": [_section(each) for each in shares.sections],
        "tools": [{"name": each.name, "tokens": each.tokens, "source": each.uri} for each in shares.tools],
        "framing": shares.framing,
        "messages": [{"role": message.role, "tokens": tokens} for message, tokens in found.messages],
        "left_out": [each._asdict() for each in shares.left_out],
        "reserved": 0 if budget is None else budget.reserve_response + budget.reserve_tools,
        "bytes": 0 if budget is None else budget.bytes,
        "byte_limit": 0 if budget is None else budget.byte_limit,
        "correction": 0 if budget is None else budget.correction,
        "free": found.measure.window - shares.total if budget is None else budget.remaining,
    }
    if tree:
        from nexus_core.cli.context.tree import tree_of  # noqa: PLC0415 - only for a tree

        facts["tree"] = tree_of(shares).facts()
    return facts


def _section(share: Share) -> dict[str, object]:
    return {
        "id": share.id,
        "title": share.name,
        "kind": share.kind,
        "tokens": share.tokens,
        "source": {"uri": share.uri, "layer": share.layer, "plugin": share.plugin},
    }
