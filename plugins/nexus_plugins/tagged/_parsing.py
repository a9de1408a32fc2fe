"""Reads the blocks back, for tools that look at what was sent, and to prove that nothing gets out of its place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import MessageError
from nexus_core.plugin import unescape_markers
from nexus_plugins.tagged._options import WORDS
from nexus_plugins.tagged._tags import HUMAN, MEMORY_LINE, NEXUS, TIME_UNKNOWN, outdented

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAG = re.compile(r"(?:\A|\n\n)\[(CAPABILITIES|SHARED_MEMORY count=(\d+)|FRIENDS_INFO|THIS_MOMENT)\]\n")
_BLOCKS = ("CAPABILITIES", "SHARED_MEMORY", "FRIENDS_INFO", "THIS_MOMENT")
_ITEM = re.compile(r"^- ", re.MULTILINE)
_NAME = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s:]+)(?:: |\n)?')
_SAID = re.compile(
    rf"(?:\A|\n)\[({TIME_UNKNOWN}|\d{{4}}-\d\d-\d\d \d\d:\d\d)\] ({HUMAN}|{NEXUS})(?: \(([^()\n]*)\))?:(?: |(?=\n)|\Z)"
)
_SUMMARY = re.compile(r"<memory_summary>\n(.*?)\n</memory_summary>\n\n", re.DOTALL)
_MOMENT = re.compile(
    r"(?:<current_time>([^<\n]*)</current_time>\n)?"
    r"(?:<current_facts>\n(.*?)\n</current_facts>\n)?"
    r"((?:<current_section>\n.*?\n</current_section>\n)*)"
    r"<human_input>\n(.*)\n</human_input>",
    re.DOTALL,
)
_STRANGERS = {words.no_friend for words in WORDS.values()}
_SECTION = re.compile(r"<current_section>\n(.*?)\n</current_section>\n", re.DOTALL)


class Capability(NamedTuple):
    """A tool as it was described: its name, and everything that was said about it."""

    name: str
    text: str


class Line(NamedTuple):
    """A message that was remembered.

    Attributes:
        time: When it was said, as it was told.
        speaker: `Human` or `Nexus`.
        notes: What tools it used, and what was sent with it, as it was told.
        text: What was said.
    """

    time: str
    speaker: str
    notes: str
    text: str


class Dialogue(NamedTuple):
    """What the four blocks say.

    Attributes:
        capabilities: The tools.
        summary: What stands for everything before.
        memory: The messages that are remembered, the oldest first.
        friend: What is known of the person.
        time: The time of the moment.
        facts: What is known about the occasion, a line each.
        sections: Titled texts about it.
        human_input: What was said.
    """

    capabilities: tuple[Capability, ...]
    summary: str
    memory: tuple[Line, ...]
    friend: str
    time: str
    facts: tuple[str, ...]
    sections: tuple[tuple[str, str], ...]
    human_input: str


def parse(*texts: str) -> Dialogue:
    """What blocks say: the four texts after the system prompt, or the one that holds all four.

    Raises:
        MessageError: They are not the four blocks, in their order.
    """
    whole = "\n\n".join(texts)
    tags = list(_TAG.finditer(whole))
    if [tag[1].partition(" ")[0] for tag in tags] != list(_BLOCKS) or tags[0].start():
        raise MessageError("these are not the blocks of the tagged format", hint=f"expected {', '.join(_BLOCKS)}")
    ends = [*(tag.start() for tag in tags[1:]), len(whole)]
    tools, memory, friends, moment = (whole[tag.end() : end] for tag, end in zip(tags, ends, strict=True))
    found = _MOMENT.fullmatch(moment)
    if found is None:
        raise MessageError("the block [THIS_MOMENT] has not the elements it must have")
    time, facts, sections, said = found.groups("")
    summary, lines = _read_memory(_body(memory))
    return Dialogue(
        capabilities=tuple(_read_tools(_body(tools))),
        summary=summary,
        memory=lines if int(tags[1][2]) else (),
        friend="" if _body(friends) in _STRANGERS else unescape_markers(_body(friends)),
        time=time,
        facts=tuple(unescape_markers(facts).splitlines()),
        sections=tuple(_read_sections(sections)),
        human_input=unescape_markers(said),
    )


def _body(content: str) -> str:
    """What stands below the heading of a block."""
    return content.partition("\n\n")[2]


def _read_tools(body: str) -> Iterator[Capability]:
    for item in _ITEM.split(body)[1:]:
        text = outdented(unescape_markers(item.removesuffix("\n")))
        found = _NAME.match(text)
        if found is not None:
            yield Capability(_unquoted(found[1]), text[found.end() :])


def _read_memory(body: str) -> tuple[str, tuple[Line, ...]]:
    summary = _SUMMARY.match(body)
    rest = body[summary.end() :] if summary else body
    heads = list(_SAID.finditer(rest))
    ends = [*(head.start() for head in heads), len(rest)][1:]
    lines = tuple(
        Line(head[1], head[2], unescape_markers(head[3] or ""), unescape_markers(rest[head.end() : end], MEMORY_LINE))
        for head, end in zip(heads, ends, strict=True)
    )
    return unescape_markers(summary[1]) if summary else "", lines


def _read_sections(text: str) -> Iterator[tuple[str, str]]:
    for body in _SECTION.findall(text):
        title, _, rest = unescape_markers(body).partition("\n")
        yield title, rest


def _unquoted(name: str) -> str:
    import json  # noqa: PLC0415 - most names are words

    return str(json.loads(name)) if name.startswith('"') else name
