"""Operands of `nexus diff`: steps, sessions, models and request files."""

from __future__ import annotations

import os
from itertools import chain
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.cli.input import parse_input_json, read_input_text
from nexus_core.cli.session_lookup import get_session_names, match_session
from nexus_core.dialects.neutral import decode_value
from nexus_core.dialects.registry import read_messages
from nexus_core.errors import FileError, MessageError, UnknownNameError, UsageError, did_you_mean
from nexus_core.ledger.ledger import walk_back
from nexus_core.request.cache_report import find_expiry
from nexus_core.request.diff import CallContent, build_call_content
from nexus_core.thread.lookup import find_step
from nexus_core.tokens.counters import open_counter
from nexus_core.tokens.messages import count_tools
from nexus_core.transcripts.read import load_formats, read_transcript
from nexus_core.types.budget import Decision
from nexus_core.types.messages import Message, Tool
from nexus_core.types.prompt import Placement, Source

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.nexus import Nexus
    from nexus_core.types.assembled import CacheMiss
    from nexus_core.types.ledger import Ledger, Step

OPERAND_KINDS = ("file", "session", "step", "model")
"""Prefixes that name the kind of an operand, if its name is ambiguous: `session:auth-bug`."""


class DiffOperand(NamedTuple):
    """Something that can be compared.

    Attributes:
        kind: One of `KINDS`; "" for this directory.
        name: Its name.
        conversation: Of a model, the session that it is asked in; "" for none.
    """

    kind: str
    name: str
    conversation: str = ""

    def __str__(self) -> str:
        if not self.kind:
            return "what goes to a model here"
        return f"{self.kind} {self.name}{f' in session {self.conversation}' if self.conversation else ''}"

    def read(self, nexus: Nexus) -> CallContent:
        """Return the request. For a session, model or directory, it is the one that would be sent now."""
        if self.kind == "file":
            return read_request_file(nexus, nexus.cwd, self.name)
        if self.kind == "step":
            return build_call_content(nexus.replay(self.name))
        return build_call_content(nexus.assemble(nexus.request(**self._request_options), must_fit=False))

    @property
    def session(self) -> str:
        """The session whose directory is read; "" for none."""
        return self.name if self.kind == "session" else self.conversation

    @property
    def command(self) -> list[str]:
        """The command that prints it, with everything that is known of it."""
        if self.kind == "step":
            return ["session", "replay", self.name, "--json"]
        named = ((f"--{kind}", name) for kind, name in self._request_options.items())
        return ["assemble", *chain(*named), "--json"]

    @property
    def _request_options(self) -> dict[str, Any]:
        """Options of the request that the operand implies."""
        options = {self.kind: self.name, "session": self.session}
        return {kind: name for kind, name in options.items() if name}


def find_operand(nexus: Nexus, given: str) -> DiffOperand:
    """Return what a name refers to: a file, else a session, a step or a known model, in this order.

    Raises:
        UnknownNameError: There is nothing of that name.
    """
    kind, found, name = given.partition(":")
    if found and kind in OPERAND_KINDS:
        return DiffOperand(kind, name)
    if os.path.isfile(nexus.cwd / given):  # noqa: PTH113 - Path.is_file raises where a name is none
        return DiffOperand("file", given)
    ledger = nexus.ledger
    if ledger.session(given) is not None:
        return DiffOperand("session", given)
    step = find_step(ledger, given)
    if step is not None:
        return DiffOperand("step", step.id)
    models = sorted(name.rstrip("*") for name in nexus.host.models())
    if given in models:
        return DiffOperand("model", given)
    if (record := match_session(ledger, given)) is not None:
        return DiffOperand("session", record.label)
    near = [name for name in models if did_you_mean(given, [name])]
    raise UnknownNameError("file, session, step or model", given, [*get_session_names(ledger), *near])


def find_operand_pair(nexus: Nexus, a: str, b: str) -> tuple[DiffOperand, DiffOperand]:
    """Return what two names refer to. A model beside a session means a request to it in that session."""
    first, second = find_operand(nexus, a), find_operand(nexus, b)
    for one, other in ((first, second), (second, first)):
        if one.kind == "session" and other.kind == "model":
            asked = other._replace(conversation=one.name)
            return (first, asked) if other is second else (asked, second)
    return first, second


def find_call_pair(nexus: Nexus, operand: DiffOperand) -> tuple[DiffOperand, DiffOperand]:
    """Return the last call of a session, or the call of a reply, and the call before it.

    Raises:
        UsageError: There is no call or none before it, or the operand is neither a session nor a step.
    """
    ledger = nexus.ledger
    if operand.kind == "session":
        record = ledger.session(operand.name)
        last = find_newest_call(ledger, record.tip if record else None)
    elif operand.kind == "step":
        last = find_step(ledger, operand.name)
    else:
        raise UsageError(f"there is nothing to compare {operand} with", hint="nexus diff A B, nexus diff --exit-code A")
    if last is None:
        name = quote(operand.name)
        hint = f"`nexus diff {name} B` compares what it would send now with B; `nexus session show {name}` prints it"
        raise UsageError(f"Nexus has sent nothing in {operand} yet that was answered", hint=hint)
    before = find_newest_call(ledger, last.parent)
    if before is None:
        what = "there is only one call in" if operand.kind == "session" else "there is no call before"
        raise UsageError(f"{what} {operand}", hint="nexus diff A B compares any two")
    return DiffOperand("step", before.id), DiffOperand("step", last.id)


