"""However files import each other, every character of the result can be found in the file it is said to come from."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.layers.load import TextOrigins
from nexus_core.plugin import Layer, LayerText
from nexus_core.testing import write_files
from nexus_core.types.settings import Settings
from nexus_plugins.file_layers import nexus_layer_texts
from tests.effort import examples

NAMES = ("a.md", "b.md", "c.md", "sub/d.md")

words = st.sampled_from(["one", "two", " ", "\n", "\n\n", "\t", "`", "\u202e", "é", "@alice", "@gone.md"])


def content(*imports: str) -> st.SearchStrategy[str]:
    """A text in which the files named may be imported, in a line of their own or inside one."""
    mentions = [mention for name in imports for mention in (f"\n@{name}\n", f" @{name} ", f" @{name}.\n")]
    return st.lists(st.one_of(words, st.sampled_from(mentions)) if mentions else words, max_size=12).map("".join)


# Each imports only what follows, so that there is no circle.
texts = st.fixed_dictionaries(
    {
        "NEXUS.md": content("a.md", "b.md", "sub/d.md"),
        "a.md": content("b.md", "c.md"),
        "b.md": content("./c.md", "sub/d.md"),
        "c.md": content("sub/d.md"),
        "sub/d.md": content(),
    }
)


@given(files=texts)
@settings(max_examples=examples(150), deadline=None)
def test_every_character_comes_from_where_it_is_said_to(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = write_files(Path(scratch).resolve(), files)
        found = nexus_layer_texts(Layer("local", root / ".nexus3", "local", root=root), Settings())

        for text in (item for item in found if isinstance(item, LayerText)):
            pieces = TextOrigins(text)
            for line, row in enumerate(text.text.split("\n"), start=1):
                for column, character in enumerate(row, start=1):
                    path, file_line, file_column = pieces.origin(line, column)
                    lines = path.read_text(encoding="utf-8").split("\n")
                    assert lines[file_line - 1][file_column - 1] == character
