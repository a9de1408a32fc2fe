"""Front matter of a Markdown file: the YAML between two `---` lines, and the body below.

Every scalar is a string: `no`, `1.10` and `2024-01-01` stay as written. Anchors, aliases and tags are refused. A colon
in a plain string is part of it, although YAML refuses that, because many descriptions have some.
"""

from __future__ import annotations

from typing import NamedTuple

FlowValue = str | list["FlowValue"] | dict[str, "FlowValue"]
"""A string, or a list or object of strings: `no`, `1.10` and `2024-01-01` stay strings."""

FRONT_MATTER_FENCE = "---"
MAX_HEAD_LINES = 200
MAX_HEAD_CHARACTERS = 8 * 1024


class FrontMatterError(ValueError):
    """Raised when the front matter of a file cannot be parsed.

    Attributes:
        line: The line of the error, from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class FrontMatter(NamedTuple):
    """The front matter of a file as an object, and the body."""

    values: dict[str, FlowValue]
    body: str


def read_front_matter(text: str) -> FrontMatter:
    """Split a file into its front matter, between two lines `---`, and its body.

    Raises:
        FrontMatterError: It has no front matter, or one that cannot be parsed.
    """
    first, _, rest = text.partition("\n")
    if first.rstrip() != FRONT_MATTER_FENCE:
        raise FrontMatterError("does not start with a '---' line", 1)
    lines = rest[:MAX_HEAD_CHARACTERS].split("\n")[:MAX_HEAD_LINES]
    end = next((at for at, line in enumerate(lines) if line.rstrip() in {FRONT_MATTER_FENCE, "..."}), None)
    if end is None:
        raise FrontMatterError("the '---' line that ends its front matter is missing or too far down", 1)
    from nexus_core.text.yaml_head import YamlHeadError, parse_yaml_head  # PyYAML is heavy; most files have no head

    try:
        values = parse_yaml_head(lines[:end])
    except YamlHeadError as error:
        raise FrontMatterError(str(error), error.line + 2) from None  # after the fence, counted from 1
    return FrontMatter(values, "\n".join(rest.split("\n")[end + 1 :]))
