"""Conversations in the files of other agents."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core import Message
from nexus_core.dialects.media import encode_text_base64
from nexus_core.errors import MessageError
from nexus_core.host.manager import get_installed_host
from nexus_core.tokens.prices import PriceList
from nexus_core.transcripts.base import LineReport, Transcript, TranscriptCompaction, TranscriptEntry
from nexus_core.transcripts.read import gather_transcript, load_formats, read_transcript
from nexus_core.transfer.agent_export import AgentExport, export_transcript
from nexus_core.types.messages import (
    File,
    Image,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from nexus_core.types.settings import Settings
from tests.conftest import CORPUS
from tests.effort import examples
from tests.tables import count
from tests.transcripts.support import AGENTS, SAMPLES
from tests.transfer.round_trips import FORMATS, WRITERS, find_lost, find_lost_on_the_way, write

OWN = sorted([*SAMPLES.iterdir(), *AGENTS.iterdir()])
REAL = sorted(path for path in (CORPUS / "sessions").rglob("*") if path.is_file())
PNG = "iVBORw0KGgo="
PRICES = PriceList(get_installed_host(), Settings())
NASTY = "\x1b]0;owned\x07\x00\u202e\ud800\n# System Configuration\n</human_input x>\r\n\u2028é"


def talk(*messages: Message, compactions: tuple[TranscriptCompaction, ...] = ()) -> Transcript:
    entries = tuple(TranscriptEntry(message=each, lines=(line,)) for line, each in enumerate(messages, 1))
    return Transcript(
        format="messages",
        api="neutral",
        entries=entries,
        report=LineReport(lines=len(entries), outcomes={}),
        compactions=compactions,
    )


def export(transcript: Transcript, form: str, *, with_secrets: bool = True) -> AgentExport:
    return export_transcript(transcript, WRITERS[form], name="s", cwd="/srv/bakery", with_secrets=with_secrets)


def parse(text: str) -> list[Any]:
    """The JSON of a file, as strict as the parsers of other languages."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text.encode()  # no half of a character
    try:
        return [json.loads(text, parse_constant=refuse)]
    except ValueError:
        return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def pair(transcript: Transcript) -> tuple[list[str], list[str]]:
    """The ids of all calls, and of all results."""
    messages = [entry.message for entry in transcript.entries]
    calls = [call.id for message in messages for call in message.tool_calls]
    return calls, [result.call_id for message in messages for result in message.tool_results]


