"""Messages in a shape that is new: kept whole, so that the conversation has no gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from nexus_core.dialects.transcripts.lines import require_shallow
from nexus_core.errors import MessageError
from nexus_core.values.message import Message
from nexus_core.values.parts import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.values.message import Role
    from nexus_core.values.parts import JSON

    Given = TypeVar("Given")
    Read = TypeVar("Read")


def attempt(read: Callable[[Given], Read], given: Given, account: Account, line: int) -> Read | None:
    """What is read from something, or None and a note that says why not."""
    try:
        return read(given)
    except MessageError as error:
        account.note(line, f"kept as it is: {error.what}" + (f" at {error.path}" if error.path else ""))
        return None


def kept(role: Role, form: str, block: JSON) -> Message:
    """A message that nobody can read but the program that wrote it; without its content where that is bottomless."""
    try:
        require_shallow(dict(block))
    except MessageError as error:
        block = {"type": error.what}
    return Message(role, (Opaque(form, block),))
