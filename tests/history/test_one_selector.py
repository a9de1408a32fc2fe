"""The one selector chooses what the three engines before it chose, for random and real conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core import Nexus, fit, get_dialect, hookimpl
from nexus_core.context import ContextConfig, ContextManager
from nexus_core.dialects.requests import count_message_bytes
from nexus_core.errors import NexusError
from nexus_core.history import truncation as new
from nexus_core.history.items import HistoryItem, TruncationPoint
from nexus_core.host.manager import Host
from nexus_core.plugin import GroupSizes, TruncationStrategy
from nexus_core.transcripts.read import read_transcript
from nexus_core.types.budget import TokenBudget
from nexus_core.types.messages import Image, Message
from nexus_plugins.truncation import middle_out, oldest_first
from tests.conftest import CORPUS, ROOT
from tests.effort import examples
from tests.history.conversations import any_messages, conversations
from tests.history.counters import Characters
from tests.history.frozen import select as old
from tests.history.frozen.fit import fit_messages as old_fit
from tests.history.frozen.manager import ContextManager as OldContextManager

ASKED: list[tuple[str, object]] = []
"""What strategies were asked, so that both engines show them the same."""


def every_other(groups: GroupSizes, budget: int) -> list[slice]:
    ASKED.append(("every_other", (len(groups), budget)))
    return [slice(at, at + 1) for at in range(1, len(groups), 2)]


def smallest(groups: GroupSizes, budget: int) -> list[slice]:
    """The smallest groups, as many as fit."""
    chosen = []
    for size, at in sorted((groups[at], at) for at in range(len(groups))):
        ASKED.append(("smallest", (size, at, budget)))
        if size <= budget:
            budget -= size
            chosen.append(slice(at, at + 1))
    return chosen


def second_and_newest(groups: GroupSizes, budget: int) -> list[slice]:
    ASKED.append(("second_and_newest", (groups[-1], groups.newest(budget), budget)))
    return [slice(-groups.newest(budget // 2), None), slice(1, 2), slice(0, -3)]


def too_much(groups: GroupSizes, budget: int) -> list[slice]:
    ASKED.append(("too_much", (groups.newest(budget), budget)))
    return [slice(None)]


STRATEGIES = {
    each.name: each
    for each in (
        TruncationStrategy("oldest_first", oldest_first),
        TruncationStrategy("middle_out", middle_out),
        *(
            TruncationStrategy(choose.__name__, choose)
            for choose in (every_other, smallest, second_and_newest, too_much)
        ),
    )
}
NAMES = st.sampled_from(sorted(STRATEGIES))
BUDGETS = st.integers(0, 400)
APIS = st.sampled_from(["neutral", "openai", "anthropic", "gemini", "responses"])


class Plugin:
    @hookimpl
    def nexus_truncation_strategies(self) -> list[TruncationStrategy]:
        return [each for name, each in STRATEGIES.items() if name not in ("oldest_first", "middle_out")]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Nexus(layers=False, plugins=[Plugin()]) as nexus:
        yield nexus.host


def attempt(choose: Any, *arguments: Any, **options: Any) -> tuple[object, list[object]]:
    """What a call gives, an error too, and what strategies were asked on the way."""
    ASKED.clear()
    try:
        given = choose(*arguments, **options)
    except NexusError as error:
        given = (type(error), str(error), getattr(error, "parts", None))
    return given, list(ASKED)


def fitted(choose: Any, messages: list[Any], **options: Any) -> object:
    counter = Characters()
    result, asked = attempt(choose, messages, counter=counter, **options)
    if isinstance(result, tuple):
        return result, asked, counter.asked
    places = {id(message): place for place, message in enumerate(messages)}
    kept = [places.get(id(message), message) for message in result.messages]  # type: ignore[attr-defined]
    return kept, result.decisions, result.budget, result.findings, asked, counter.asked  # type: ignore[attr-defined]


def assert_fit_is_the_same(messages: list[Message], *, api: str, **options: Any) -> None:
    given: list[Any] = messages if api == "neutral" else get_dialect(api).write(messages)
    assert fitted(fit, given, api=api, **options) == fitted(old_fit, given, api=api, **options)


@settings(max_examples=examples(1500))
@given(st.data())
def test_fit_chooses_what_it_chose(host: Host, data: st.DataObject) -> None:
    messages = data.draw(st.one_of(conversations(), any_messages))
    assert_fit_is_the_same(
        messages,
        budget=data.draw(BUDGETS),
        strategy=data.draw(NAMES),
        api=data.draw(APIS),
        start_with_user=data.draw(st.sampled_from([None, True, False])),
        result_tokens=data.draw(st.sampled_from([None, None, 5])),
        host=host,
    )


@settings(max_examples=examples(500))
@given(st.data())
def test_fit_chooses_what_it_chose_within_bytes(host: Host, data: st.DataObject) -> None:
    messages = [_illustrated(each, data) for each in data.draw(st.one_of(conversations(), any_messages))]
    budget = TokenBudget(limit=data.draw(st.integers(50, 400)), byte_limit=data.draw(st.integers(200, 6000)))
    assert_fit_is_the_same(messages, budget=budget, strategy=data.draw(NAMES), api=data.draw(APIS), host=host)


def _illustrated(message: Message, data: st.DataObject) -> Message:
    if message.role != "user" or message.tool_results or not data.draw(st.booleans()):
        return message
    return Message("user", (*message.parts, Image(mime="image/png", data="A" * data.draw(st.integers(0, 900)))))


# ---- sessions ---------------------------------------------------------------------------------------------------


def items_of(messages: Sequence[Message], data: st.DataObject) -> list[HistoryItem]:
    """Messages as those of a thread: a summary may come first, turns begin with a user's message."""
    counter, items, turn = Characters(), [], "t"
    for place, message in enumerate(messages):
        step = f"s{place}"
        is_input = message.role == "user" and not message.tool_results and data.draw(st.integers(0, 4)) > 0
        turn = step if is_input else turn
        is_summary = place < 2 and data.draw(st.integers(0, 5)) == 0
        items.append(
            HistoryItem(
                message,
                counter.count_messages([message]),
                "" if is_summary else turn,
                is_input=is_input and not is_summary,
                step=step,
                size=count_message_bytes(message),
            )
        )
    return items


