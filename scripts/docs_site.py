"""What MkDocs is told besides mkdocs.yml: the menu, the pages outside of docs/, and where their links lead.

The pages are written for a git host, where a link to a source file leads somewhere. On the site it is only its words.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

from nexus_core.text.console import ProgressBar

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
OUTSIDE = ("*.md", "plugins/README.md", "examples/*-plugin/README.md", "benchmarks/*.md")

_CODE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|mailto:|#)([^)\s]+)\)")

_IMAGE = re.compile(r'(src|srcset)="([^":]+)"')
_PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*'
    r'<img ([^>]*)src="([^"]+)"([^>]*)>\s*</picture>'
)


_bars: list[ProgressBar] = []
"""The progress of the build that is going on, on a terminal."""


def slugify(heading: str, separator: str) -> str:
    """The anchor of a heading, as git hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def places() -> dict[Path, str]:
    """Where each file stands on the site."""
    outside = {path: path.relative_to(ROOT).as_posix() for pattern in OUTSIDE for path in sorted(ROOT.glob(pattern))}
    inside = {path: path.relative_to(DOCS).as_posix() for path in sorted(DOCS.glob("**/*")) if path.is_file()}
    # docs/README.md is the beginning of the site.
    return {**outside, ROOT / "README.md": "introduction.md", **inside}


def menu() -> list[Any]:
    """The parts and groups of docs/README.md with their pages; pages outside that it does not name come last."""
    known = places()
    seen = {"README.md", "introduction.md"}
    parts = [_part(part, known, seen) for part in INDEX.read_text(encoding="utf-8").split("\n## ")[1:]]
    rest = [page for path, page in known.items() if DOCS not in path.parents and page not in seen]
    return [{"Home": "README.md"}, {"Introduction": "introduction.md"}, *parts, {"Project": rest}]


def _part(part: str, known: dict[Path, str], seen: set[str]) -> dict[str, list[Any]]:
    title, *paragraphs = part.strip().split("\n\n")
    entries: list[Any] = []
    group = entries
    for paragraph in paragraphs:
        if not paragraph.startswith("- "):
            group = []
            entries.append({paragraph.partition(":")[0]: group})
        for _, target in _LINK.findall(paragraph):
            page = known.get((DOCS / target.partition("#")[0]).resolve(), "")
            if page and page not in seen:
                group.append(page)
                seen.add(page)
    return {title.partition(":")[0]: entries}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the site its menu, and its headings the anchors that links name."""
    config.nav = menu()
    config.mdx_configs["toc"] = {"slugify": slugify, "permalink": False}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside of docs/."""
    for path, place in places().items():
        if DOCS not in path.parents:
            files.append(File.generated(config, place, content=path.read_text(encoding="utf-8")))
    # Each page is read once and written once.
    _bars.append(ProgressBar(sys.stderr, 2 * len(files.documentation_pages()), "Building pages"))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001 - MkDocs names its arguments
    """Count a page that is written."""
    _bars[-1].advance(1)
    return output


def on_post_build(config: MkDocsConfig) -> None:  # noqa: ARG001 - as above
    """Remove the progress."""
    _bars.pop().close()


def on_build_error(error: Exception) -> None:  # noqa: ARG001 - as above
    """Remove the progress."""
    while _bars:
        _bars.pop().close()


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs names its arguments
    """Lead every link to where its file stands on the site."""
    _bars[-1].advance(1)
    known = places()
    (source,) = (path for path, place in known.items() if place == page.file.src_uri)
    return lead(markdown, source, known)


def lead(markdown: str, source: Path, known: dict[Path, str]) -> str:
    """The text of a page with links as they are on the site; those to files that are not there are only words."""
    here = PurePosixPath(known[source]).parent

    def replace(match: re.Match[str]) -> str:
        words, target = match.groups()
        path, mark, anchor = target.partition("#")
        place = known.get((source.parent / path).resolve())
        return f"[{words}]({os.path.relpath(place, here)}{mark}{anchor})" if place else words

    def replace_image(match: re.Match[str]) -> str:
        place = known.get((source.parent / match[2]).resolve())
        return f'{match[1]}="{os.path.relpath(place, here)}"' if place else match[0]

    def lead_part(part: str) -> str:
        return _PICTURE.sub(_show_by_theme, _IMAGE.sub(replace_image, _LINK.sub(replace, part)))

    parts = _CODE.split(markdown)
    return "".join(part if number % 2 else lead_part(part) for number, part in enumerate(parts))


def _show_by_theme(picture: re.Match[str]) -> str:
    """A picture for light and one for dark pages, of which the theme shows one: its readers choose their colours."""
    dark, before, light, after = picture.groups()
    images = ((light, "only-light"), (dark, "only-dark"))
    return "\n".join(f'<img {before}src="{source}#{shown}"{after}>' for source, shown in images)
