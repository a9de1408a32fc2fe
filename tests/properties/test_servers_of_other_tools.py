"""Whatever the files of other tools hold, their servers are read or refused with a place, and no secret is shown."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nexus_core import ConfigError, FileError
from nexus_core.config.servers import normalize_servers
from nexus_core.plugin import Layer, LayerConfig, SkippedFile
from nexus_plugins.mcp._files import FILE_FORMATS, NEXUS_FORMAT, ServerFileFormat, read_servers

SECRET = "sk-live-0123456789abcdef"  # noqa: S105 - nobody's
SERVER: dict[str, Any] = {
    "type": "local",
    "command": "npx",
    "args": ["-y", "x"],
    "env": {"TOKEN": SECRET},
    "url": "https://x.example/mcp",
    "httpUrl": "https://x.example",
    "headers": {"Authorization": f"Bearer {SECRET}"},
    "environment": {"A": "${env:B}"},
    "enabled": True,
    "timeout": 5,
}
TOML = f'model = "o3"\n[mcp_servers.a]\ncommand = "c"\nargs = ["-v"]\nenv = {{ TOKEN = "{SECRET}" }}\n[[b]]\nc = 1_0\n'
FRAGMENTS = [*'"{}[],:=#\n\\', "null", "//", "[[", "${", "\x00", "\ud800", "1e999", "'''", "\u2028"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(sorted(SERVER)), each, max_size=3),
    max_leaves=8,
)
ALL = [*FILE_FORMATS.values(), NEXUS_FORMAT]
EVERY_TOOL = pytest.mark.parametrize("dialect", ALL, ids=[dialect.name for dialect in ALL])


@st.composite
def spoiled_servers(draw: st.DrawFn) -> dict[str, Any]:
    """A server that has some of the fields that any tool knows, some of them with anything in it."""
    fields = draw(st.lists(st.sampled_from(sorted(SERVER)), unique=True))
    return {field: draw(ANYTHING) if draw(st.integers(0, 3)) == 0 else SERVER[field] for field in fields}


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A text with something taken out of it, put into it, or both, in a few places."""
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        text = text[:start] + draw(st.sampled_from(["", *FRAGMENTS])) + text[start + draw(st.integers(0, 3)) :]
    return text


def texts(dialect: ServerFileFormat) -> st.SearchStrategy[str]:
    """What may stand in the file of a tool."""
    if dialect.files[0].endswith(".toml"):
        return damaged(TOML)
    files = st.dictionaries(st.just(dialect.container), st.dictionaries(st.text(max_size=3), spoiled_servers()))
    return files.map(json.dumps).flatmap(damaged)


def read(dialect: ServerFileFormat, text: str) -> tuple[list[dict[str, Any]], str]:
    """The servers that a file of a tool gives, all in one form; and what was said about the file."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch).resolve() / dialect.files[0]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        skipped: list[SkippedFile] = []
        try:
            answers = read_servers(path, Layer("local", path.parent, "local"), dialect)
            configs = normalize_servers([each for each in answers if isinstance(each, LayerConfig)], skipped)
        except (ConfigError, FileError) as error:
            return [], f"{error} {getattr(error, 'report', '')}"
        return [server for config in configs for server in config.settings.get("mcp_servers", [])], repr(skipped)  # type: ignore[attr-defined]


@pytest.mark.slow
@EVERY_TOOL
@given(data=st.data())
def test_any_file_gives_servers_in_one_form_or_an_error_that_names_it(
    dialect: ServerFileFormat, data: st.DataObject
) -> None:
    servers, said = read(dialect, data.draw(texts(dialect)))

    assert SECRET not in said
    assert said == "[]" or dialect.files[0] in said
    assert all(server["name"].strip() and server["type"] in {"stdio", "http", "sse"} for server in servers)
    assert all(("command" in server) != ("url" in server) for server in servers)


@pytest.mark.slow
@EVERY_TOOL
@given(text=st.text(st.characters(codec=None, exclude_categories=()), max_size=60))
@example(text="")
@example(text="\ufeff{}")
@example(text="[" * 100_000)
def test_any_text_at_all_is_read_or_refused(dialect: ServerFileFormat, text: str) -> None:
    servers, said = read(dialect, text)

    assert servers == []
    assert said == "[]" or dialect.files[0] in said