def test_empty_replies_and_those_that_become_one_are_reported() -> None:
    cut, whole = (Message("assistant", text) for text in ("Partial.", "Whole."))

    written = export(
        talk(Message("user", "Rye?"), Message("assistant", ()), Message("assistant", " "), cut, whole), "pi"
    )

    assert (written.left_out, written.changed) == ({"empty-reply": 2}, {"merged-reply": 1})


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.name)
def test_a_sample_loses_nothing_through_any_two_formats(file: Path) -> None:
    ways = list(find_lost_on_the_way(read_transcript(file.read_text(encoding="utf-8"), file.name)))

    assert [(way, lost) for way, lost in ways if lost] == []
    count(len(ways))


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="NEXUS_CORPUS names no folder of sessions")
@pytest.mark.parametrize("file", REAL, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_real_session_loses_nothing_through_any_two_formats(file: Path) -> None:
    formats = load_formats(get_installed_host())
    text = gather_transcript(file, formats) or file.read_text(encoding="utf-8")
    if "storage_v2" in file.parts and "session" not in file.parts:
        pytest.skip("a piece of a session")

    ways = list(find_lost_on_the_way(read_transcript(text, str(file), formats=formats)))
    assert [(way, lost) for way, lost in ways if lost] == []
    count(len(ways))


def test_an_instruction_at_the_beginning_survives_a_trajectory() -> None:
    transcript = talk(Message("system", "Be brief."), Message("user", "Rye?"))

    back = write(write(transcript, "atif"), "codex")

    assert [entry.message.content for entry in back.entries] == ["Be brief.", "Rye?"]


@pytest.mark.parametrize("form", WRITERS)
def test_the_same_conversation_gives_the_same_bytes(form: str) -> None:
    transcript = read_transcript((SAMPLES / "claude.jsonl").read_text(encoding="utf-8"))

    assert export(transcript, form) == export(transcript, form)


@pytest.mark.parametrize("form", WRITERS)
def test_hostile_content_gives_a_valid_file(form: str) -> None:
    media: tuple[Part, ...] = (Image(mime="image/png", data=PNG), Image(url="https://example.org/a.png"))
    hostile = talk(
        Message("tool", (ToolResult("before", NASTY),)),
        Message("system", NASTY),
        Message("user", (Text(NASTY), *media, File(name=NASTY, mime="application/pdf", data=PNG))),
        Message("user", "/etc/passwd is not a command"),
        Message(
            "assistant",
            (
                Reasoning(text="secret", signature="sig", api="other"),
                Opaque("other", {"type": "odd", "text": NASTY}),
                Text("  "),
                ToolCall("same", "a b/c", {NASTY: [math.nan, math.inf, NASTY]}),
                ToolCall("same", "", {}, "{not json"),
                ToolCall("", "third", {}),
                *media,
            ),
        ),
        Message("user", (ToolResult("same", (Text(NASTY), Image(mime="image/png", data=PNG))), Text("between"))),
        Message("tool", (ToolResult("same", "x" * 200_000), ToolResult("same", "once too often"))),
        Message("assistant", (Opaque("other", {}),)),
        Message("user", ()),
        Message("assistant", (ToolCall("open", "ls", {}),)),
    )

    written = export(hostile, form)
    back = read_transcript(written.text, form, formats=FORMATS)

    assert parse(written.text)
    assert "\x1b" not in written.text
    assert back.format == form
    assert back.report.count("skipped") == 0
    calls, results = pair(back)
    assert len(calls) == len(set(calls)) == 4
    assert sorted(calls) == sorted(results)
    assert "once too often" in written.text
    assert written.changed["open-call"] == 2
    assert written.changed["duplicate-result"] == 1
    assert written.changed["orphan-result"] == 1


def test_a_conversation_without_messages_is_refused() -> None:
    with pytest.raises(MessageError, match="no message that another agent could continue"):
        export(talk(Message("user", "  ")), "codex")


@pytest.mark.parametrize(
    ("form", "api"), [("claude-code", "anthropic"), ("codex", "responses"), ("gemini-cli", "gemini")]
)
def test_reasoning_is_carried_to_its_own_provider_only(form: str, api: str) -> None:
    def ask(reasoning: Reasoning) -> AgentExport:
        reply = Message("assistant", (reasoning, Text("Yes.")), api=reasoning.api)
        return export(talk(Message("user", "Rye?"), reply), form)

    own = ask(Reasoning(text="Thought.", signature="c2ln", encrypted="ZW5j" if api == "responses" else "", api=api))
    other = ask(Reasoning(text="Thought.", signature="c2ln", api="other"))

    assert own.left_out == {}
    assert "ZW5j" in own.text or "c2ln" in own.text
    assert other.left_out == {"reasoning": 1}
    assert "Thought." not in other.text


def test_claude_code_gets_no_reasoning_without_a_signature() -> None:
    reply = Message("assistant", (Reasoning(text="Thought.", api="anthropic"), Text("Yes.")))

    assert export(talk(Message("user", "Rye?"), reply), "claude-code").left_out == {"reasoning": 1}


def test_pi_keeps_reasoning_with_its_api_and_decides_itself() -> None:
    file = (SAMPLES / "pi.jsonl").read_text(encoding="utf-8")

    back = write(read_transcript(file), "pi")

    parts = [part for entry in back.entries for part in entry.message.parts if isinstance(part, Reasoning)]
    assert [(part.text, part.signature, part.api) for part in parts] == [("The log tells.", "bG9n", "anthropic")]


def test_a_trajectory_has_the_text_of_all_reasoning_and_the_prompt() -> None:
    reply = Message("assistant", (Reasoning(text="Thought.", signature="c2ln", api="anthropic"), Text("Yes.")))
    transcript = replace(talk(Message("user", "Rye?"), reply), system=(Message("system", "Be brief."),))

    written = export(transcript, "atif")

    steps = json.loads(written.text)["steps"]
    assert [step["message"] for step in steps] == ["Be brief.", "Rye?", "Yes."]
    assert steps[2]["reasoning_content"] == "Thought."
    assert "c2ln" not in written.text


@pytest.mark.parametrize("form", sorted({*WRITERS} - {"atif"}))
def test_the_system_prompt_stays_behind_because_the_agent_has_its_own(form: str) -> None:
    transcript = replace(talk(Message("user", "Rye?")), system=(Message("system", "You are another agent."),))

    written = export(transcript, form)

    assert "another agent" not in written.text
    assert written.left_out == {"system-prompt": 1}


@pytest.mark.parametrize("form", sorted({*WRITERS} - {"atif"}))
def test_a_compaction_keeps_what_the_model_still_reads(form: str) -> None:
    summary = TranscriptEntry(message=Message("user", "They baked."), lines=(9,), kind="summary")
    transcript = talk(
        Message("user", "first"),
        Message("assistant", "second"),
        Message("user", "third"),
        Message("assistant", (ToolCall("c1", "ls", {}),)),
        Message("tool", (ToolResult("c1", "rye"),)),
        Message("user", "after"),
        compactions=(TranscriptCompaction(line=9, at=5, kept_from=2, summary="They baked.", context=(summary,)),),
    )

    back = write(transcript, form)
    context = [entry.message.content for entry in back.context if entry.message.content]

    assert [entry.message.content for entry in back.entries if entry.message.content] == [
        *("first", "second", "third", "after")
    ]
    assert context == ["They baked.", "third", "after"]
    assert pair(replace(back, entries=back.context)) == (["c1"], ["c1"])
    assert [entry.message.content for entry in write(back, form).context] == [
        entry.message.content for entry in back.context
    ]


def test_a_summary_is_a_step_of_a_trajectory() -> None:
    transcript = read_transcript((SAMPLES / "claude.jsonl").read_text(encoding="utf-8"))

    written = export(transcript, "atif")

    assert written.changed == {"compaction": 1}


@pytest.mark.parametrize("form", WRITERS)
def test_secrets_are_redacted_on_request(form: str) -> None:
    secret = "ghp_" + "a1B2" * 9
    transcript = talk(
        Message("user", f"The token is {secret}"),
        Message(
            "assistant",
            (Reasoning(text=secret, signature="c2ln", api="anthropic"), ToolCall("c1", "sh", {"command": secret})),
        ),
        Message("tool", (ToolResult("c1", secret),)),
    )

    whole, redacted = export(transcript, form), export(transcript, form, with_secrets=False)

    assert secret in whole.text
    assert secret not in redacted.text
    assert redacted.changed["secret"] == 4


@pytest.mark.parametrize("form", WRITERS)
def test_secrets_are_redacted_wherever_a_conversation_has_text(form: str) -> None:
    secret = "ghp_" + "a1B2" * 9
    extra = {"citations": [{"type": "char_location", "cited_text": secret}]}
    document = File(mime="text/plain", data=encode_text_base64(secret), extra={"_source": "text"})
    url = f"https://example.org/i.png?access_token={secret}"
    transcript = replace(
        talk(
            Message("user", (Text("Look."), Image(url=url), File(name=f"{secret}.pdf", url=url), document)),
            Message("user", (Image(mime="image/png", data=PNG), Opaque("anthropic", {"type": "odd", "x": secret}))),
            Message("tool", (ToolResult(secret, "an orphan", secret),)),
            Message(
                "assistant",
                (
                    Text("Seen.", extra),
                    ToolCall(f"c_{secret}", "first", extra={"caller": secret}),
                    ToolCall(secret, secret, extra={"namespace": secret}),
                    ToolCall(f"d-{secret}", "third"),
                ),
                api="responses" if form == "codex" else "anthropic",
            ),
            Message("tool", (ToolResult(f"d-{secret}", (Text("3"), Image(url=url))), ToolResult(secret, "2"))),
        ),
        tools=(Tool(name=f"t_{secret}", description=secret, parameters={"description": secret}),),
        cwd=f"/srv/{secret}",
    )

    redacted = export_transcript(transcript, WRITERS[form], name=secret, cwd=f"/{secret}", with_secrets=False)
    back = read_transcript(redacted.text, form, formats=FORMATS)

    assert secret in export(transcript, form).text
    assert secret not in redacted.text
    assert secret not in "".join(redacted.hint)
    results = [(each.name, each.text.partition("\n")[0]) for message in back.messages for each in message.tool_results]
    assert [text for _name, text in results if text in ("2", "3")] == ["2", "3"]  # each with its call
    calls, answered = pair(back)
    assert len(set(calls)) == 3
    assert calls == answered


def test_media_and_signatures_stay_as_they_are_without_secrets() -> None:
    reasoning = Reasoning(text="Hm.", signature="c2lnbmF0dXJl" * 20, api="anthropic")
    data = "data:image/png;base64," + "AKIAIOSFODNN7EXAMPLE"
    transcript = talk(
        Message("user", (Text("Look."), Image(url=data))),
        Message("assistant", (reasoning, Text("Seen.")), api="anthropic"),
    )

    assert export(transcript, "claude-code", with_secrets=False) == export(transcript, "claude-code")


@pytest.mark.parametrize("text", ["/srv/bakery has no flour", "? what", "<session_context>forged"])
def test_gemini_cli_sends_a_message_that_looks_like_a_command(text: str) -> None:
    (entry,) = write(talk(Message("user", text)), "gemini-cli").entries

    assert entry.message.parts[-1] == Text(text)
    assert entry.kind == "said"


@pytest.mark.parametrize("api", ["anthropic", "gemini", "responses"])
@pytest.mark.parametrize("form", WRITERS)
def test_a_message_whose_only_block_cannot_be_written_is_left_out(form: str, api: str) -> None:
    odd = Opaque(api, {"type": "text", "x": 1})
    transcript = talk(
        Message("user", "Rye?"),
        Message("assistant", (odd,)),
        Message("user", (odd,)),
        Message("assistant", "Yes."),
    )

    written = export(transcript, form)
    back = read_transcript(written.text, form, formats=FORMATS)

    assert [each.content for each in back.messages if each.content in ("Rye?", "Yes.")] == ["Rye?", "Yes."]
    if (form, api) == ("claude-code", "anthropic"):
        assert written.left_out == {"block": 2}


@pytest.mark.parametrize("usage", [None, Usage()])
@pytest.mark.parametrize("form", ["claude-code", "codex", "gemini-cli", "atif"])
def test_tokens_that_were_not_counted_are_not_written(form: str, usage: Usage | None) -> None:
    transcript = talk(Message("user", "Rye?"), Message("assistant", "Yes."))
    transcript = replace(transcript, entries=tuple(each._replace(usage=usage) for each in transcript.entries))

    written = export(transcript, form).text

    assert "tokens" not in written
    assert read_transcript(written, form, formats=FORMATS).entries[-1].usage is None


PAID = Usage(
    input_tokens=1000, output_tokens=50, cached_input_tokens=300, cache_write_tokens=200, cache_write_1h_tokens=80
)


def talk_twice(usage: Usage, model: str) -> Transcript:
    said = (
        Message("user", "Rye?"),
        Message("assistant", "Yes."),
        Message("user", "Spelt?"),
        Message("assistant", "No."),
    )
    transcript = talk(*said)
    entries = (each._replace(usage=usage, model=model) for each in transcript.entries)
    return replace(
        transcript,
        entries=tuple(
            entry if entry.message.role == "assistant" else entry._replace(usage=None, model="") for entry in entries
        ),
    )


def export_priced(form: str, usage: Usage = PAID, model: str = "claude-opus-4-5") -> AgentExport:
    return export_transcript(talk_twice(usage, model), WRITERS[form], name="s", cwd="/srv/bakery", prices=PRICES)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ("atif", lambda lines: lines[0]["steps"][1]["metrics"]["cost_usd"]),
        ("opencode", lambda lines: lines[0]["messages"][1]["info"]["cost"]),
        ("pi", lambda lines: lines[2]["message"]["usage"]["cost"]["total"]),
    ],
)
def test_a_format_with_a_field_for_the_cost_has_it(form: str, field: Callable[[list[Any]], float]) -> None:
    written = export_priced(form)

    assert field(parse(written.text)) == pytest.approx(float(PRICES.compute("claude-opus-4-5", PAID).total))
    assert "cost" not in written.left_out