def find_newest_call(ledger: Ledger, tip: str | None) -> Step | None:
    """Return the newest reply to a call of Nexus, or None if the newest reply was imported."""
    reply = next((step for step in walk_back(ledger, tip, batch_size=50) if step.kind == "reply"), None)
    return reply if reply is not None and reply.payload.epoch else None


def find_operand_expiry(ledger: Ledger, before: DiffOperand, after: DiffOperand) -> CacheMiss | None:
    """Return why the call of one reply found nothing of the other's in the cache: too much time between them."""
    replies = find_step(ledger, before.name), find_step(ledger, after.name)
    if replies[0] is None or replies[1] is None or replies[1].parent is None:
        return None
    sent = ledger.step(replies[1].parent)  # a call is sent when the step before its reply is recorded
    return None if sent is None else find_expiry(replies[0], sent.created)


_REPORT_KEYS = {"schema", "system_prompt", "placements"}


def read_request_file(nexus: Nexus, directory: Path, name: str) -> CallContent:
    """Return the request in a file: what `nexus assemble` has printed, or a request of any API.

    Args:
        nexus: Whose counters count, where the file does not say.
        directory: Where names begin.
        name: The file.

    Raises:
        ConfigError: It is not JSON; shows where.
        FileError: It cannot be read, or is something else.
        MessageError: Something in it is in no shape that is known.
    """
    path, text = read_input_text(directory, name)
    value = parse_input_json(path, text, text) if text.lstrip().startswith("{") and "\n{" not in text else None
    if isinstance(value, dict) and value.keys() >= _REPORT_KEYS:
        return parse_request_report(value, name)
    return _parse_request_body(nexus, text, name, value)


def parse_request_report(value: dict[str, Any], name: str) -> CallContent:
    """Return the request that `nexus assemble --json` printed."""
    try:
        current = value["current_message"]
        messages = [*value["history"], *([] if current is None else [current]), *value["progress"]]
        return CallContent(
            model=value["model"],
            system_prompt=value["system_prompt"],
            tools=tuple(decode_value(Tool, tool) for tool in value["tools"]),
            messages=tuple(decode_value(Message, message) for message in messages),
            tool_tokens=tuple(_get_tool_tokens(tool["name"], value["placements"]) for tool in value["tools"]),
            message_tokens=tuple(value["message_tokens"]),
            system_tokens=value["budget"]["used"]["system"],
            renderer=value["renderer"],
            placements=tuple(map(_placement_from_json, value["placements"])),
        )
    except (KeyError, TypeError, ValueError, MessageError) as error:
        raise FileError(
            "not as `nexus assemble --json` writes it", where=name, hint=f"something is wrong with {error}"
        ) from None


def _get_tool_tokens(tool: str, placements: list[dict[str, Any]]) -> int:
    return next((each["tokens"] for each in placements if each["kind"] == "tool" and each["name"] == tool), 0)


def _placement_from_json(value: dict[str, Any]) -> Placement:
    lines = value["source"]["lines"]
    source = Source(**{**value["source"], "lines": tuple(lines) if lines else None})
    return Placement(**{**value, "source": source, "decision": Decision(**value["decision"])})


def _parse_request_body(nexus: Nexus, text: str, name: str, value: object) -> CallContent:
    transcript = read_transcript(text, name, nexus.dialects, formats=load_formats(nexus.host))
    spoken = [*transcript.system, *(entry.message for entry in transcript.context)]
    first = next((place for place, message in enumerate(spoken) if message.role != "system"), len(spoken))
    system = "\n".join(message.content for message in spoken[:first])
    model = _get_model(value) or transcript.model
    return _count_request(
        nexus, CallContent(model, system, transcript.tools, tuple(spoken[first:]), (), (), 0, transcript.api)
    )


def _get_model(body: object) -> str:
    """Return the model of a request body, in the neutral format from `extra`; "" if there is none."""
    fields = body if isinstance(body, dict) else {}
    extra = fields.get("extra")
    found = fields.get("model") or (extra.get("model") if isinstance(extra, dict) else None)
    return found if isinstance(found, str) else ""


def translate_request(nexus: Nexus, sendable: CallContent, api: str) -> CallContent:
    """Return a request converted to an API's format and back, so that both sides compare alike."""
    if sendable.api == api or not api:
        return sendable
    speaking = nexus.dialects.get(api)
    messages = read_messages(speaking, speaking.write(sendable.messages))
    tools = speaking.read_tools(speaking.write_tools(sendable.tools))
    again = sendable._replace(messages=messages, tools=tools, api=api)
    return again if len(messages) == len(sendable.messages) else _count_request(nexus, again)


def _count_request(nexus: Nexus, sendable: CallContent) -> CallContent:
    """Return a request with what its pieces take."""
    counter = open_counter(sendable.model, host=nexus.host, settings=nexus.load().settings)
    words = sendable.system_prompt
    return sendable._replace(
        tool_tokens=tuple(count_tools(counter, [tool]) for tool in sendable.tools),
        message_tokens=tuple(counter.count_messages([message]) for message in sendable.messages),
        system_tokens=counter.count_messages([Message("system", words)]) if words else 0,
    )
