"""Requests that were written into files: by `nexus assemble`, or by anybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.assembly.sides import Sendable
from nexus_core.cli.given_file import read_given_text
from nexus_core.cli.given_json import parse_json
from nexus_core.dialects.finding import read_messages
from nexus_core.dialects.neutral.json_form import decode
from nexus_core.dialects.transcripts.reading import read_transcript
from nexus_core.errors import FileError, MessageError
from nexus_core.tokens.counters import open_counter
from nexus_core.tokens.messages import count_tools
from nexus_core.values.budget import Decision
from nexus_core.values.conversation import Tool
from nexus_core.values.message import Message
from nexus_core.values.placement import Placement
from nexus_core.values.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.nexus import Nexus

_OWN = {"schema", "system_prompt", "placements"}


def read_written(nexus: Nexus, directory: Path, name: str) -> Sendable:
    """The request in a file: what `nexus assemble` has printed, or a request of any API.

    Args:
        nexus: Whose counters count, where the file does not say.
        directory: Where names begin.
        name: The file.

    Raises:
        ConfigError: It is not JSON; shows where.
        FileError: It cannot be read, or is something else.
        MessageError: Something in it is in no shape that is known.
    """
    path, text = read_given_text(directory, name)
    value = parse_json(path, text, text) if text.lstrip().startswith("{") and "\n{" not in text else None
    if isinstance(value, dict) and value.keys() >= _OWN:
        return read_own(value, name)
    return _read_body(nexus, text, name, value)


def read_own(value: dict[str, Any], name: str) -> Sendable:
    """What `nexus assemble --json` has printed."""
    try:
        current = value["current_message"]
        messages = [*value["history"], *([] if current is None else [current]), *value["progress"]]
        return Sendable(
            model=value["model"],
            system_prompt=value["system_prompt"],
            tools=tuple(decode(Tool, tool) for tool in value["tools"]),
            messages=tuple(decode(Message, message) for message in messages),
            tool_tokens=tuple(_size_of(tool["name"], value["placements"]) for tool in value["tools"]),
            message_tokens=tuple(value["message_tokens"]),
            system_tokens=value["budget"]["used"]["system"],
            renderer=value["renderer"],
            placements=tuple(map(_placement, value["placements"])),
        )
    except (KeyError, TypeError, ValueError, MessageError) as error:
        raise FileError(
            "not as `nexus assemble --json` writes it", where=name, hint=f"something is wrong with {error}"
        ) from None


def _size_of(tool: str, placements: list[dict[str, Any]]) -> int:
    return next((each["tokens"] for each in placements if each["kind"] == "tool" and each["name"] == tool), 0)


def _placement(value: dict[str, Any]) -> Placement:
    lines = value["source"]["lines"]
    source = Source(**{**value["source"], "lines": tuple(lines) if lines else None})
    return Placement(**{**value, "source": source, "decision": Decision(**value["decision"])})


def _read_body(nexus: Nexus, text: str, name: str, value: object) -> Sendable:
    transcript = read_transcript(text, name, nexus.dialects)
    spoken = [*transcript.system, *(entry.message for entry in transcript.context)]
    first = next((place for place, message in enumerate(spoken) if message.role != "system"), len(spoken))
    system = "\n".join(message.content for message in spoken[:first])
    model = _model_in(value) or transcript.model
    return _counted(nexus, Sendable(model, system, transcript.tools, tuple(spoken[first:]), (), (), 0, transcript.api))


def _model_in(body: object) -> str:
    """Whom a request goes to; Nexus's own form has that among what no API has a word for in common."""
    fields = body if isinstance(body, dict) else {}
    extra = fields.get("extra")
    found = fields.get("model") or (extra.get("model") if isinstance(extra, dict) else None)
    return found if isinstance(found, str) else ""


def translated(nexus: Nexus, sendable: Sendable, api: str) -> Sendable:
    """A request as it comes back when an API's words for it are read; only what is said alike can be compared."""
    if sendable.api == api or not api:
        return sendable
    speaking = nexus.dialects.get(api)
    messages = read_messages(speaking, speaking.write(sendable.messages))
    tools = speaking.read_tools(speaking.write_tools(sendable.tools))
    again = sendable._replace(messages=messages, tools=tools, api=api)
    return again if len(messages) == len(sendable.messages) else _counted(nexus, again)


def _counted(nexus: Nexus, sendable: Sendable) -> Sendable:
    """A request with what its pieces take."""
    counter = open_counter(sendable.model, host=nexus.host, settings=nexus.load().settings)
    words = sendable.system_prompt
    return sendable._replace(
        tool_tokens=tuple(count_tools(counter, [tool]) for tool in sendable.tools),
        message_tokens=tuple(counter.count_messages([message]) for message in sendable.messages),
        system_tokens=counter.count_messages([Message("system", words)]) if words else 0,
    )
