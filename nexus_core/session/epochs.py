"""System prompt and tools of a session, frozen so that every call begins with the same bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.finding import dialect
from nexus_core.dialects.neutral.json_form import decode, encode
from nexus_core.errors import LedgerError
from nexus_core.history.ledger.texts import joined_halves
from nexus_core.values.conversation import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.session.place import Place
    from nexus_core.values.ledger import Ledger
    from nexus_core.values.settings import Settings


class Epoch(NamedTuple):
    """What is frozen.

    Attributes:
        digest: Its address in the ledger.
        system: The system prompt.
        tools: What the model may ask for.
    """

    digest: str
    system: str
    tools: tuple[Tool, ...]


class Epochs:
    """The epochs of a session; each is read once.

    Args:
        place: Where the session lives.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._known: dict[str, Epoch] = {}

    def current(self, digest: str | None, tools: tuple[Tool, ...] | None, *, keep: bool = True) -> Epoch:
        """The epoch that goes on, or a new one: the first, or because the tools are others now.

        Args:
            digest: The epoch so far.
            tools: What the caller offers now; None for what was offered before.
            keep: Whether a new epoch is stored.
        """
        epoch = None if digest is None else self.read(digest)
        if epoch is not None:
            offered = epoch.tools if tools is None else tools
            permitted = permit(offered, self._place.settings)
            if permitted == epoch.tools:
                return epoch
            return self._begin(permitted, keep=keep)
        return self._begin(permit(tools or (), self._place.settings), keep=keep)

    def read(self, digest: str) -> Epoch:
        """The epoch of that address.

        Raises:
            LedgerError: It is not there.
        """
        if digest not in self._known:
            ledger = self._place.ledger
            self._known[digest] = _decoded(digest, ledger)
        return self._known[digest]

    def _begin(self, tools: tuple[Tool, ...], *, keep: bool) -> Epoch:
        system = self._place.system()
        if not keep:
            return Epoch("", system, tools)
        digest = self._place.ledger.put_blob(_written({"system": system, "tools": [encode(tool) for tool in tools]}))
        return self.read(digest)


def read_tools(tools: Iterable[object], api: str) -> tuple[Tool, ...]:
    """Definitions in the shape of any API; the model's own decides what several could mean."""
    read = dialect(api or "openai").read_tools(tools)
    # As they come back from the ledger, so that equal ones are equal.
    return tuple(decode(Tool, json.loads(_written(encode(tool)))) for tool in read)


def permit(tools: Iterable[Tool], settings: Settings) -> tuple[Tool, ...]:
    """The tools that the settings allow."""
    allow, deny = settings.get("permissions.tools.allow"), settings.get("permissions.tools.deny")
    denied = deny if isinstance(deny, list) else ()
    return tuple(
        tool for tool in tools if tool.name not in denied and (not isinstance(allow, list) or tool.name in allow)
    )


def _written(value: object) -> bytes:
    # In the order of the caller: a model reads the parameters of a tool in the order in which they are written.
    return joined_halves(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()


def _decoded(digest: str, ledger: Ledger) -> Epoch:
    content = ledger.blob(digest)
    if content is None:
        raise LedgerError(
            f"the system prompt of this session is missing: there is no blob {digest}",
            where=ledger.url,
            hint="`nexus session verify` says what else is missing",
        )
    body = json.loads(content)
    return Epoch(digest, body["system"], tuple(decode(Tool, tool) for tool in body["tools"]))
