"""The two ways in which endpoints are spoken to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from nexus_plugins.providers import _anthropic, _openai

if TYPE_CHECKING:
    from nexus_core.plugin import SummaryRequest
    from nexus_plugins.providers._secrets import Secret


class WireFormat(Protocol):
    """What a module has to say that speaks to endpoints of one kind.

    Attributes:
        ADDRESS: Where the maker of the API serves it.
        HEADERS: What is sent with every request; all names of headers are in small letters.
    """

    ADDRESS: str
    HEADERS: dict[str, str]

    def url(self, base_url: str, /) -> str:
        """Where requests go."""

    def authorise(self, key: Secret, /) -> dict[str, Secret]:
        """The header with the key."""

    def write(self, request: SummaryRequest, model: str, base_url: str, /) -> dict[str, Any]:
        """The body of a request for a summary."""

    def read(self, reply: object, /) -> str:
        """The summary in an answer; raises NoSummary where there is none."""


FORMATS: dict[str, WireFormat] = {"openai": _openai, "anthropic": _anthropic}
