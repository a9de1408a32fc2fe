# ruff: noqa: RUF001 - Chinese has punctuation of its own
"""How the format is spoken: what the settings say about it, and the words of each language."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus_core import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "plugins.tagged"
LIMIT = 20
IDENTITY = "CORE_IDENTITY.md"
IDENTITY_FORM = r"[^/\\\x00]+\.md"
"""The name of a Markdown file, and nothing that leads elsewhere: a project may set it."""


class Config(Protocol):
    """Where settings come from; `Settings` of Nexus is one."""

    def get(self, dotted: str, default: object = None, /) -> object:
        """The value of a dotted name, or the default."""


class Words(NamedTuple):
    """The fixed phrases of one language."""

    tools: str
    no_tools: str
    memory: str
    no_memory: str
    friend: str
    no_friend: str


WORDS = {
    "en": Words(
        tools="Tools you can use:",
        no_tools="(There are no tools at the moment.)",
        memory="Recent conversation memory:",
        no_memory="(Nothing has been said before.)",
        friend="About this friend:",
        no_friend="(Nothing is known about this friend yet.)",
    ),
    "zh": Words(
        tools="你可以使用的工具：",
        no_tools="（目前没有可用的工具。）",
        memory="最近的对话记忆：",
        no_memory="（还没有对话记忆。）",
        friend="关于这位朋友：",
        no_friend="（还不了解这位朋友。）",
    ),
}


class Options(NamedTuple):
    """What can be set.

    Attributes:
        language: Of headings.
        limit: How many messages are remembered.
        single_message: Whether the four blocks are one message.
        tool_calls: Whether memories name the tools that were used.
    """

    language: str = "en"
    limit: int = LIMIT
    single_message: bool = False
    tool_calls: bool = False

    @property
    def words(self) -> Words:
        """The phrases of the language."""
        return words_of(self.language)


def words_of(language: str) -> Words:
    """The phrases of a language.

    Raises:
        UnknownNameError: There are none.
    """
    try:
        return WORDS[language]
    except (KeyError, TypeError):
        raise UnknownNameError("language", str(language), WORDS) from None


def read_options(config: Config | None) -> Options:
    """What the settings say; what they do not say is as usual."""
    if config is None:
        return Options()
    return _checked({name: config.get(f"{PREFIX}.{name}") for name in Options._fields})


def from_note(note: object) -> Options | None:
    """What `Options._asdict` wrote into a message, or None where that is not what is there."""
    if not isinstance(note, dict):
        return None
    try:
        return _checked({name: note.get(name) for name in Options._fields})
    except UsageError:
        return None


def require_limit(limit: object) -> int:
    """The number, if it is one of messages."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise UsageError(f"limit must be a number of messages, not {limit!r}", hint="limit=20")
    return limit


def _checked(given: Mapping[str, object]) -> Options:
    said = {name: value for name, value in given.items() if value is not None}
    language = str(said.get("language", "en"))
    words_of(language)
    return Options(
        language=language,
        limit=require_limit(said.get("limit", LIMIT)),
        single_message=said.get("single_message") is True,
        tool_calls=said.get("tool_calls") is True,
    )
