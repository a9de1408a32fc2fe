"""Rules with front matter: the condition under which an agent reads a rule, and the rule itself.

Agents accept patterns that YAML does not: `globs: *.ts` begins like a reference, `{src,lib}/**` like an object. Such
values are quoted before the front matter is parsed. What still cannot be parsed is an error with its line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.text.front_matter import FRONT_MATTER_FENCE, MAX_HEAD_LINES, FrontMatterError, read_front_matter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.text.front_matter import FlowValue

PATTERN_KEYS = ("globs", "applyTo", "paths")
"""The fields in which agents name the files that a rule is for."""

# Lines without blanks at their end.
_PATTERN_LINE = re.compile(rf"(?P<key>(?:{'|'.join(PATTERN_KEYS)})[ \t]*+:[ \t]++)(?P<value>[^\s\"'\[#].*)")
_PATTERN_ITEM = re.compile(r"(?P<key>[ \t]*+-[ \t]++)(?P<value>[*{!][^\"']*)")
_PATTERN_LIST = re.compile(rf"(?P<key>(?:{'|'.join(PATTERN_KEYS)})[ \t]*+:[ \t]++)\[(?P<value>[^\[\]]*)\]")


class RuleFile(NamedTuple):
    """A rule, parsed.

    Attributes:
        text: The whole file.
        values: The fields of its front matter; {} without one, or if it cannot be parsed.
        body: The text below the front matter.
        error: Why the front matter cannot be parsed; None if it can, or if there is none.
    """

    text: str
    values: Mapping[str, FlowValue]
    body: str
    error: FrontMatterError | None = None

    def get_patterns(self, key: str) -> tuple[str, ...]:
        """Return the patterns in a field: a list, or one text with commas."""
        value = self.values.get(key, "")
        items = _split_patterns(value) if isinstance(value, str) else value
        patterns = [each.strip() for each in items if isinstance(each, str)] if isinstance(items, list) else []
        return tuple(filter(None, patterns))


def parse_rule(text: str) -> RuleFile:
    """Return a rule with its front matter. A file without front matter is all body."""
    if text.partition("\n")[0].rstrip() != FRONT_MATTER_FENCE:
        return RuleFile(text, {}, text)
    try:
        head = read_front_matter(_quote_patterns(text))
    except FrontMatterError as error:
        _, closing, body = text.partition("\n")[2].partition(f"\n{FRONT_MATTER_FENCE}")
        return RuleFile(text, {}, body.partition("\n")[2] if closing else text, error)
    return RuleFile(text, head.values, head.body)


def list_rule_globs(patterns: Sequence[str], *, at_any_depth: bool = False) -> list[str]:
    """Return the globs of a rule, relative to its directory.

    Args:
        patterns: Its patterns; those that exclude files are left out.
        at_any_depth: True if a pattern without a slash matches a file in any directory.
    """
    return [_complete_pattern(each, at_any_depth=at_any_depth) for each in patterns if not each.startswith("!")]


def _complete_pattern(pattern: str, *, at_any_depth: bool) -> str:
    name = pattern.removeprefix("./").removeprefix("/")
    if at_any_depth and "/" not in pattern:
        name = f"**/{name}"
    return f"{name}**" if name.endswith("/") else name


def _quote_patterns(text: str) -> str:
    """Return a file with the patterns of its front matter in quotes, on the same lines."""
    lines = text.split("\n", MAX_HEAD_LINES + 1)
    for at, line in enumerate(map(str.rstrip, lines[1 : MAX_HEAD_LINES + 1]), 1):
        if line in {FRONT_MATTER_FENCE, "..."}:
            break
        if listed := _PATTERN_LIST.fullmatch(line):
            items = [each.strip(" \t\"'") for each in _split_patterns(listed["value"])]
            quoted = ", ".join(f"'{_escape_quotes(each)}'" for each in items if each)
            lines[at] = f"{listed['key']}[{quoted}]"
        elif (found := _PATTERN_LINE.fullmatch(line) or _PATTERN_ITEM.fullmatch(line)) and found["value"] not in "|>":
            lines[at] = f"{found['key']}'{_escape_quotes(found['value'])}'"
    return "\n".join(lines)


def _escape_quotes(value: str) -> str:
    return value.replace("'", "''")


def _split_patterns(text: str) -> list[str]:
    """Return the patterns of a list with commas. Commas between braces belong to a pattern."""
    patterns: list[str] = []
    end, is_in_braces = len(text), False
    for sign in reversed([*re.finditer(r"[{},]", text)]):  # in linear time, unlike a lookahead at each comma
        if sign[0] != ",":
            is_in_braces = sign[0] == "}"
        elif not is_in_braces:
            patterns.append(text[sign.end() : end])
            end = sign.start()
    return [text[:end], *reversed(patterns)]
