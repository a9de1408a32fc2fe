"""What has changed since the model was told: announced once, in the next message, so that the prompt can stay."""

from __future__ import annotations

from collections import Counter
from difflib import unified_diff
from typing import TYPE_CHECKING

from nexus_core.types.prompt import Section, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

NOTICE = "changed-instructions"
TITLE = "Changed Instructions"
MOST_LINES = 200
"""A notice has no more lines than this about one section."""
LONGEST_LINE = 1000
"""Characters of a line that a notice repeats; of a longer one it says how much is missing, and where to read it."""
_ORDER = -1
_CONTEXT = 2


def notice_of(told: Sequence[Section], now: Sequence[Section]) -> Section | None:
    """A section that says what is different now; None where nothing is.

    Args:
        told: The sections that the model knows.
        now: The sections as they are.
    """
    changes = "\n\n".join(_changes(told, now))
    if not changes:
        return None
    text = f"The instructions at the beginning have changed. From now on, this applies:\n\n{changes}"
    is_own = all(section.source is None or section.source.trust == "user" for section in (*told, *now))
    source = Source(uri="plugin:nexus", trust="user" if is_own else "project")
    return Section(NOTICE, title=TITLE, text=text, kind="event", order=_ORDER, source=source)


def changed_sections(
    told: Iterable[Section], now: Iterable[Section]
) -> Iterator[tuple[Section | None, Section | None]]:
    """Of each section that is another now how it was and how it is; None where it was not, or is no more there.

    In the order in which a model reads them, those that are gone at last.
    """
    before, after = _by_key(told), _by_key(now)
    for key, section in after.items():
        if key not in before or before[key].text != section.text:
            yield before.get(key), section
    yield from ((section, None) for key, section in before.items() if key not in after)


def _changes(told: Sequence[Section], now: Sequence[Section]) -> Iterator[str]:
    for before, after in changed_sections(told, now):
        section = after or before
        if section is None:
            continue
        name = f"{section.title} ({section.source.uri})" if section.source and section.source.is_file else section.title
        if after is None:
            yield f"{name}: removed; it no longer applies."
        elif before is None:
            yield f"{name}: new\n{_bounded(after.text.splitlines(), name)}"
        else:
            lines = unified_diff(before.text.splitlines(), after.text.splitlines(), n=_CONTEXT, lineterm="")
            yield f"{name}: changed\n{_bounded(list(lines)[2:], name)}"  # without the two lines that name files


def _bounded(lines: Sequence[str], name: str) -> str:
    shown = [line if len(line) <= LONGEST_LINE else _cut(line, name) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(f"[… {len(lines) - MOST_LINES:,} more lines of {name} …]")
    return "\n".join(shown)


def _cut(line: str, name: str) -> str:
    return f"{line[:LONGEST_LINE]} [… {len(line) - LONGEST_LINE:,} more characters of this line of {name} …]"


def _by_key(sections: Iterable[Section]) -> dict[tuple[str, str, int], Section]:
    """Sections by what makes each the same although it was moved; of several alike, also by which of them it is."""
    found: dict[tuple[str, str, int], Section] = {}
    alike: Counter[tuple[str, str]] = Counter()
    for section in sections:
        key = _name(section), section.title
        found[*key, alike[key]] = section
        alike[key] += 1
    return found


def _name(section: Section) -> str:
    """The file it comes from, or what it is called and by whom; two plugins may call something the same."""
    if section.source is None:
        return section.id
    return section.source.uri if section.source.is_file else f"{section.source.plugin}:{section.id}"