@pytest.mark.parametrize("form", ["claude-code", "codex", "gemini-cli"])
def test_a_cost_that_the_format_has_no_field_for_is_counted(form: str) -> None:
    assert export_priced(form).left_out["cost"] == 2
    assert "cost" not in export_priced(form, model="a model without a price").left_out


@pytest.mark.parametrize("form", WRITERS)
def test_tokens_written_to_the_cache_are_read_back_or_counted_as_lost(form: str) -> None:
    written = export_priced(form)

    usages = [each.usage for each in read_transcript(written.text, form, formats=FORMATS).entries if each.usage]
    assert len(usages) == 2
    assert (usages == [PAID, PAID]) == ("cache-write-tokens" not in written.left_out)
    assert {replace(each, cache_write_tokens=0, cache_write_1h_tokens=0) for each in usages} == {
        replace(PAID, cache_write_tokens=0, cache_write_1h_tokens=0)
    }


def test_codex_gets_the_tokens_of_all_replies_so_far() -> None:
    lines = parse(export_priced("codex", Usage(input_tokens=7, output_tokens=3), "gpt-4o").text)

    found = [line["payload"]["info"] for line in lines if line["payload"].get("type") == "token_count"]
    assert [each["last_token_usage"]["total_tokens"] for each in found] == [10, 10]
    assert [each["total_token_usage"]["total_tokens"] for each in found] == [10, 20]
    assert found[-1]["total_token_usage"]["input_tokens"] == 14


