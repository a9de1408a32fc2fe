"""What is asked for on the command line: a message, tools, and the circumstances."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.errors import MessageError, UsageError

if TYPE_CHECKING:
    from nexus_core.nexus import Nexus
    from nexus_core.values.request import Request

STANDARD_INPUT = "-"


class Asked(NamedTuple):
    """What was said on the command line; "" and nothing for what was not.

    Attributes:
        message: The message, `-` for standard input; None without one.
        tools: The file with the tools.
        session, model, renderer, role, task: As for a request.
        skills: The skills that a worker is told about.
        timezone, platform, actions: As for a request: what is known about the occasion of the message.
        data: What programs say about it, as `name=value`.
    """

    message: str | None = None
    tools: str = ""
    session: str = ""
    model: str = ""
    renderer: str = ""
    role: str = ""
    task: str = ""
    skills: tuple[str, ...] = ()
    timezone: str = ""
    platform: str = ""
    actions: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    def request(self, nexus: Nexus) -> Request:
        """The request that it makes.

        Raises:
            UsageError: The message is empty, or something is told about a message that is not there.
            FileError: The tools or standard input cannot be read.
            MessageError: Something among the tools is none.
        """
        fields: dict[str, Any] = {
            name: getattr(self, name) for name in ("session", "model", "renderer", "role", "task", "skills")
        }
        fields |= self._occasion() | {"message": self._said(nexus.cwd)}
        if self.tools:
            from nexus_core.cli.session.given_items import read_tools  # noqa: PLC0415 - most give none

            fields["tools"] = read_tools(nexus.cwd, self.tools)
        try:
            return nexus.request(**{name: value for name, value in fields.items() if value})
        except MessageError as error:
            if not error.path.startswith("tools"):
                raise
            raise MessageError(error.what, path=f"{self.tools}: {error.path}", hint=error.hint) from None

    def _occasion(self) -> dict[str, Any]:
        told = {"timezone": self.timezone, "platform": self.platform, "platform_actions": self.actions}
        occasion: dict[str, Any] = {name: value for name, value in told.items() if value}
        if self.data:
            occasion["hook_data"] = dict(map(_pair, self.data))
        if occasion and self.message is None:
            raise UsageError(
                "--timezone, --platform, --action and --data tell about a message, and there is none",
                hint="nexus assemble MSG …",
            )
        return occasion

    def _said(self, directory: Path) -> str | None:
        if self.message is None:
            return None
        text = _read_words(directory) if self.message == STANDARD_INPUT else self.message
        try:
            text.encode()
        except UnicodeEncodeError:  # what Python makes of an argument that is not UTF-8
            raise UsageError("the message is not UTF-8", hint="save it as UTF-8") from None
        if not text.strip() and not self.data:
            raise UsageError("the message is empty", hint="leave it out to see what goes to the model without one")
        return text


def _read_words(directory: Path) -> str:
    from nexus_core.cli.given_file import read_given  # noqa: PLC0415 - most messages are arguments
    from nexus_core.files.reading import decode_text  # noqa: PLC0415 - as above

    return decode_text(Path("<stdin>"), read_given(directory, STANDARD_INPUT)).removesuffix("\n")


def _pair(given: str) -> tuple[str, str]:
    name, found, value = given.partition("=")
    if not found or not name.strip():
        raise UsageError(f"--data takes NAME=VALUE, not {given!r}", hint="--data git=clean")
    return name.strip(), value
