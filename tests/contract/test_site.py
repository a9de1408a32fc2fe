"""The documents as a site: everything is there, nothing leads nowhere, nothing is loaded from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown import markdown  # type: ignore[import-untyped] # it brings no types
from markdown_it import MarkdownIt

from scripts.docs_site import lead, menu, places, slugify
from tests.conftest import ROOT
from tests.contract.pages import DOCS, PAGES, name_of

STRUCTURE = re.compile(r"<(li|ul|ol|table|tr|pre|h[1-6]|em|strong|a|code|img|blockquote)\b")
LOADED = re.compile(
    r"<(?:script|img)[^>]*\ssrc=\"(?:https?:)?//|<link[^>]*\shref=\"(?:https?:)?//|@import|url\(['\"]?https?:"
)


def flat(entries: Iterable[Any]) -> Iterator[str]:
    for entry in entries:
        yield from [entry] if isinstance(entry, str) else flat(entry.values() if isinstance(entry, dict) else entry)


def test_the_menu_has_four_parts_and_every_page_once() -> None:
    first, introduction, *parts, project = menu()

    names = [name for part in parts for name in part]
    pages = list(flat([*parts, project]))
    assert (first, introduction) == ({"Home": "README.md"}, {"Introduction": "introduction.md"})
    assert names == ["Tutorial", "How-to", "Reference", "Explanation"]
    assert len(pages) == len(set(pages))
    assert {path.relative_to(ROOT / "docs").as_posix() for path in DOCS} - set(pages) == {"README.md"}
    assert {"SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= set(pages)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[the plugins](../../plugins/README.md)", "[the plugins](../plugins/README.md)"),
        ("[hooks](hooks.md#values)", "[hooks](hooks.md#values)"),
        ("[Read it](../../README.md).", "[Read it](../introduction.md)."),
        ("[a test](../../tests/conftest.py)", "a test"),
        ("[`host`](../../nexus_core/host/)", "`host`"),
        ("[elsewhere](https://example.org/x.md)", "[elsewhere](https://example.org/x.md)"),
        ("[below](#values)", "[below](#values)"),
        ("```text\n[a test](../../tests/conftest.py)\n```", "```text\n[a test](../../tests/conftest.py)\n```"),
    ],
)
def test_a_link_leads_to_where_its_file_stands_or_is_only_words(written: str, shown: str) -> None:
    assert lead(written, ROOT / "docs/reference/errors.md", places()) == shown


def test_a_picture_follows_the_colours_that_a_reader_chose() -> None:
    written = """<picture>
  <source media="(prefers-color-scheme: dark)" srcset="images/diff-dark.svg">
  <img alt="a word" src="images/diff-light.svg" width="760">
</picture>"""

    assert lead(written, ROOT / "docs/README.md", places()).splitlines() == [
        '<img alt="a word" src="images/diff-light.svg#only-light" width="760">',
        '<img alt="a word" src="images/diff-dark.svg#only-dark" width="760">',
    ]


@pytest.mark.parametrize("page", ["README.md", "docs/README.md"])
def test_the_first_pages_show_every_picture_for_light_and_dark_pages(page: str) -> None:
    text = lead((ROOT / page).read_text(encoding="utf-8"), ROOT / page, places())

    shown = re.findall(r'src="images/([^"]+)"', text)

    assert sorted(shown) == [
        "context-dark.svg#only-dark",
        "context-light.svg#only-light",
        "diff-dark.svg#only-dark",
        "diff-light.svg#only-light",
    ]


def test_a_heading_has_the_anchor_that_git_hosts_give_it() -> None:
    assert slugify("nexus_layers(request, loaded)", "-") == "nexus_layersrequest-loaded"
    assert slugify("What is `static`, and why?", "-") == "what-is-static-and-why"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_the_same_structure_for_the_site_as_for_a_git_host(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    there = MarkdownIt("commonmark").enable("table").render(text)
    here = markdown(text, extensions=["tables", "fenced_code", "toc"])

    assert Counter(STRUCTURE.findall(here)) == Counter(STRUCTURE.findall(there))


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]

    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # the theme's advertisement of another program
    outcome = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False, env=quiet)

    assert (outcome.returncode, re.findall(r"WARNING.*", outcome.stderr)) == (0, [])
    built = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("**/*.html")}
    expected = {place.removesuffix(".md") + ".html" for place in places().values() if place.endswith(".md")}
    assert {place.replace("README.html", "index.html") for place in expected} - built == set()
    files = [*tmp_path.glob("**/*.html"), *tmp_path.glob("**/*.css")]
    assert [path.name for path in files if LOADED.search(path.read_text(encoding="utf-8"))] == []
    # Search needs these two where a page is opened as a file, from which browsers fetch nothing and start no workers.
    assert (tmp_path / "search/search_index.js").is_file()
    assert '<script src="javascripts/iframe-worker.js"' in (tmp_path / "index.html").read_text(encoding="utf-8")
