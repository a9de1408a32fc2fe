# ruff: noqa: RUF001 - Chinese punctuation
"""Options of the tagged format, and its phrases in each language."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus_core import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS_PREFIX = "plugins.tagged"
DEFAULT_LIMIT = 20
IDENTITY_FILE = "CORE_IDENTITY.md"
IDENTITY_PATTERN = r"[^/\\\x00]+\.md"
"""The name of a Markdown file without directories, because a project may set it."""


class ConfigService(Protocol):
    """A source of settings, such as `Settings` of Nexus."""

    def get(self, dotted: str, default: object = None, /) -> object:
        """Return the value of a dotted name, or the default."""


class BlockPhrases(NamedTuple):
    """The fixed phrases of one language."""

    tools: str
    no_tools: str
    memory: str
    no_memory: str
    friend: str
    no_friend: str


PHRASES = {
    "en": BlockPhrases(
        tools="Tools you can use:",
        no_tools="(There are no tools at the moment.)",
        memory="Recent conversation memory:",
        no_memory="(Nothing has been said before.)",
        friend="About this friend:",
        no_friend="(Nothing is known about this friend yet.)",
    ),
    "zh": BlockPhrases(
        tools="你可以使用的工具：",
        no_tools="（目前没有可用的工具。）",
        memory="最近的对话记忆：",
        no_memory="（还没有对话记忆。）",
        friend="关于这位朋友：",
        no_friend="（还不了解这位朋友。）",
    ),
}


class TaggedOptions(NamedTuple):
    """Options of the tagged format.

    Attributes:
        language: Language of the headings.
        limit: Maximum number of messages in the memory block.
        single_message: True if the four blocks are one message.
        tool_calls: True if the memory block names the tools that were called.
    """

    language: str = "en"
    limit: int = DEFAULT_LIMIT
    single_message: bool = False
    tool_calls: bool = False

    @property
    def phrases(self) -> BlockPhrases:
        """The phrases of the language."""
        return get_phrases(self.language)


def get_phrases(language: str) -> BlockPhrases:
    """Return the phrases of a language.

    Raises:
        UnknownNameError: The language is not supported.
    """
    try:
        return PHRASES[language]
    except (KeyError, TypeError):
        raise UnknownNameError("language", str(language), PHRASES) from None


def read_options(config: ConfigService | None) -> TaggedOptions:
    """Return the options in the settings, with defaults for missing ones."""
    if config is None:
        return TaggedOptions()
    return _validate_options({name: config.get(f"{SETTINGS_PREFIX}.{name}") for name in TaggedOptions._fields})


def parse_options_note(note: object) -> TaggedOptions | None:
    """Parse the options that a message stores as `TaggedOptions._asdict()`, or None if they are invalid."""
    if not isinstance(note, dict):
        return None
    try:
        return _validate_options({name: note.get(name) for name in TaggedOptions._fields})
    except UsageError:
        return None


def require_limit(limit: object) -> int:
    """Return a limit, or raise UsageError unless it is a number of messages."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise UsageError(f"limit must be a number of messages, not {limit!r}", hint="limit=20")
    return limit


def _validate_options(options: Mapping[str, object]) -> TaggedOptions:
    values = {name: value for name, value in options.items() if value is not None}
    language = str(values.get("language", "en"))
    get_phrases(language)
    return TaggedOptions(
        language=language,
        limit=require_limit(values.get("limit", DEFAULT_LIMIT)),
        single_message=values.get("single_message") is True,
        tool_calls=values.get("tool_calls") is True,
    )