def limits_of(module: Any, room: int, size: int, *, strategy: str, **options: Any) -> Any:
    counter = Characters()
    return module.FitLimits(
        room=room,
        bytes=size,
        limit=max(room, 0),
        byte_limit=size,
        replace_media=lambda item: module.replace_item_media(item, lambda each: counter.count_messages([each])),
        truncation=STRATEGIES[strategy],
        compaction=None,
        **options,
    )


@settings(max_examples=examples(1500))
@given(st.data())
def test_a_session_keeps_what_it_kept(data: st.DataObject) -> None:
    messages = [_illustrated(each, data) for each in data.draw(st.one_of(conversations(), any_messages))]
    items = items_of([each for each in messages if each.role != "system"], data)
    steps = [item.step for item in items]
    strategy, room = data.draw(NAMES), data.draw(st.integers(-20, 300))
    size = data.draw(st.sampled_from([100_000, 100_000, 3000, 1000]))
    pins = data.draw(st.lists(st.sampled_from(steps), max_size=2)) if steps else []
    cut: TruncationPoint | None = None
    new_known: dict[object, Any] = {}
    old_known: dict[object, Any] = {}
    for end in range(max(1, len(items) - 6), len(items) + 1):
        sent = items[:end]
        turn = data.draw(st.sampled_from(["", sent[-1].turn])) if sent else ""
        options: Any = {"strategy": strategy, "turn": turn, "pinned": pins}
        now = attempt(new.fit_items, sent, cut, limits_of(new, room, size, **options, known=new_known))
        before = attempt(old.fit_items, sent, cut, limits_of(old, room, size, **options, known=old_known))
        assert now == before
        cut = before[0].cut  # type: ignore[attr-defined]


# ---- ContextManager ---------------------------------------------------------------------------------------------


def managed(
    manager: type[Any], messages: Sequence[Message], strategy: str, prompt: str, config: dict[str, Any]
) -> object:
    counter = Characters()
    context = manager(ContextConfig.model_validate({"reserve_tokens": 0, "clock": "off", **config}), counter)
    context._truncation = STRATEGIES[strategy]  # noqa: SLF001 - it takes the name of an installed one only
    context.set_system_prompt(prompt)
    seen: list[object] = []
    for place, message in enumerate(messages):
        context.add_message(message)
        if place % 3 == 2 or place == len(messages) - 1:
            seen += [attempt(context.preview), attempt(context.build_messages), context.findings]
            seen.append((context.messages, context.get_token_usage()))
    return seen


@settings(max_examples=examples(1500))
@given(st.data())
def test_a_context_manager_keeps_what_it_kept(data: st.DataObject) -> None:
    messages = data.draw(st.one_of(conversations(), any_messages))
    arguments: Any = (
        messages,
        data.draw(NAMES),
        data.draw(st.sampled_from(["", "Be kind."])),
        {
            "max_tokens": data.draw(st.integers(1, 400)),
            "session_start": False,
            "start_with_user": data.draw(st.booleans()),
        },
    )
    assert managed(ContextManager, *arguments) == managed(OldContextManager, *arguments)


# ---- real conversations -----------------------------------------------------------------------------------------

SAMPLES = [*(ROOT / "tests/transcripts/samples").glob("*.jsonl"), *(CORPUS / "sessions").rglob("*.json*")]


def read(file: Path) -> list[Message]:
    try:
        return list(read_transcript(file.read_text(encoding="utf-8"), file.name).messages)[:400]
    except (NexusError, ValueError):
        return []


@pytest.mark.parametrize("file", sorted(SAMPLES), ids=lambda file: file.stem)
def test_a_real_conversation_is_cut_where_it_was(host: Host, file: Path) -> None:
    messages = read(file)
    whole = Characters().count_messages(messages)
    for strategy in sorted(STRATEGIES):
        for share in (0.9, 0.5, 0.1):
            budget = int(whole * share)
            for api in ("neutral", "anthropic"):
                assert_fit_is_the_same(messages, budget=budget, strategy=strategy, api=api, host=host)
            config = {"max_tokens": max(budget, 1), "session_start": False}
            arguments: Any = messages[-60:], strategy, "", config
            assert managed(ContextManager, *arguments) == managed(OldContextManager, *arguments)
