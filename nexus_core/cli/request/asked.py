"""What is asked for on the command line: a message, tools, and the circumstances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.cli.given_file import STANDARD_INPUT, read_given_text
from nexus_core.cli.ledger import labels_in
from nexus_core.errors import MessageError, UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from nexus_core.nexus import Nexus
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.request import Request


class Asked(NamedTuple):
    """What was said on the command line; whatever is empty was not.

    Attributes:
        message: What is said, `-` for standard input; None for nothing.
        tools: A file with the tools.
        circumstances: Fields of the request: session, model, renderer, role, mode, permissions, task, skills.
        occasion: What is known about the message: timezone, platform, platform_actions, hook_data.
    """

    message: str | None
    tools: str
    circumstances: Mapping[str, Any]
    occasion: Mapping[str, Any]


def request_of(nexus: Nexus, asked: Asked, directory: Path) -> Request:
    """The request that is asked for.

    Args:
        nexus: Whose request it is.
        asked: What was said.
        directory: Where names of files begin.

    Raises:
        UsageError: The message is empty, or something is told about a message that is not there.
        FileError: The tools or standard input cannot be read.
        MessageError: Something among the tools is none.
    """
    message, tools = asked.message, asked.tools
    told = {name: value for name, value in asked.occasion.items() if value}
    if told and message is None:
        names = "--timezone, --platform, --action and --data"
        raise UsageError(f"{names} describe a message, and there is none", hint="nexus assemble MSG …")
    fields = {name: value for name, value in asked.circumstances.items() if value} | told
    if message is not None:
        fields["message"] = _said(directory, message, is_event="hook_data" in told)
    if tools:
        from nexus_core.cli.session.given_items import read_tools  # noqa: PLC0415 - most give none

        fields["tools"] = read_tools(directory, tools)
    try:
        return nexus.request(**fields)
    except MessageError as error:
        if not error.path.startswith("tools"):
            raise
        raise MessageError(error.what, path=f"{tools}: {error.path}", hint=error.command or error.hint) from None


def would_begin(nexus: Nexus, label: str) -> bool:
    """Whether what is said would begin a session: there is none of that name, and none that could be meant."""
    if not label or nexus.ledger.session(label):
        return False
    return not did_you_mean(label, labels_in(nexus.ledger))


def begin(nexus: Nexus, request: Request) -> AssembledContext:
    """What a session that is not there yet would send first; nothing is written.

    Args:
        nexus: Whose session it would be.
        request: The session, what it is like, and what is said.
    """
    from nexus_core.session.asking.occasion import EVENT  # noqa: PLC0415 - only for what begins a session
    from nexus_core.session.asking.requesting import options_of  # noqa: PLC0415 - as above

    told = {name: value for name in EVENT if (value := getattr(request, name))}
    return nexus.session(request.session, **options_of(request, nexus.dialects)._asdict()).preview(
        request.message, **told
    )


def read_pairs(given: Iterable[str]) -> dict[str, str]:
    """What `--data` says, by name.

    Raises:
        UsageError: One of them is no NAME=VALUE.
    """
    pairs = {}
    for each in given:
        name, found, value = each.partition("=")
        if not found or not name.strip():
            raise UsageError(f"--data takes NAME=VALUE, not {each!r}", hint="--data git=clean")
        pairs[name.strip()] = value
    return pairs


def _said(directory: Path, message: str, *, is_event: bool) -> str:
    text = message
    if message == STANDARD_INPUT:
        text = read_given_text(directory, STANDARD_INPUT)[1].removesuffix("\n")
    try:
        text.encode()
    except UnicodeEncodeError:  # what Python makes of an argument that is not UTF-8
        raise UsageError("the message is not UTF-8", hint="save it as UTF-8") from None
    if not text.strip() and not is_event:
        raise UsageError("the message is empty", hint="leave it out to see what would be sent without one")
    return text
