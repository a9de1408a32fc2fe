"""Summarizers are asked one after the other; whatever they do, it ends soon and with a clear result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from nexus_core.compaction.extractive import extractive_summarizer
from nexus_core.compaction.prompts import write_transcript
from nexus_core.compaction.summarize import Summary, SummaryTask, ask_summarizers, call_summarizer
from nexus_core.errors import NexusError, SummaryError
from nexus_core.runner import run
from nexus_core.types.assembled import AssembledContext
from nexus_core.types.budget import TokenBudget
from nexus_core.types.compaction import Summarizer, SummaryRequest
from nexus_core.types.messages import Message, ToolCall, ToolResult
from tests.compaction.threads import Fake, conversation, words

GOOD = "The session was read twice; it is cached now."
KEY = "AK" + "IA" + "ABCDEFGHIJKLMNOP"


def ask(*chain: Fake | Summarizer, **task: Any) -> Summary:
    given = SummaryTask(**{"messages": conversation(), "max_tokens": 200, "timeout": 60.0, **task})
    return run(ask_summarizers(given, [each.summarizer if isinstance(each, Fake) else each for each in chain], words))


def hang(_: SummaryRequest) -> str:
    threading.Event().wait()
    return ""


def longer(request: SummaryRequest) -> str:
    return request.prompt + " and so on" * 500


FAULTS: dict[str, Any] = {
    "nothing": "",
    "blanks": " \n\t ",
    "None": None,
    "bytes": b"\xff\xfe\x00garbage",
    "garbage": "\x00\x01\x02" * 200 + "\ufffd" * 50,
    "lone surrogate": "a summary \ud83d of it",
    "longer": longer,
    "the prompt": lambda request: request.prompt,
    "the conversation": lambda request: "\n".join(message.content for message in request.messages),
    "a message": lambda request: request.messages[-1].content + "\n",
    "refusal": "I'm sorry, but I can't help with that.",
    "other refusal": "I can\u2019t summarize this conversation.",
    "error": RuntimeError("HTTP 500"),
    "exit": SystemExit(3),
    "panic": BaseException("panicked"),
    "too long request": NexusError("HTTP 413"),
}


@pytest.mark.acceptance("R15")
@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_the_next_one_is_asked(fault: str) -> None:
    bad, good = Fake(FAULTS[fault], name="bad"), Fake(GOOD, name="good")

    summary = ask(bad, good)

    assert (summary.text, summary.summarizer, summary.calls) == (GOOD, "good", 2)
    assert [name for name, _ in summary.failures] == ["bad"]
    assert len(bad.asked) == 1


@pytest.mark.acceptance("R15")
@pytest.mark.parametrize("turns", range(1, 21))
@pytest.mark.parametrize("fault", FAULTS)
def test_no_more_than_two_calls_of_models_fail_and_the_result_is_typed(fault: str, turns: int) -> None:
    models = [Fake(FAULTS[fault], name=f"model{number}") for number in range(5)]

    with pytest.raises(SummaryError) as raised:
        ask(*models, messages=conversation(turns))

    assert sum(len(model.asked) for model in models) == 2
    assert [name for name, _ in raised.value.failures] == ["model0", "model1"]
    assert str(raised.value).startswith("the conversation could not be summarized: model0 ")


def test_after_two_models_have_failed_one_that_needs_none_still_answers() -> None:
    models = [Fake("", name=f"model{number}") for number in range(4)]

    summary = ask(*models, extractive_summarizer(words))

    assert (summary.summarizer, summary.calls) == ("extractive", 3)
    assert [len(model.asked) for model in models] == [1, 1, 0, 0]


def test_the_first_that_answers_is_the_only_one_asked() -> None:
    first, second = Fake(GOOD, name="first"), Fake(GOOD, name="second")

    summary = ask(first, second)

    assert (summary.text, summary.summarizer, summary.calls, summary.failures) == (GOOD, "first", 1, ())
    assert second.asked == []


def test_an_empty_chain_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(SummaryError, match="no summarizer is configured") as raised:
        ask()

    assert raised.value.hint is not None
    assert "extractive" in raised.value.hint


# ---- taking too long ------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("R15")
def test_one_that_hangs_is_left_behind() -> None:
    summary = ask(Fake(hang, name="hanging"), extractive_summarizer(words), timeout=0.05)

    assert (summary.summarizer, summary.failures) == ("extractive", (("hanging", "took longer than 0.05 s"),))


def test_one_that_is_awaited_too_long_is_left_behind() -> None:
    async def slow(_: SummaryRequest) -> str:
        await asyncio.sleep(60)
        return GOOD

    summary = ask(Fake(slow, name="slow"), extractive_summarizer(words), timeout=0.05)

    assert summary.failures == (("slow", "took longer than 0.05 s"),)


def test_one_that_asks_no_model_has_a_minute_however_short_the_time_for_models_is() -> None:
    model, other = Fake(ValueError("no"), name="model"), Fake(GOOD, name="other", asks_model=False)

    ask(model, other, timeout=0.5)
    ask(other, timeout=90.0)

    assert [asked.timeout for asked in (*model.asked, *other.asked)] == [0.5, 60.0, 90.0]


def test_an_error_of_ours_is_told_with_what_to_do_about_it() -> None:
    error = NexusError("the key was refused", where="somewhere", hint="check it")

    summary = ask(Fake(error, name="model"), Fake(GOOD))

    assert summary.failures == (("model", "failed: the key was refused (check it)"),)


@pytest.mark.parametrize("raises", [False, True])
def test_an_answer_may_be_awaited(raises: bool) -> None:
    async def answer(_: SummaryRequest) -> str:
        await asyncio.sleep(0)
        if raises:
            raise ValueError("no model")
        return GOOD

    summary = ask(Fake(answer, name="awaited"), Fake(GOOD, name="other"))

    assert summary.summarizer == ("other" if raises else "awaited")
    assert summary.failures == ((("awaited", "raised ValueError: no model"),) if raises else ())


def test_what_is_awaited_is_awaited_by_whoever_has_the_event_loop() -> None:
    async def main() -> tuple[asyncio.AbstractEventLoop, object]:
        seen: list[asyncio.AbstractEventLoop] = []

        async def answer(_: SummaryRequest) -> str:
            seen.append(asyncio.get_running_loop())
            return GOOD

        value = await asyncio.to_thread(call_summarizer, Fake(answer).summarizer, request())
        assert isinstance(value, Awaitable)
        assert await value == GOOD
        return asyncio.get_running_loop(), seen[0]

    own, used = asyncio.run(main())
    assert own is used


def request() -> SummaryRequest:
    return SummaryRequest(prompt="p", messages=(), instruction="i", max_tokens=10, timeout=60.0)


# ---- what is too long for them --------------------------------------------------------------------------------------


def narrow(limit: int, said: str) -> Callable[[SummaryRequest], str]:
    """A model that reads so many words and refuses more."""

    def answer(asked: SummaryRequest) -> str:
        if words(asked.prompt) > limit:
            raise NexusError(said.format(asked=words(asked.prompt), limit=limit))
        return f"{asked.previous} They spoke of {len(asked.messages)} things.".strip()

    return answer


@pytest.mark.parametrize(
    "said",
    ["prompt is too long: {asked} tokens > {limit} maximum", "Your input exceeds the context window", "413 too large"],
)
def test_a_model_that_refuses_a_conversation_as_too_long_is_given_it_in_pieces(said: str) -> None:
    fake = Fake(narrow(8000, said), name="model")

    summary = ask(fake, Fake(GOOD, name="other"), messages=conversation(200))

    whole, *pieces = fake.asked
    assert (summary.summarizer, summary.calls) == ("model", 1 + len(pieces))
    assert [name for name, _ in summary.failures] == ["model"]
    assert len(pieces) > 1
    assert [message for piece in pieces for message in piece.messages] == list(whole.messages)
    assert summary.text.count("They spoke of ") == len(pieces)


@pytest.mark.parametrize("previous", ["", "Before that, much was said. " * 800])
def test_in_a_small_window_the_conversation_has_more_room_than_its_summary(previous: str) -> None:
    answers = iter(f"Part {number}." for number in range(99))
    fake = Fake(lambda _: next(answers), window=8000)

    ask(fake, messages=conversation(200), previous=previous, max_tokens=4000)

    assert all(words(asked.prompt) + asked.max_tokens < 8000 for asked in fake.asked)
    assert all(words(write_transcript(asked.messages)) > 8000 // 4 for asked in fake.asked[:-1])
    assert [message for asked in fake.asked for message in asked.messages] == conversation(200)


def test_a_model_that_refuses_pieces_too_is_not_asked_for_ever() -> None:
    fake = Fake(NexusError("prompt is too long"), name="model")

    summary = ask(fake, Fake(GOOD, name="other"), extractive_summarizer(words), messages=conversation(40))

    assert (summary.summarizer, summary.calls, len(fake.asked)) == ("extractive", 3, 2)
    assert [name for name, _ in summary.failures] == ["model", "model"]


# ---- what they are given --------------------------------------------------------------------------------------------


def with_secrets() -> list[Message]:
    return [
        *conversation(6),
        Message("user", f"use {KEY}"),
        Message("assistant", (ToolCall("s", "bash", {"command": "env", "password": "correct-horse"}),)),
        Message("tool", (ToolResult("s", f"AWS_KEY {KEY}", "bash"),)),
    ]


@pytest.mark.acceptance("T10")
def test_secrets_are_taken_out_of_what_is_summarised_and_counted() -> None:
    fake = Fake(GOOD)

    summary = ask(fake, messages=with_secrets(), previous=f"They use {KEY}.")

    (asked,) = fake.asked
    assert KEY not in asked.prompt + repr(asked.messages) + asked.previous
    assert "correct-horse" not in asked.prompt
    assert summary.redacted == {"aws-key": 3, "password": 1}


@pytest.mark.acceptance("B-09")
def test_secrets_stay_where_the_switch_is_off() -> None:
    fake = Fake(GOOD)

    summary = ask(fake, messages=with_secrets(), redact=False)

    assert KEY in fake.asked[0].prompt
    assert summary.redacted == {}


def test_messages_without_secrets_are_the_same_objects() -> None:
    fake, messages = Fake(GOOD), conversation()

    ask(fake, messages=messages)

    assert all(given is message for given, message in zip(fake.asked[0].messages, messages, strict=True))


@pytest.mark.acceptance("T10")
def test_an_error_that_holds_a_secret_does_not_tell_it() -> None:
    with pytest.raises(SummaryError) as raised:
        ask(Fake(RuntimeError(f"bad key {KEY}\x1b[2J")))

    assert KEY not in str(raised.value)
    assert "\x1b" not in str(raised.value)
    assert "[redacted:aws-key]" in str(raised.value)


def test_a_summarizer_is_told_everything() -> None:
    fake = Fake(GOOD)

    ask(fake, previous="Before.", focus="the cache", max_tokens=150, timeout=9.0)

    (asked,) = fake.asked
    assert (asked.previous, asked.focus, asked.max_tokens, asked.timeout) == ("Before.", "the cache", 150, 9.0)
    assert "Before." in asked.prompt
    assert "Above all, keep what is about this: the cache" in asked.instruction
    assert asked.instruction in asked.prompt
    assert asked.context is None


def call_of(*messages: Message, system: str = "s") -> AssembledContext:
    return AssembledContext(
        system_prompt=system,
        history=messages,
        token_budget=TokenBudget(limit=100),
        workspace_path=None,  # type: ignore[arg-type]
        writer=None,  # type: ignore[arg-type]
    )


def test_in_the_form_that_uses_the_cache_the_call_itself_is_given() -> None:
    fake, context = Fake(GOOD), call_of(*conversation())

    summary = ask(fake, context=context)

    assert fake.asked[0].context is context
    assert fake.asked[0].instruction.startswith("Stop here")
    assert (summary.form, summary.note) == ("cached", "")


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    ("messages", "context"),
    [
        (with_secrets(), call_of(*with_secrets())),
        (conversation(), call_of(*conversation(), Message("user", f"kept: {KEY}"))),
        (conversation(), call_of(*conversation(), system=f"Use {KEY}.")),
    ],
    ids=["summarized", "kept", "system prompt"],
)
def test_a_call_with_secrets_is_not_repeated(messages: list[Message], context: AssembledContext) -> None:
    fake = Fake(GOOD)

    summary = ask(fake, messages=messages, context=context)

    (asked,) = fake.asked
    assert asked.context is None
    assert KEY not in asked.prompt
    assert not asked.instruction.startswith("Stop here")
    assert summary.form == "standalone"
    assert "sent as one text, because there are secrets in it: " in summary.note
    assert " aws-key" in summary.note


def test_a_call_with_secrets_is_repeated_where_the_switch_is_off() -> None:
    fake, context = Fake(GOOD), call_of(*with_secrets())

    summary = ask(fake, messages=with_secrets(), context=context, redact=False)

    assert fake.asked[0].context is context
    assert (summary.form, summary.note) == ("cached", "")


def test_a_call_that_is_asked_for_in_pieces_is_not_repeated_and_that_is_said() -> None:
    answers: Iterator[str] = (f"Summary up to {number}." for number in range(99))
    fake = Fake(lambda _: next(answers), window=1500)

    summary = ask(fake, messages=conversation(60), context=call_of(*conversation(60)))

    assert all(asked.context is None for asked in fake.asked)
    assert summary.form == "standalone"
    assert f"in {len(fake.asked)} pieces" in summary.note


def test_where_no_model_was_asked_there_is_no_form() -> None:
    summary = ask(extractive_summarizer(words), context=call_of(*with_secrets()), messages=with_secrets())

    assert (summary.form, summary.note) == (None, "")


@pytest.mark.acceptance("T10")
def test_a_secret_in_what_the_user_wants_to_be_kept_is_taken_out() -> None:
    fake = Fake(GOOD)

    ask(fake, focus=f"the key {KEY}")

    assert KEY not in fake.asked[0].prompt + fake.asked[0].instruction + fake.asked[0].focus


@pytest.mark.acceptance("B-09")
def test_a_summary_that_is_longer_than_allowed_is_shortened() -> None:
    long = " ".join(f"word{number}" for number in range(300))

    summary = ask(Fake(long), messages=conversation(40), max_tokens=60)

    assert words(summary.text) <= 60
    assert "left out" in summary.text


@pytest.mark.parametrize("characters", [1_000_000, pytest.param(50_000_000, marks=pytest.mark.slow)])
def test_nobody_counts_the_tokens_of_an_endless_answer(characters: int) -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return words(text)

    task = SummaryTask(conversation(), 200)
    with pytest.raises(SummaryError, match=f"fake wrote {characters:,} characters in place of "):
        run(ask_summarizers(task, [Fake("x" * characters).summarizer], count))

    assert max(counted) < 100_000


def test_a_summary_may_not_be_half_as_long_as_what_it_stands_for() -> None:
    fake = Fake(GOOD)
    messages = conversation(1)

    ask(fake, messages=messages, max_tokens=10_000)

    assert fake.asked[0].max_tokens == words(write_transcript(messages)) // 2


def test_odd_characters_that_are_few_are_taken_out() -> None:
    assert ask(Fake(GOOD * 10 + "\x00")).text == GOOD * 10


def test_a_summary_may_begin_with_an_apology_if_it_says_more() -> None:
    text = "I can't say it shorter: " + "the session is cached now, " * 20

    assert ask(Fake(text)).text == text.strip()


@pytest.mark.parametrize(
    "said",
    [
        "I'm sorry, I can't do that.",
        "\ufffd\ufffd lone halves \ufffd",
        "\x00\x01\x02 binary \x7f",
        "?",
        "[redacted:jwt]",
    ],
)
def test_who_needs_no_model_has_an_answer_whatever_was_said(said: str) -> None:
    messages = [message for _ in range(40) for message in (Message("user", said), Message("assistant", said))]

    summary = ask(extractive_summarizer(words), messages=messages, previous=said)

    assert (summary.summarizer, summary.failures) == ("extractive", ())
    assert summary.text


# ---- pieces ----------------------------------------------------------------------------------------------------------


def test_what_is_too_long_goes_in_pieces_each_with_the_summary_so_far() -> None:
    answers: Iterator[str] = (f"Summary up to {number}." for number in range(99))
    fake = Fake(lambda _: next(answers), window=1500)

    summary = ask(fake, messages=conversation(60), previous="Before.")

    assert summary.calls == len(fake.asked) > 2
    assert [asked.previous for asked in fake.asked] == [
        "Before.",
        *(f"Summary up to {n}." for n in range(summary.calls - 1)),
    ]
    assert summary.text == f"Summary up to {summary.calls - 1}."
    assert all(words(asked.prompt) + asked.max_tokens <= 1500 for asked in fake.asked)


def test_a_piece_that_fails_gives_all_of_it_to_the_next() -> None:
    answers: list[Any] = ["Fine.", RuntimeError("HTTP 429")]
    bad = Fake(*answers, name="bad", window=1500)

    summary = ask(bad, extractive_summarizer(words), messages=conversation(60))

    assert (len(bad.asked), summary.summarizer, summary.calls) == (2, "extractive", 3)


@pytest.mark.parametrize("make", [lambda: Fake(GOOD), lambda: Fake(longer)])
def test_the_pipeline_can_be_given_up_at_any_time(make: Callable[[], Fake]) -> None:
    work = ask_summarizers(SummaryTask(conversation(), 100), [make().summarizer], words)
    next(work)

    work.close()

    with pytest.raises(StopIteration):
        next(work)


@pytest.mark.parametrize("messages", [[], conversation(2)], ids=["alone", "with more"])
def test_a_summary_that_a_summarizer_cannot_read_at_once_is_shortened_for_it(messages: list[Message]) -> None:
    fake = Fake(lambda request: f"{GOOD} {len(request.messages)} messages.", window=1500)

    summary = ask(fake, messages=messages, previous="They began. " + "word " * 4000 + "They ended.")

    assert summary.text.startswith(GOOD)
    assert all(words(request.prompt) < 1500 for request in fake.asked)
    assert fake.asked[0].previous.startswith("They began.")
    assert fake.asked[0].previous.endswith("They ended.")
