"""Where a sentence in a session comes from, and why a step of it is not sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.compaction.quotes import STEP_SUFFIX_CHARACTERS
from nexus_core.compaction.undo import is_covered
from nexus_core.layers.explain import Explanation
from nexus_core.ledger.threads import find_message_texts
from nexus_core.request.placements import read_section_entries
from nexus_core.request.prefix import read_prefix, read_sections
from nexus_core.text.sentences import SentenceMatcher
from nexus_core.thread.lookup import find_steps_by_part, is_in_thread
from nexus_core.thread.totals import MARKER_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.ledger import Ledger, SessionRecord, Step

MAX_LISTED_STEPS = 20
"""So many steps are told in which a sentence stands, the newest."""
MAX_COMPARED = 2_000
"""The newest steps that are compared sentence by sentence where no step has the text as it is."""


def explain_in_session(
    ledger: Ledger, record: SessionRecord, context: AssembledContext, query: str
) -> list[Explanation]:
    """Everything that is known about a step, or about a piece of what was said.

    Args:
        ledger: Where the session is.
        record: The session.
        context: What it would send now.
        query: The id of a step, or some words.
    """
    tip = None if record.tip is None else ledger.step(record.tip)
    if tip is None:
        return []
    look = _Look(ledger, tip, context)
    step = _step_meant(ledger, query, tip)
    if step is not None:
        return [Explanation(f"step {step.id}", _kind(step), look.fate(step))]
    sentence = SentenceMatcher(query)
    found = ledger.scan(tip.id, query, limit=2 * MAX_LISTED_STEPS) or _compare_steps(ledger, tip, sentence)
    told = [each for each in found if not _is_repeated(each, found)][:MAX_LISTED_STEPS]
    return [*look.sections(sentence), *(look.explain(each, found, sentence) for each in told)]


def _compare_steps(ledger: Ledger, tip: Step, sentence: SentenceMatcher) -> list[Step]:
    """The newest steps that have a sentence, whatever its case, line breaks and decoration, newest first."""
    found: list[Step] = []
    for step in reversed(ledger.thread(tip.id, limit=MAX_COMPARED)):
        if any(sentence.find(words) is not None for message in step.messages for words in find_message_texts(message)):
            found.append(step)
        if len(found) == 2 * MAX_LISTED_STEPS:
            break
    return found


def _step_meant(ledger: Ledger, query: str, tip: Step) -> Step | None:
    """The step of a thread that somebody asks for by its name, or by the six characters that summaries show."""
    step = ledger.step(query)
    if step is not None:
        return step if is_in_thread(ledger, step, tip) else None
    similar = (
        find_steps_by_part(ledger, query, tip) if len(query) >= STEP_SUFFIX_CHARACTERS and query.isupper() else []
    )  # else a word
    return similar[0] if len(similar) == 1 else None


class _Look(NamedTuple):
    """A session as it stands.

    Attributes:
        ledger: Where it is.
        tip: Its newest step.
        context: What it would send now.
    """

    ledger: Ledger
    tip: Step
    context: AssembledContext

    def sections(self, sentence: SentenceMatcher) -> Iterator[Explanation]:
        """The sections of the system prompt, as the session sends it, that some words stand in."""
        address = self.tip.data.get("epoch")
        content = self.ledger.blob(address) if isinstance(address, str) else None
        view = None if content is None else self.ledger.blob(read_prefix(content).sections_digest)
        for section in () if view is None else read_sections(view):
            if sentence.find(section.text) is not None:
                uri = section.source.uri if section.source else ""
                yield Explanation(section.title, uri, "in the system prompt of the session")

    def explain(self, step: Step, found: Sequence[Step], sentence: SentenceMatcher) -> Explanation:
        """A step that some words stand in; where nobody said them, the section they are of."""
        subject, place = _kind(step), f"step {step.id}"
        if step.kind == "sealed" and not any(each.kind == "input" and each.turn == step.turn for each in found):
            subject, place = _mentioned(step, sentence) or (subject, place)
        return Explanation(subject, place, self.fate(step))

    def fate(self, step: Step) -> str:
        """Whether a step is sent, and if not, why."""
        if step.kind in MARKER_KINDS:
            return "stands for what came before" if step.id == self.tip.compaction else "says nothing by itself"
        sealed = self._sealed(step)
        sent = self._sent(step) or (sealed and self._sent(sealed))
        if sent:
            return sent if sealed is None else f"{sent}, as step {sealed.id} has it"
        if is_covered(self.ledger, step, self.tip.compaction):
            return f"not sent: compaction {self.tip.compaction} stands for it"
        for decision in self.context.decisions:
            if decision.first <= step.position <= decision.last:
                return f"not sent: left out by {decision.rule}, so that the rest fits"
        return "not sent"

    def _sent(self, step: Step) -> str:
        """How a step is sent; "" where it is not."""
        for placed in self.context.placements:
            if placed.name == step.id and placed.zone != "static" and placed.decision.action != "dropped":
                return "sent" if placed.decision.action == "kept" else f"sent in part, by {placed.decision.rule}"
        return ""

    def _sealed(self, step: Step) -> Step | None:
        """The step that has an input as it is sent."""
        since = self.ledger.thread(self.tip.id, first=step.id) if step.kind == "input" else []
        return next((each for each in since if each.kind == "sealed" and each.turn == step.turn), None)


def _mentioned(step: Step, sentence: SentenceMatcher) -> tuple[str, str] | None:
    """The section in a message that some words stand in, by the last heading before them."""
    entries = {each.title: each for each in read_section_entries(step.data.get("told")) if not each.refusal}
    for message in step.messages:
        offset = sentence.find(message.content)
        before = message.content[: offset or 0]
        titles = [line.removeprefix("## ") for line in before.split("\n") if line.startswith("## ")]
        title = next((title for title in reversed(titles) if title in entries), None)
        if title is not None:
            return title, f"{entries[title].source.uri}, told in step {step.id}"
    return None


def _is_repeated(step: Step, found: Sequence[Step]) -> bool:
    """Whether what a step says stands in another one too, as it was sent."""
    return step.kind == "input" and any(each.kind == "sealed" and each.turn == step.turn for each in found)


def _kind(step: Step) -> str:
    if step.kind in ("input", "sealed"):
        return "said to the agent"
    roles = dict.fromkeys(message.role for message in step.messages)
    return f"{step.kind}: {', '.join(roles)}" if roles else step.kind
