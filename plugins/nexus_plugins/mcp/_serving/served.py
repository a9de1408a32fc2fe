"""What Nexus answers when it is a server itself: tools, as plain functions on a Nexus."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import UnknownNameError, UsageError, check
from nexus_core.plugin import (
    cut_around,
    explain,
    find_named,
    open_counter,
    plain_mapping,
    redact_json,
    search_session,
    words_said,
)
from nexus_plugins.mcp._serving.sessions import MOST_SESSIONS, list_sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nexus_core import Nexus
    from nexus_core.plugin import Ledger, SessionRecord, Step

MOST_STEPS = 50
"""How many steps are told at once."""
MOST_FOUND = 4_000
"""Characters that a search tells of one message, around what was looked for."""
MOST_READ = 100_000
"""Characters that `read_steps` tells at once; each message has the same share of them."""


class Served(NamedTuple):
    """A tool of ours: what it is good for, its arguments as a JSON Schema, and what runs it."""

    description: str
    properties: Mapping[str, Mapping[str, object]]
    required: tuple[str, ...]
    run: Callable[[Nexus, Mapping[str, Any]], object]

    @property
    def schema(self) -> dict[str, object]:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }


def _assemble_context(nexus: Nexus, given: Mapping[str, Any]) -> object:
    fields = {name: given[name] for name in ("message", "session", "model", "role") if given.get(name)}
    context = nexus.assemble(nexus.request(**fields), announce=False)
    api = given.get("api") or "openai"
    request = redact_json(plain_mapping(context.to(api)))  # an SDK may take bytes
    return {"request": request, "tokens": context.token_budget.total, "window": context.token_budget.limit}


def _explain_source(nexus: Nexus, given: Mapping[str, Any]) -> object:
    found = explain(
        nexus.static_context(),
        given["query"],
        load_in=lambda directory: nexus.context().load_for(directory).loaded,
    )
    return {"explanations": [each.to_json() for each in found]}


def _search_history(nexus: Nexus, given: Mapping[str, Any]) -> object:
    session = _session(nexus.ledger, given["session"])
    limit = min(int(given.get("limit") or 20), MOST_STEPS)
    found = search_session(nexus.ledger, session, given["text"], limit=limit)
    cut = partial(cut_around, sought=given["text"], most=MOST_FOUND)
    return {"session": session.label, "steps": [_told(step, cut) for step in found]}


def _read_steps(nexus: Nexus, given: Mapping[str, Any]) -> object:
    session = _session(nexus.ledger, given["session"])
    limit = min(int(given.get("limit") or 20), MOST_STEPS)
    until: str = given.get("until") or ""
    tip = nexus.ledger.step(session.tip) if session.tip else None
    last = find_named(nexus.ledger, until, tip) if until and tip else tip
    if until and last is None:
        raise UsageError(f"there is no step {until!r}", hint="search_history and read_steps tell the ids of steps")
    steps = nexus.ledger.thread(last.id, limit=limit) if last else []
    share = MOST_READ // max(1, sum(len(step.messages) for step in steps))
    cut = partial(_from, int(given.get("offset") or 0), share)
    return {"session": session.label, "steps": [_told(step, cut) for step in steps]}


def _count_tokens(nexus: Nexus, given: Mapping[str, Any]) -> object:
    settings = nexus.load().settings
    model = settings.model_id(str(given.get("model") or ""))
    counter = open_counter(model, host=nexus.host, settings=settings)
    return {"model": model, "counter": counter.name, "exact": counter.exact, **counter.measure(given["text"])._asdict()}


def _check_messages(nexus: Nexus, given: Mapping[str, Any]) -> object:
    found = check(given["messages"], given.get("api") or None, host=nexus.host)
    return {"findings": [{"code": each.code, "message": each.message, "index": each.index} for each in found]}


_TEXT = {"type": "string"}
_API = {"type": "string", "description": "openai, responses, anthropic, gemini, neutral, or what a plugin offers."}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": MOST_STEPS}
_SESSION = {"type": "string", "description": "The session's name; list_sessions lists them."}

SERVED = {
    "assemble_context": Served(
        "The request that a model would be sent here: system prompt, history of a session, message and tools, made to "
        "fit, and without keys and passwords. Nothing is written and no model is called.",
        {"message": _TEXT, "session": _SESSION, "model": _TEXT, "role": _TEXT, "api": _API},
        (),
        _assemble_context,
    ),
    "explain_source": Served(
        "Where a setting (provider.model), a file or a sentence of the prompt comes from, and what it overrode.",
        {"query": _TEXT},
        ("query",),
        _explain_source,
    ),
    "list_sessions": Served(
        "The sessions that work in this directory or further down, those changed last first, without archived ones. "
        "Where there are more, `next` says what to call it again with as `after`.",
        {
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_SESSIONS},
            "after": {"type": "string", "description": "What `next` said of the page before."},
        },
        (),
        list_sessions,
    ),
    "search_history": Served(
        f"The newest steps of a session in which a text occurs, as it is written; of a long message {MOST_FOUND:,} "
        "characters around it.",
        {"session": _SESSION, "text": _TEXT, "limit": _LIMIT},
        ("session", "text"),
        _search_history,
    ),
    "read_steps": Served(
        "Steps of a session, oldest first: the newest, or those up to a step. "
        f"All of it has {MOST_READ:,} characters, the same share for each message; one that is cut says how much is "
        "left, and fewer steps or an offset show it.",
        {
            "session": _SESSION,
            "until": {"type": "string", "description": "The id of a step, or the part of it that a summary shows."},
            "limit": _LIMIT,
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "How many characters of each message to pass over.",
            },
        },
        ("session",),
        _read_steps,
    ),
    "count_tokens": Served(
        "How many tokens a text takes, by which counter, and whether that is exact.",
        {"text": _TEXT, "model": _TEXT},
        ("text",),
        _count_tokens,
    ),
    "check_messages": Served(
        "What an API would refuse in a list of messages.",
        {"messages": {"type": "array", "items": {"type": "object"}}, "api": _API},
        ("messages",),
        _check_messages,
    ),
}
"""The tools by name, in the order in which they are listed."""


def _session(ledger: Ledger, label: str) -> SessionRecord:
    record = ledger.session(label)
    if record is None:
        raise UnknownNameError("session", label, (each.label for each in ledger.sessions()))
    return record


def _told(step: Step, cut: Callable[[str], str]) -> dict[str, object]:
    """A step without secrets; what was said in it as words, as many of them as there is room for."""
    said = [{"role": message.role, "text": cut(words_said(message))} for message in step.messages]
    return {"id": step.id, "kind": step.kind, "turn": step.turn, "position": step.position, "messages": said}


def _from(offset: int, most: int, text: str) -> str:
    """So many characters of a text from a place on, and how many are left."""
    left = len(text) - offset - most
    return text[offset : offset + most] + (f"… [{left:,} more characters]" if left > 0 else "")
