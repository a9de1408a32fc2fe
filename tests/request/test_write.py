"""The arguments of an SDK's call."""

from __future__ import annotations

import inspect
import json
import re
import sys
from dataclasses import replace
from typing import Any

import pytest
from anthropic.resources.messages import Messages
from google.genai import types
from openai.resources.chat.completions import Completions
from openai.resources.responses.responses import Responses

from nexus_core.dialects.registry import BUILT_IN_DIALECTS, get_dialect
from nexus_core.errors import BudgetError, UnknownNameError
from nexus_core.request.write import CONTENT_FIELDS, OPTION_FIELDS, CallWriter, build_writer
from nexus_core.types.assembled import AssembledContext
from nexus_core.types.budget import TokenBudget
from nexus_core.types.messages import Conversation, Message, Reasoning, Text, Tool, ToolCall, ToolResult
from nexus_core.types.settings import Settings
from tests.request.contexts import (
    CLAUDE,
    DEEPSEEK,
    FOR_API,
    GEMINI,
    GPT,
    GPT_4O,
    LOOK,
    Cache,
    asks,
    blocks_of,
    brings,
    context_of,
    find_model,
    marked_paths,
    says,
    user,
)

APIS = ["openai", "responses", "anthropic", "gemini"]
EVERY_API = pytest.mark.parametrize("api", APIS)
SHORT: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
LONG: dict[str, Any] = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}


# ---- what is in a call ----------------------------------------------------------------------------------------------


def test_anthropic_gets_system_messages_tools_and_how_much_it_may_say() -> None:
    written = context_of([user()]).to("anthropic", cache=False)

    assert written == {
        "model": "claude-opus-5",
        "max_tokens": 8000,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Why?"}],
        "tools": [{"name": "look", "description": "Look at a file.", "input_schema": dict(LOOK.parameters)}],
    }


def test_no_model_is_asked_for_more_than_it_can_say() -> None:
    small = replace(CLAUDE, max_output=4096)

    assert context_of([user()], model=small).to("anthropic")["max_tokens"] == 4096
    assert context_of([user()], model=small).to("anthropic", max_tokens=9)["max_tokens"] == 9


@pytest.mark.parametrize(
    ("thinking", "tokens"),
    [
        ({"type": "enabled", "budget_tokens": 20_000}, 28_000),
        ({"type": "enabled", "budget_tokens": 8000}, 16_000),
        ({"type": "enabled", "budget_tokens": 2000}, 8000),
        ({"type": "enabled", "budget_tokens": 500_000}, 128_000),
        ({"type": "adaptive"}, 8000),
        ({"type": "disabled"}, 8000),
        (None, 8000),
    ],
)
def test_there_is_more_room_for_an_answer_than_for_the_thoughts_before_it(thinking: object, tokens: int) -> None:
    assert context_of([user()]).to("anthropic", thinking=thinking)["max_tokens"] == tokens
    if thinking is not None:
        assert context_of([user()], model_config={"thinking": thinking}).to("anthropic")["max_tokens"] == tokens


def test_openai_gets_the_system_prompt_as_a_message() -> None:
    written = context_of([user()], model=GPT_4O).to("openai", cache=False)

    assert written == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Look at a file.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
    }


def test_responses_gets_instructions_and_nothing_that_is_kept_on_the_server() -> None:
    written = context_of([user()], model=GPT_4O).to("responses")

    assert written["instructions"] == "Be brief."
    assert written["input"] == [{"type": "message", "role": "user", "content": "Why?"}]
    assert not {"store", "previous_response_id", "conversation"} & written.keys()


def test_gemini_gets_contents_and_the_rest_in_its_config() -> None:
    written = context_of([user()], model=GEMINI).to("gemini", temperature=0.5)

    assert list(written) == ["model", "contents", "config"]
    assert written["contents"] == [{"role": "user", "parts": [{"text": "Why?"}]}]
    assert written["config"]["system_instruction"] == "Be brief."
    assert written["config"]["temperature"] == 0.5
    assert written["config"]["tools"][0]["functionDeclarations"][0]["name"] == "look"


