"""Explanations of a sentence or a step of a session: its source, and whether it is sent."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.compaction.evidence import STEP_SUFFIX_CHARACTERS
from nexus_core.compaction.undo import is_covered
from nexus_core.layers.explain import Explanation
from nexus_core.ledger.ledger import find_message_texts
from nexus_core.request.input import read_section_entries
from nexus_core.request.prefix import read_prefix, read_sections
from nexus_core.text.sentences import SentenceMatcher
from nexus_core.thread.lookup import find_steps_by_part, is_in_thread
from nexus_core.thread.state import MARKER_KINDS
from nexus_core.types.payloads import RenderedPayload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.request.input import SectionEntry
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.ledger import Ledger, SessionRecord, Step

MAX_LISTED_STEPS = 20
"""Steps that are listed for a sentence, newest first."""
MAX_COMPARED = 2_000
"""Newest steps that are compared sentence by sentence if no step contains the exact text."""


def explain_in_session(
    ledger: Ledger, record: SessionRecord, context: AssembledContext, query: str
) -> list[Explanation]:
    """Return what is known about a step, or about a sentence in a session.

    Args:
        ledger: The ledger of the session.
        record: The session.
        context: The call that it would send now.
        query: The id of a step, or a sentence.
    """
    tip = None if record.tip is None else ledger.step(record.tip)
    if tip is None:
        return []
    view = _SessionView(ledger, tip, context)
    step = _find_step(ledger, query, tip)
    if step is not None:
        return [Explanation(f"step {step.id}", _kind(step), view.explain_sending(step))]
    sentence = SentenceMatcher(query)
    found = ledger.scan(tip.id, query, limit=2 * MAX_LISTED_STEPS) or _compare_steps(ledger, tip, sentence)
    shown = [each for each in found if not _is_rendered_later(each, found)][:MAX_LISTED_STEPS]
    return [
        *view.explain_sections(sentence),
        *chain.from_iterable(view.explain_step(each, found, sentence) for each in shown),
    ]


def _compare_steps(ledger: Ledger, tip: Step, sentence: SentenceMatcher) -> list[Step]:
    """Return the newest steps that contain a sentence, ignoring case, line breaks and Markdown decoration."""
    found: list[Step] = []
    for step in reversed(ledger.thread(tip.id, limit=MAX_COMPARED)):
        if any(sentence.find(words) is not None for message in step.messages for words in find_message_texts(message)):
            found.append(step)
        if len(found) == 2 * MAX_LISTED_STEPS:
            break
    return found


def _find_step(ledger: Ledger, query: str, tip: Step) -> Step | None:
    """Return the step with an id, or with the six last characters that summaries show."""
    step = ledger.step(query)
    if step is not None:
        return step if is_in_thread(ledger, step, tip) else None
    similar = (
        find_steps_by_part(ledger, query, tip) if len(query) >= STEP_SUFFIX_CHARACTERS and query.isupper() else []
    )  # else a word
    return similar[0] if len(similar) == 1 else None


class _SessionView(NamedTuple):
    """A session at its newest step.

    Attributes:
        ledger: Its ledger.
        tip: Its newest step.
        context: The call that it would send now.
    """

    ledger: Ledger
    tip: Step
    context: AssembledContext

    def explain_sections(self, sentence: SentenceMatcher) -> Iterator[Explanation]:
        """Yield the sections of the session's system prompt that contain a sentence."""
        address = self.tip.payload.epoch
        content = self.ledger.blob(address) if address else None
        stored = None if content is None else self.ledger.blob(read_prefix(content).sections_digest)
        for section in () if stored is None else read_sections(stored):
            if sentence.find(section.text) is not None:
                uri = section.source.uri if section.source else ""
                yield Explanation(section.title, uri, "in the system prompt of the session")

    def explain_step(self, step: Step, found: Sequence[Step], sentence: SentenceMatcher) -> Iterator[Explanation]:
        """Yield the explanations of a step with a sentence, and of the sections that added the sentence to it."""
        sending = self.explain_sending(step)
        is_said = step.kind != "sealed" or any(each.kind == "input" and each.turn == step.turn for each in found)
        sections = _find_memories(step, sentence) if step.kind == "sealed" else []
        if not sections and not is_said and (section := _find_section(step, sentence)):
            sections = [section]
        if is_said or not sections:
            yield Explanation(_kind(step), f"step {step.id}", sending)
        yield from (Explanation(subject, place, f"{sending}{how}") for subject, place, how in sections)

    def explain_sending(self, step: Step) -> str:
        """Return a text that says if a step is sent, and if not, why."""
        if step.kind in MARKER_KINDS:
            return "stands for what came before" if step.id == self.tip.compaction else "says nothing by itself"
        rendered = self._find_rendered(step)
        sent = self._describe_sending(step) or (rendered and self._describe_sending(rendered))
        if sent:
            return sent if rendered is None else f"{sent}, as step {rendered.id} has it"
        if is_covered(self.ledger, step, self.tip.compaction):
            return f"not sent: compaction {self.tip.compaction} stands for it"
        for decision in self.context.decisions:
            if decision.first <= step.position <= decision.last:
                return f"not sent: left out by {decision.rule}, so that the rest fits"
        return "not sent"

    def _describe_sending(self, step: Step) -> str:
        """Return a text that says how a step is sent; "" if it is not."""
        for placed in self.context.placements:
            if placed.name == step.id and placed.zone != "static" and placed.decision.action != "dropped":
                return "sent" if placed.decision.action == "kept" else f"sent in part, by {placed.decision.rule}"
        return ""

    def _find_rendered(self, step: Step) -> Step | None:
        """Return the step with the rendered form of an input."""
        since = self.ledger.thread(self.tip.id, first=step.id) if step.kind == "input" else []
        return next((each for each in since if each.kind == "sealed" and each.turn == step.turn), None)