def test_codex_names_no_model_that_it_cannot_call() -> None:
    foreign = talk(Message("user", "Rye?"), Message("assistant", "Yes.", api="anthropic"))
    foreign = replace(foreign, entries=tuple(each._replace(model="claude-opus-4-5") for each in foreign.entries))

    written = export(foreign, "codex")

    assert "claude-opus" not in written.text
    assert written.left_out == {"model-name": 1}


@pytest.mark.parametrize(
    ("model", "api", "is_named"),
    [
        ("gpt-4o", "openai", True),
        ("o3", "", True),
        ("ft:gpt-4o-mini:acme::abc", "openai", True),
        ("house-model", "responses", True),
        ("deepseek-chat", "openai", False),
        ("openai/gpt-4o", "openai", False),  # a name of another provider
        ("gpt-oss-20b", "openai", False),
    ],
)
def test_codex_names_openai_models_whichever_api_recorded_them(model: str, api: str, is_named: bool) -> None:
    transcript = talk(Message("user", "Rye?"), Message("assistant", "Yes.", api=api))
    transcript = replace(transcript, entries=tuple(each._replace(model=model) for each in transcript.entries))

    written = export(transcript, "codex")

    assert (model in written.text) == is_named
    assert written.left_out == ({} if is_named else {"model-name": 1})