def test_neutral_is_the_form_in_json() -> None:
    context = context_of([user(), asks("a"), brings("a")], model_config={"temperature": 0.5})

    written = json.loads(json.dumps(context.to("neutral", seed=7)))

    assert get_dialect("neutral").read_request(written) == Conversation(
        messages=(Message("system", "Be brief."), *context.messages),
        tools=(LOOK,),
        extra={"model": "claude-opus-5", "temperature": 0.5, "seed": 7},
    )


def test_an_unknown_api_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'anthropic'"):
        context_of([user()]).to("antropic")
    with pytest.raises(UnknownNameError, match="did you mean 'gemini'"):
        context_of([user()]).breakpoints("gemni")


@EVERY_API
def test_a_call_names_a_model_only_if_somebody_chose_one(api: str) -> None:
    nobody = replace(context_of([user()], model=find_model("unknown")), model="")

    assert "model" not in nobody.to(api)
    assert nobody.to(api, model="claude-opus-5")["model"] == "claude-opus-5"


def test_what_is_known_of_a_model_is_asked_when_it_is_chosen_for_the_call() -> None:
    nobody = replace(context_of([user()], model=find_model("unknown")), model="")

    assert marked_paths(nobody.to("anthropic")) == []
    assert marked_paths(nobody.to("anthropic", model="claude-opus-5")) == ["system[0]", "messages[0].content[0]"]


@EVERY_API
def test_the_same_context_gives_the_same_bytes(api: str) -> None:
    messages = [user("1"), says(), user("2"), asks("a", "b"), brings("b", "a")]
    options: dict[str, Any] = {"temperature": 0.5, "my_option": {"b": 1, "a": 2}}

    written = {json.dumps(context_of(messages, past=2, model=FOR_API[api]).to(api, **options)) for _ in range(3)}

    assert len(written) == 1


@EVERY_API
def test_writing_changes_nothing_in_the_context(api: str) -> None:
    messages = [user("1"), says(), Message("user", [Text("x", SHORT), Text("y")], api="anthropic")]
    context = context_of(messages, past=2, tools=[Tool(name="t", api="anthropic", extra={"cache_control": None})])
    before = json.dumps(context.to("neutral"))

    written = context.to(api)
    for value in written.values():
        if isinstance(value, list):
            value.clear()

    assert json.dumps(context.to("neutral")) == before


# ---- options --------------------------------------------------------------------------------------------------------


@EVERY_API
def test_options_of_the_settings_are_in_the_call(api: str) -> None:
    context = context_of([user()], model=FOR_API[api], model_config={"top_p": 0.1, "temperature": 0.2})

    written = context.to(api, temperature=0.3)

    options = written["config"] if api == "gemini" else written
    assert (options["top_p"], options["temperature"]) == (0.1, 0.3)


@EVERY_API
def test_options_that_only_other_apis_know_are_left_out_and_those_that_nobody_knows_are_not(api: str) -> None:
    config = {
        "thinking": {"type": "enabled"},
        "reasoning_effort": "high",
        "reasoning": {"effort": "high"},
        "thinking_config": {"thinking_level": "high"},
        "brand_new": 1,
    }
    theirs = {
        "anthropic": "thinking",
        "openai": "reasoning_effort",
        "responses": "reasoning",
        "gemini": "thinking_config",
    }

    written = context_of([user()], model=FOR_API[api], model_config=config).to(api)

    options = written["config"] if api == "gemini" else written
    assert config.keys() & options.keys() == {theirs[api], "brand_new"}


@EVERY_API
def test_options_of_the_settings_do_not_say_what_is_told_to_the_model(api: str) -> None:
    config = dict.fromkeys(CONTENT_FIELDS, "from the settings")

    written = context_of([user()], model=FOR_API[api], model_config=config).to(api)

    assert "from the settings" not in json.dumps(written)


@EVERY_API
def test_the_callers_arguments_take_the_place_of_what_was_written(api: str) -> None:
    said = {"anthropic": "messages", "openai": "messages", "responses": "input", "gemini": "contents"}[api]
    given: dict[str, Any] = {said: ["mine"], "tools": [], "model": "another"}

    written = context_of([user()], model=FOR_API[api]).to(api, **given)

    assert written[said] == ["mine"]
    assert written["model"] == "another"
    assert (written["config"] if api == "gemini" else written)["tools"] == []


