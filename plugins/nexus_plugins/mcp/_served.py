"""What Nexus answers when it is a server itself: tools, as plain functions on a Nexus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import UnknownNameError, UsageError, check
from nexus_core.plugin import explain, find_named, open_counter, redact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nexus_core import Nexus
    from nexus_core.plugin import Ledger, SessionRecord, Step

MOST_STEPS = 50
"""How many steps are told at once."""
LONGEST_STEP = 4_000
"""Characters that are told of one step in a search; `read_steps` tells all of it."""
WITHIN = 10_000
"""How many steps of a session are looked through."""


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
    context = nexus.assemble(nexus.request(**fields))
    api = given.get("api") or "openai"
    return {"request": context.to(api), "tokens": context.token_budget.total, "window": context.token_budget.limit}


def _explain_source(nexus: Nexus, given: Mapping[str, Any]) -> object:
    return {"explanations": [each._asdict() for each in explain(nexus.context(), given["query"])]}


def _search_history(nexus: Nexus, given: Mapping[str, Any]) -> object:
    if not given["text"]:
        raise UsageError("there is nothing to look for", hint="text must not be empty")
    session = _session(nexus.ledger, given["session"])
    limit = min(int(given.get("limit") or 20), MOST_STEPS)
    found = nexus.ledger.scan(session.tip, given["text"], limit=limit, within=WITHIN) if session.tip else []
    return {"session": session.label, "steps": [_told(step, LONGEST_STEP) for step in found]}


def _read_steps(nexus: Nexus, given: Mapping[str, Any]) -> object:
    session = _session(nexus.ledger, given["session"])
    limit = min(int(given.get("limit") or 20), MOST_STEPS)
    until: str = given.get("until") or ""
    tip = nexus.ledger.step(session.tip) if session.tip else None
    last = find_named(nexus.ledger, until, tip) if until and tip else tip
    if until and last is None:
        raise UsageError(f"there is no step {until!r}", hint="search_history and read_steps tell the ids of steps")
    steps = nexus.ledger.thread(last.id, limit=limit) if last else []
    return {"session": session.label, "steps": [_told(step) for step in steps]}


def _count_tokens(nexus: Nexus, given: Mapping[str, Any]) -> object:
    settings = nexus.load().settings
    model = given.get("model") or str(settings.get("provider.model") or "")
    counter = open_counter(model, host=nexus.host, settings=settings)
    return {"model": model, "counter": counter.name, "exact": counter.exact, **counter.measure(given["text"])._asdict()}


def _check_messages(_nexus: Nexus, given: Mapping[str, Any]) -> object:
    found = check(given["messages"], given.get("api") or None)
    return {"findings": [{"code": each.code, "message": each.message, "index": each.index} for each in found]}


_TEXT = {"type": "string"}
_API = {"type": "string", "enum": ["openai", "responses", "anthropic", "gemini", "neutral"]}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": MOST_STEPS}
_SESSION = {"type": "string", "description": "The session's name; `nexus session list` lists them."}

SERVED = {
    "assemble_context": Served(
        "The request that a model would be sent here: system prompt, history of a session, message and tools, made to "
        "fit. Nothing is written and no model is called.",
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
    "search_history": Served(
        "The newest steps of a session in which a text occurs, as it is written.",
        {"session": _SESSION, "text": _TEXT, "limit": _LIMIT},
        ("session", "text"),
        _search_history,
    ),
    "read_steps": Served(
        "Steps of a session, oldest first: the newest, or those up to a step.",
        {
            "session": _SESSION,
            "until": {"type": "string", "description": "The id of a step, or the part of it that a summary shows."},
            "limit": _LIMIT,
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


def _told(step: Step, longest: int | None = None) -> dict[str, object]:
    """A step without secrets; what was said in it as words."""
    said = [{"role": message.role, "text": _words(message, longest)} for message in step.messages]
    return {"id": step.id, "kind": step.kind, "turn": step.turn, "position": step.position, "messages": said}


def _words(message: Any, longest: int | None) -> str:  # noqa: ANN401 - a message
    calls = [f"[calls {call.name}]" for call in message.tool_calls]
    results = [f"[result of {result.name}] {result.text}" for result in message.tool_results]
    text = redact("\n".join(filter(None, [message.content, *calls, *results]))).text
    return text if longest is None or len(text) <= longest else f"{text[:longest]}…"
