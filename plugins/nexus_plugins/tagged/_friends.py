"""The block `[FRIENDS_INFO]`: what is known about the person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from nexus_core.plugin import escape_markers
from nexus_plugins.tagged._options import words_of
from nexus_plugins.tagged._tags import FRIENDS_INFO, block, one_line

if TYPE_CHECKING:
    from nexus_plugins.tagged._options import Words

KEYS = ("friends_profile", "learning")
"""What a profile may be called; the second is its old name."""


class FriendsInfoFormatter:
    """Puts a profile into the block `[FRIENDS_INFO]`."""

    @staticmethod
    def format_friends_info(user_profile: Mapping[str, object] | None, *, language: str = "en") -> str:
        """What a profile says.

        Args:
            user_profile: `{"prompt_overrides": {"friends_profile": "…"}}`; without it `learning` is used. What stands
                there may be a text, a list or an object.
            language: Of the heading.
        """
        return friends_block(user_profile, words_of(language))


def friends_block(profile: Mapping[str, object] | None, words: Words) -> str:
    """The block."""
    text = next((text for text in _texts(profile) if text.strip()), "")
    return block(FRIENDS_INFO, words.friend, escape_markers(text) if text else words.no_friend)


def _texts(profile: object) -> Iterator[str]:
    if not isinstance(profile, Mapping):
        return
    for holder in (profile.get("prompt_overrides"), profile):
        if isinstance(holder, Mapping):
            yield from (_told(holder.get(key)) for key in KEYS)


def _told(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(f"- {one_line(name)}: {one_line(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(f"- {one_line(each)}" for each in value)
    return "" if value is None else one_line(value)
