"""Where a session was compacted, and what was left of it."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.transcripts.claude.entries import read_entry
from nexus_core.dialects.transcripts.lines import mapping_under, word_in
from nexus_core.dialects.transcripts.transcript import Compaction

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from nexus_core.dialects.transcripts.account import Account
    from nexus_core.dialects.transcripts.claude.nodes import Node
    from nexus_core.dialects.transcripts.claude.paths import Path
    from nexus_core.dialects.transcripts.transcript import Entry


class Boundary(NamedTuple):
    """The lines that tell of a compaction: where it is, what it says; one of them may be missing."""

    place: Node | None
    summary: Node | None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The lines that are there."""
        return tuple(node for node in self if node)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the program says about it."""
        return mapping_under(self.place.record.value, "compactMetadata") if self.place else {}


def find_boundaries(nodes: Iterable[Node], path: Path) -> list[Boundary]:
    """The compactions that the main path went through, oldest first."""
    found: list[Boundary] = []
    for node in nodes:
        if node.chain != path.chain:
            continue
        if node.is_boundary:
            found.append(Boundary(node, None))
        elif node.is_summary:
            waits = bool(found) and found[-1].summary is None
            place = found.pop().place if waits else None
            found.append(Boundary(place, node))
    names = {node.id for node in path.nodes}
    return [each for each in found if _is_on(each, names)]


def read_compactions(
    boundaries: Iterable[Boundary], entries: Sequence[Entry], account: Account
) -> Iterator[Compaction]:
    """The compactions of the main path, whose entries are those of the path without summaries."""
    starts = [entry.lines[0] for entry in entries]
    places = {name: place for place, entry in enumerate(entries) for name in entry.ids}
    for boundary in boundaries:
        at = bisect_left(starts, boundary.nodes[0].record.number)
        kept = [places[name] for name in _kept_names(boundary.metadata) if name in places]
        yield _read_compaction(boundary, at, min([at, *kept]), account)


def _read_compaction(boundary: Boundary, at: int, kept_from: int, account: Account) -> Compaction:
    first = boundary.nodes[0].record
    summary = read_entry([boundary.summary], account, "compaction") if boundary.summary else None
    if boundary.place:
        account.use("compaction", first.number)
    if summary is None:
        account.note(first.number, "a compaction without its summary")
    before = boundary.metadata.get("preTokens")
    return Compaction(
        line=first.number,
        at=at,
        kept_from=kept_from,
        summary=summary.message.content if summary else "",
        context=(summary,) if summary else (),
        id=boundary.nodes[0].id,
        time=word_in(first.value, "timestamp"),
        tokens_before=before if isinstance(before, int) else None,
        raw=first.value,
    )


def _is_on(boundary: Boundary, names: Container[str]) -> bool:
    if any(node.id in names for node in boundary.nodes):
        return True
    # What is kept may be what the next line follows, so that the path goes past the compaction.
    kept = _kept_names(boundary.metadata)
    return bool(kept) and kept[-1] in names


def _kept_names(metadata: dict[str, Any]) -> list[str]:
    listed = mapping_under(metadata, "preservedMessages").get("uuids")
    if isinstance(listed, list):
        return [name for name in listed if isinstance(name, str)]
    segment = mapping_under(metadata, "preservedSegment")
    return [name for name in (word_in(segment, "headUuid"), word_in(segment, "tailUuid")) if name]