def test_what_the_caller_gives_is_handed_on_as_it_is() -> None:
    omitted = object()

    assert context_of([user()]).to("anthropic", timeout=omitted)["timeout"] is omitted


def test_a_config_of_gemini_is_filled_and_goes_before_what_would_be_there() -> None:
    context = context_of([user()], model=GEMINI, model_config={"temperature": 0.1, "top_p": 0.1, "seed": 1})
    given = types.GenerateContentConfig(temperature=0.2, system_instruction="Be verbose.", response_schema=int)

    config = context.to("gemini", config=given, seed=2)["config"]

    assert config["system_instruction"] == "Be verbose."
    assert config["response_schema"] is int
    assert (config["temperature"], config["top_p"], config["seed"]) == (0.2, 0.1, 2)
    assert config["tools"]
    assert None not in config.values()


def test_a_config_in_the_settings_is_one_for_gemini() -> None:
    context = context_of([user()], model=GEMINI, model_config={"config": {"temperature": 0.1}})

    assert context.to("gemini")["config"]["temperature"] == 0.1
    assert "config" not in context.to("openai")


def test_every_known_option_is_one_of_the_sdks() -> None:
    def parameters(call: Any) -> set[str]:
        return set(inspect.signature(call).parameters)

    assert OPTION_FIELDS["openai"] <= parameters(Completions.create)
    assert OPTION_FIELDS["responses"] <= parameters(Responses.create)
    # Of the beta; and what models take that are not of today.
    elsewhere = {"betas", "context_management", "mcp_servers", "temperature", "top_k", "top_p"}
    assert OPTION_FIELDS["anthropic"] - elsewhere <= parameters(Messages.create)
    assert OPTION_FIELDS["gemini"] - {"config"} <= types.GenerateContentConfig.model_fields.keys()


# ---- what providers are told to keep --------------------------------------------------------------------------------


LOOP = [user("1"), says(), user("2"), asks("a", "b"), brings("a", "b"), asks("c"), brings("c")]


def test_anthropic_is_told_at_the_ends_of_system_history_last_call_and_this_one() -> None:
    written = context_of(LOOP, past=2).to("anthropic")

    assert marked_paths(written) == [
        "system[0]",
        "messages[1].content[0]",
        "messages[4].content[1]",
        "messages[6].content[0]",
    ]
    assert written["system"] == [{"type": "text", "text": "Be brief.", **SHORT}]
    assert written["messages"][1] == {"role": "assistant", "content": [{"type": "text", "text": "Because.", **SHORT}]}


def test_without_a_system_prompt_the_last_tool_is_marked_that_is_always_there() -> None:
    later = Tool(name="later", api="anthropic", extra={"defer_loading": True})

    written = context_of([user()], system="", tools=[LOOK, LOOK, later]).to("anthropic")

    assert marked_paths(written) == ["tools[1]", "messages[0].content[0]"]


def test_the_longer_lived_mark_comes_first() -> None:
    written = context_of(LOOP, past=2, ttl="1h").to("anthropic")

    assert [block.mark for block in blocks_of(written) if block.mark] == [
        LONG["cache_control"],
        *[SHORT["cache_control"]] * 3,
    ]


def test_thoughts_are_never_marked() -> None:
    thought = Reasoning(text="hm", signature="s", api="anthropic")
    answer = Message("assistant", [Text("So."), thought], api="anthropic")

    written = context_of([user("1"), answer, user("2")], past=2).to("anthropic")

    assert "thinking" not in json.dumps([block.text for block in blocks_of(written) if block.mark])
    assert marked_paths(written) == [
        "system[0]",
        "messages[0].content[0]",
        "messages[1].content[0]",
        "messages[2].content[0]",
    ]