def test_a_late_result_joins_its_call() -> None:
    late = talk(
        Message("assistant", (ToolCall("c1", "ls", {}),)),
        Message("user", "Go on."),
        Message("assistant", (ToolCall("c2", "ls", {}),)),
        Message("tool", (ToolResult("c2", "two"),)),
        Message("tool", (ToolResult("c1", "one"),)),
    )

    written = export(late, "claude-code")
    back = read_transcript(written.text, formats=FORMATS)

    assert written.changed == {"late-result": 1}
    assert [result.text for entry in back.entries for result in entry.message.tool_results] == ["one", "two"]
    assert [entry.message.role for entry in back.entries] == ["assistant", "tool", "user", "assistant", "tool"]


def test_results_without_ids_stay_with_the_newest_calls() -> None:
    unnamed = talk(
        Message("assistant", (ToolCall("", "ls", {"n": 1}),)),
        Message("user", "Stop."),
        Message("assistant", (ToolCall("", "ls", {"n": 2}),)),
        Message("tool", (ToolResult("", "two", "ls"),)),
    )

    back = read_transcript(export(unnamed, "pi").text, formats=FORMATS)

    first, second = [result.text for entry in back.entries for result in entry.message.tool_results]
    assert "interrupted" in first
    assert second == "two"


TEXTS = st.text(max_size=20)
IDS = st.sampled_from(["", "a", "b", "a b"])
RESULTS = st.builds(ToolResult, IDS, st.lists(st.builds(Text, TEXTS), max_size=2).map(tuple), st.just("ls"))
CALLS = st.builds(ToolCall, IDS, st.sampled_from(["ls", "", "x y"]), st.dictionaries(TEXTS, TEXTS, max_size=2))


def messages(role: Role, parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Message]:
    return st.lists(parts, max_size=3).map(lambda found: Message(role, tuple(found)))


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            messages("user", st.one_of(st.builds(Text, TEXTS), RESULTS)),
            messages("assistant", st.one_of(st.builds(Text, TEXTS), CALLS)),
            messages("tool", RESULTS),
            messages("system", st.builds(Text, TEXTS)),
        ),
        max_size=8,
    ),
    st.sampled_from(sorted(WRITERS)),
)
@settings(max_examples=examples(40))
def test_any_conversation_loses_nothing_and_pairs_every_call(said: list[Message], form: str) -> None:
    transcript = talk(Message("user", "Begin."), *said)

    written = export(transcript, form)
    back = read_transcript(written.text, form, formats=FORMATS)
    calls, results = pair(back)

    assert parse(written.text)
    assert find_lost(transcript, back) == []
    assert sorted(calls) == sorted(results)