class _SentSection(NamedTuple):
    """Title and source of a section in a message, and how it came there."""

    title: str
    source: str
    remark: str


def _find_memories(step: Step, sentence: SentenceMatcher) -> list[_SentSection]:
    """Return the memories in a rendered message that contain a sentence."""
    text = next((message.content for message in step.messages), "")
    return [
        _describe_memory(entry, step)
        for entry in _list_sent_entries(step)
        if entry.span is not None and sentence.find(text[slice(*entry.span)]) is not None
    ]


def _find_section(step: Step, sentence: SentenceMatcher) -> _SentSection | None:
    """Return the section that contains a sentence, by the last heading before it."""
    entries = {each.title: each for each in _list_sent_entries(step)}
    for message in step.messages:
        before = message.content[: sentence.find(message.content) or 0]
        titles = [line.removeprefix("## ") for line in before.split("\n") if line.startswith("## ")]
        title = next((title for title in reversed(titles) if title in entries), None)
        if title is not None:
            return _SentSection(title, entries[title].source.uri, f", in step {step.id}")
    return None


def _list_sent_entries(step: Step) -> list[SectionEntry]:
    stored = step.payload.section_entries if isinstance(step.payload, RenderedPayload) else ()
    return [each for each in read_section_entries(list(stored)) if not each.refusal]


def _describe_memory(entry: SectionEntry, step: Step) -> _SentSection:
    lines = entry.source.lines
    place = entry.source.uri if lines is None else f"{entry.source.uri}:{lines[0]}-{lines[1]}"
    why = f" because it {entry.reason}" if entry.reason else ""
    return _SentSection(entry.title, place, f", recalled in step {step.id}{why}")


def _is_rendered_later(step: Step, found: Sequence[Step]) -> bool:
    """Return True for an input whose rendered form is among the steps."""
    return step.kind == "input" and any(each.kind == "sealed" and each.turn == step.turn for each in found)


def _kind(step: Step) -> str:
    if step.kind in ("input", "sealed"):
        return "said to the agent"
    roles = dict.fromkeys(message.role for message in step.messages)
    return f"{step.kind}: {', '.join(roles)}" if roles else step.kind