def test_results_that_share_their_message_with_words_keep_their_own_mark() -> None:
    interrupted = [user("1"), asks("a"), brings("a"), user("2")]

    written = context_of(interrupted, past=3).to("anthropic")

    assert [block["type"] for block in written["messages"][2]["content"]] == ["tool_result", "text"]
    assert marked_paths(written)[-2:] == ["messages[2].content[0]", "messages[2].content[1]"]


def test_what_repair_puts_in_does_not_move_the_marks() -> None:
    messages = [says("Hello."), user("1"), asks("a"), user("2"), says(), user("3")]

    written = context_of(messages, past=5).to("anthropic")

    roles = [message["role"] for message in written["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user", "assistant", "user"]
    assert marked_paths(written)[1:] == ["messages[4].content[1]", "messages[5].content[0]", "messages[6].content[0]"]


def test_at_most_four_blocks_are_marked_whatever_the_caller_has_marked() -> None:
    tools = [Tool(name=f"t{each}", api="anthropic", extra=SHORT) for each in range(6)]
    said = Message("user", [Text("x", LONG), Text("y", SHORT)], api="anthropic")

    written = context_of([said, says(), said], past=2, tools=tools).to("anthropic")

    assert marked_paths(written) == ["tools[2]", "tools[3]", "tools[4]", "tools[5]"]


def test_marks_of_tools_that_outlive_each_other_are_put_right() -> None:
    tools = [Tool(name=f"t{each}", api="anthropic", extra=mark) for each, mark in enumerate([SHORT, LONG])]
    said = Message("user", [Text("x", LONG)], api="anthropic")

    written = context_of([said], tools=tools).to("anthropic")

    assert [block.mark for block in blocks_of(written) if block.mark] == [SHORT["cache_control"]] * 4


def test_the_mark_that_anthropic_sets_by_itself_takes_one_of_four() -> None:
    said = Message("user", [Text("x", SHORT)] * 4, api="anthropic")

    written = context_of([said, says(), user()], past=2).to("anthropic", **SHORT)

    assert written["cache_control"] == SHORT["cache_control"]
    assert marked_paths(written) == [f"messages[0].content[{place}]" for place in (1, 2, 3)]


def test_older_models_of_openai_get_a_key_and_no_marks() -> None:
    written = context_of([user()], model=GPT_4O).to("openai")

    assert re.fullmatch("nexus-[0-9a-f]{32}", written["prompt_cache_key"])
    assert "prompt_cache_breakpoint" not in json.dumps(written)


@pytest.mark.parametrize("api", ["openai", "responses"])
def test_the_key_is_of_the_session_and_its_epoch_and_tells_nothing_of_them(api: str) -> None:
    def key(**fields: Any) -> str:
        return str(context_of([user()], model=GPT_4O, **fields).to(api)["prompt_cache_key"])

    assert key() == key()
    assert key() == key(history=(user(), says()), system="Be verbose.")
    assert len({key(), key(session_label="other"), key(epoch="beef"), key(session_label="auth-bu", epoch="gf00d")}) == 4
    assert "auth" not in key(session_label="auth-bug " * 50)
    assert len(key(session_label="auth-bug " * 50)) <= 64


def test_the_key_can_be_the_callers_or_the_settings() -> None:
    config = {"prompt_cache_key": "ours"}

    assert context_of([user()], model=GPT).to("openai", prompt_cache_key="mine")["prompt_cache_key"] == "mine"
    assert context_of([user()], model=GPT, model_config=config).to("responses")["prompt_cache_key"] == "ours"


def test_what_belongs_to_no_session_has_no_key() -> None:
    assert "prompt_cache_key" not in context_of([user()], model=GPT, session_label="", epoch="").to("openai")


def test_servers_that_only_speak_like_openai_get_no_key() -> None:
    assert "prompt_cache_key" not in context_of([user()], model=DEEPSEEK).to("openai")
    assert "prompt_cache_key" not in context_of([user()], model=CLAUDE).to("openai")
    assert "prompt_cache_key" not in context_of([user()], model=GPT).to("openai", model="my-llama")


def test_newer_models_of_openai_are_told_at_the_ends_of_input() -> None:
    written = context_of(LOOP, past=2, model=GPT).to("openai")

    places = [place for place, message in enumerate(written["messages"]) if "prompt_cache" in json.dumps(message)]
    assert [written["messages"][place]["role"] for place in places] == ["system", "tool", "tool"]
    assert places == [0, 6, 8]
    assert written["messages"][8]["content"] == [{"type": "text", "text": "what is in c", **BREAKPOINT}]


def test_responses_gets_the_system_prompt_as_an_item_where_it_is_marked() -> None:
    written = context_of(LOOP, past=2, model=GPT).to("responses")

    assert "instructions" not in written
    places = [place for place, item in enumerate(written["input"]) if "prompt_cache" in json.dumps(item)]
    assert [written["input"][place].get("role") or written["input"][place]["type"] for place in places] == [
        "system",
        "function_call_output",
        "function_call_output",
    ]
    assert written["input"][0]["content"] == [{"type": "input_text", "text": "Be brief.", **BREAKPOINT}]
    assert written["input"][-1]["output"] == [{"type": "input_text", "text": "what is in c", **BREAKPOINT}]


@EVERY_API
def test_without_the_cache_nobody_is_told_anything(api: str) -> None:
    model = FOR_API[api]

    written = context_of(LOOP, past=2, model=model).to(api, cache=False)

    assert "cache" not in json.dumps(written)
    assert written == context_of(LOOP, past=2, model=model, enabled=False).to(api)


@EVERY_API
def test_marks_change_nothing_else(api: str) -> None:
    model = FOR_API[api]

    plain, told = (context_of(LOOP, past=2, model=model).to(api, cache=cache) for cache in (False, True))

    assert context_of(LOOP, past=2, model=model).to("neutral") == context_of(
        LOOP, past=2, model=model, enabled=False
    ).to("neutral")
    if api == "anthropic":
        assert [block.text for block in blocks_of(told)] == [block.text for block in blocks_of(plain)]
    elif api == "gemini":
        assert told == plain


def test_what_one_call_leaves_in_the_cache_the_next_one_finds() -> None:
    wide = [f"w{each}" for each in range(15)]
    messages = [
        user("1"),
        asks("a"),
        brings("a"),
        says(),
        user("2"),
        asks(*wide),
        brings(*wide),
        asks("b"),
        brings("b"),
    ]
    cache = Cache()

    found = []
    for end, past in ((1, 0), (3, 0), (5, 4), (7, 4), (9, 4)):
        written = context_of(messages[:end], past=past).to("anthropic")
        found.append((cache.read(written), len(blocks_of(written))))

    assert found == [(0, 3), (3, 5), (5, 7), (7, 37), (37, 39)]


def test_another_session_finds_the_static_zone_and_a_fork_all_but_its_own_turn() -> None:
    cache = Cache()
    cache.read(context_of(LOOP, past=2).to("anthropic"))

    fork = context_of([*LOOP[:2], user("another way")], past=2).to("anthropic")
    other = context_of([user("something else")]).to("anthropic")

    assert cache.read(other) == len(other["tools"]) + len(other["system"])
    assert cache.read(fork) == len(blocks_of(fork)) - 1


# ---- settings -------------------------------------------------------------------------------------------------------


def test_a_writer_goes_by_the_settings() -> None:
    assert build_writer(CLAUDE, find_model, Settings(), BUILT_IN_DIALECTS) == CallWriter(
        CLAUDE, find_model, enabled=True, ttl="5m"
    )
    settings = Settings({"cache": {"enabled": False, "ttl": "1h"}})
    assert build_writer(CLAUDE, find_model, settings, BUILT_IN_DIALECTS) == CallWriter(
        CLAUDE, find_model, enabled=False, ttl="1h"
    )


@pytest.mark.parametrize(
    "later",
    [
        Message("system", (Text("Look."), ToolResult("a", (Text("hello"),)))),
        Message("tool", (ToolResult("", (Text("hello"),)),)),
        Message("tool", (ToolResult("a", (Text("hello"),)),)),
    ],
    ids=["beside one that is missing", "without an id", "by its id"],
)
def test_gemini_hears_the_name_of_each_function_that_has_answered(later: Message) -> None:
    count = 2 if later.role == "system" else 1
    asked = Message("assistant", (ToolCall("a", "read", {}),) * count, api="gemini")

    contents = context_of([user(), asked, later], model=GEMINI).to("gemini")["contents"]

    answers = [
        part["functionResponse"] for content in contents for part in content["parts"] if "functionResponse" in part
    ]
    assert [answer["name"] for answer in answers] == ["read"] * count


# ---- how large it may be -------------------------------------------------------------------------------------------


def sized(text: str, size: int) -> AssembledContext:
    """A call that was fitted for OpenAI, which takes 50 MB, and is thought to have so many bytes at most."""
    budget = TokenBudget(limit=GPT.window, bytes=size, byte_limit=50_000_000)
    return context_of([user(text)], model=GPT, token_budget=budget)


def test_a_call_that_is_too_large_for_another_api_is_refused() -> None:
    context = sized("a" * 33_000_000, 33_010_000)

    with pytest.raises(BudgetError, match="do not fit into 32,000,000") as caught:
        context.to("anthropic", model="claude-opus-5")

    assert caught.value.unit == "bytes"
    assert next(iter(caught.value.parts)) == "messages"
    assert context.to("openai")["model"] == GPT.name


def test_a_call_that_was_only_thought_to_be_too_large_for_another_api_is_written() -> None:
    # Letters that JSON may escape are counted as if it did.
    context = sized("ä" * 100, 33_000_000)

    written = context.to("anthropic", model="claude-opus-5")

    assert written["messages"][-1]["role"] == "user"


def test_what_a_server_takes_by_the_settings_counts_for_every_api() -> None:
    context = sized("a" * 33_000_000, 33_010_000)
    told = CallWriter(replace(GPT, request_bytes=50_000_000), find_model)

    assert "messages" in replace(context, writer=told).to("anthropic")


@pytest.mark.parametrize(
    ("api", "tool", "where"),
    [
        ("openai", Tool(name="t", parameters={"properties": {}}), ("function", "parameters")),
        ("responses", Tool(name="t", parameters={"properties": {}}), ("parameters",)),
        ("anthropic", Tool(name="t", parameters={"properties": {}}, api="anthropic"), ("input_schema",)),
        ("anthropic", Tool(name="t", api="anthropic", extra={"input_schema": {}}), ("input_schema",)),
    ],
)
def test_a_schema_that_names_no_type_becomes_that_of_an_object(api: str, tool: Tool, where: tuple[str, ...]) -> None:
    written: Any = context_of([user()], tools=[tool]).to(api, cache=False)["tools"][0]

    for field in where:
        written = written[field]

    assert written == {"type": "object", "properties": {}}
    assert "type" not in tool.parameters


def test_the_own_schema_of_gemini_becomes_an_object_in_its_spelling() -> None:
    given = {"functionDeclarations": [{"name": "t", "parameters": {"properties": {"a": {"type": "STRING"}}}}]}
    tools = get_dialect("gemini").read_tools([given])

    written: Any = context_of([user()], tools=list(tools)).to("gemini")["config"]["tools"][0]

    assert written["functionDeclarations"][0]["parameters"]["type"] == "OBJECT"


@pytest.mark.parametrize("api", ["openai", "responses", "anthropic"])
@pytest.mark.parametrize("text", ["found", "half \ud83d"])
def test_a_sound_conversation_is_written_without_repair(api: str, text: str) -> None:
    messages = [user(), asks("t1"), Message("tool", (ToolResult("t1", text),)), says(), user()]
    context = context_of(messages, past=4)
    called: set[str] = set()

    sys.setprofile(lambda frame, event, _: called.add(frame.f_code.co_name) if event == "call" else None)
    try:
        context.to(api)
    finally:
        sys.setprofile(None)

    assert ("apply_repair_rules" in called) == (text != "found")


@pytest.mark.parametrize(("system", "written"), [("half \ud83d", "half �"), ("nul\0", "nul"), (" \n", None)])
def test_a_system_prompt_beside_a_sound_conversation_is_repaired(system: str, written: str | None) -> None:
    assert context_of([user()], system=system).to("anthropic", cache=False).get("system") == written
