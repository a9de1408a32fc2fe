"""Parser of the four blocks, for tools that inspect what was sent."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import MessageError
from nexus_core.plugin.text import unescape_markers
from nexus_plugins.tagged._blocks import HUMAN_SPEAKER, MEMORY_LINE, NEXUS_SPEAKER, TIME_UNKNOWN, dedent_lines
from nexus_plugins.tagged._options import PHRASES

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK_TAG = re.compile(r"(?:\A|\n\n)\[(CAPABILITIES|SHARED_MEMORY count=(\d+)|FRIENDS_INFO|THIS_MOMENT)\]\n")
_BLOCK_NAMES = ("CAPABILITIES", "SHARED_MEMORY", "FRIENDS_INFO", "THIS_MOMENT")
_TOOL_ITEM = re.compile(r"^- ", re.MULTILINE)
_TOOL_NAME = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s:]+)(?:: |\n)?')
_MEMORY_HEAD = re.compile(
    rf"(?:\A|\n)\[({TIME_UNKNOWN}|\d{{4}}-\d\d-\d\d \d\d:\d\d)\] ({HUMAN_SPEAKER}|{NEXUS_SPEAKER})"
    r"(?: \(([^()\n]*)\))?:(?: |(?=\n)|\Z)"
)
_MEMORY_SUMMARY = re.compile(r"<memory_summary>\n(.*?)\n</memory_summary>\n\n", re.DOTALL)
_SECTION_END = "\n</current_section>\n"
# Texts have no such tags of their own, so the first end is the only one, and no other is tried.
_MOMENT_BODY = re.compile(
    r"(?>(?:<current_time>([^<\n]*+)</current_time>\n)?)"
    r"(?>(?:<current_facts>\n(.*?)\n</current_facts>\n)?)"
    rf"((?>(?:<current_section>\n(?>.*?{_SECTION_END}))*))"
    r"<human_input>\n(.*)\n</human_input>",
    re.DOTALL,
)
_NO_FRIEND_PHRASES = {phrases.no_friend for phrases in PHRASES.values()}


class ParsedTool(NamedTuple):
    """A tool of the block: its name and its description with parameters."""

    name: str
    text: str


class ParsedMemory(NamedTuple):
    """A message of the memory block.

    Attributes:
        time: Its time, as the block shows it.
        speaker: `Human` or `Nexus`.
        notes: Its tools and media, as the block shows them.
        text: Its text.
    """

    time: str
    speaker: str
    notes: str
    text: str


class Dialogue(NamedTuple):
    """The content of the four blocks.

    Attributes:
        capabilities: The tools.
        summary: The summary of older messages; "" if there is none.
        memory: The remembered messages, oldest first.
        friend: The profile of the user; "" if there is none.
        time: The time of the user message; "" if there is none.
        facts: Metadata of the user message, a line each.
        sections: Title and text of further sections.
        human_input: The text of the user message.
    """

    capabilities: tuple[ParsedTool, ...]
    summary: str
    memory: tuple[ParsedMemory, ...]
    friend: str
    time: str
    facts: tuple[str, ...]
    sections: tuple[tuple[str, str], ...]
    human_input: str


def parse(*texts: str) -> Dialogue:
    """Parse the four blocks: four texts after the system prompt, or one text with all of them.

    Raises:
        MessageError: The texts are not the four blocks in order.
    """
    joined = "\n\n".join(texts)
    tags = list(_BLOCK_TAG.finditer(joined))
    if [tag[1].partition(" ")[0] for tag in tags] != list(_BLOCK_NAMES) or tags[0].start():
        raise MessageError("these are not the blocks of the tagged format", hint=f"expected {', '.join(_BLOCK_NAMES)}")
    ends = [*(tag.start() for tag in tags[1:]), len(joined)]
    tools, memory, friends, moment = (joined[tag.end() : end] for tag, end in zip(tags, ends, strict=True))
    found = _MOMENT_BODY.fullmatch(moment)
    if found is None:
        raise MessageError("the block [THIS_MOMENT] lacks required elements, or has others")
    time, facts, sections, human_input = found.groups("")
    summary, lines = _read_memory(_get_block_body(memory))
    return Dialogue(
        capabilities=tuple(_read_tools(_get_block_body(tools))),
        summary=summary,
        memory=lines if int(tags[1][2]) else (),
        friend="" if _get_block_body(friends) in _NO_FRIEND_PHRASES else unescape_markers(_get_block_body(friends)),
        time=time,
        facts=tuple(unescape_markers(facts).splitlines()),
        sections=tuple(_read_sections(sections)),
        human_input=unescape_markers(human_input),
    )


def _get_block_body(content: str) -> str:
    """Return the part of a block below its heading."""
    return content.partition("\n\n")[2]


def _read_tools(body: str) -> Iterator[ParsedTool]:
    for item in _TOOL_ITEM.split(body)[1:]:
        text = dedent_lines(unescape_markers(item.removesuffix("\n")))
        found = _TOOL_NAME.match(text)
        if found is not None:
            yield ParsedTool(_unquote_name(found[1]), text[found.end() :])


def _read_memory(body: str) -> tuple[str, tuple[ParsedMemory, ...]]:
    summary = _MEMORY_SUMMARY.match(body)
    rest = body[summary.end() :] if summary else body
    heads = list(_MEMORY_HEAD.finditer(rest))
    ends = [*(head.start() for head in heads), len(rest)][1:]
    lines = tuple(
        ParsedMemory(
            head[1],
            head[2],
            unescape_markers(head[3] or ""),
            unescape_markers(rest[head.end() : end], MEMORY_LINE),
        )
        for head, end in zip(heads, ends, strict=True)
    )
    return unescape_markers(summary[1]) if summary else "", lines


def _read_sections(text: str) -> Iterator[tuple[str, str]]:
    for section in text.split(_SECTION_END)[:-1]:
        title, _, rest = unescape_markers(section.removeprefix("<current_section>\n")).partition("\n")
        yield title, rest


def _unquote_name(name: str) -> str:
    return str(json.loads(name)) if name.startswith('"') else name
