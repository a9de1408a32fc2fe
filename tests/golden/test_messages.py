"""`fit`, `repair` and `dialect`: messages that fit, that are accepted, and that are another API's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nexus_core import fit, get_dialect, repair
from tests.golden.conftest import Golden
from tests.golden.test_commands import BROKEN
from tests.golden.test_compaction import plain
from tests.golden.test_context import FILES
from tests.golden.world import World

CONVERSATION: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
for _number in range(12):
    CONVERSATION += [
        {"role": "user", "content": f"Question {_number}: " + "why " * (10 + 7 * _number % 40)},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": f"c{_number}", "type": "function", "function": {"name": "look", "arguments": '{"path": "a"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": f"c{_number}", "content": "found " * (5 + 11 * _number % 50)},
        {"role": "assistant", "content": f"Answer {_number}: " + "because " * 12},
    ]
FITS: dict[str, dict[str, Any]] = {
    f"{strategy.replace('_', '-')}-{budget}-{model}": {"strategy": strategy, "budget": budget, "model": model}
    for strategy in ("oldest_first", "middle_out")
    for budget in (300, 900, 10_000)
    for model in ("gpt-4o", "claude-sonnet-4")
}
APIS = ("openai", "responses", "anthropic", "gemini", "neutral", "bedrock")
REPAIRS = {f"{api}-for-{other}": (api, other) for api in BROKEN for other in APIS}
REQUESTS = {
    "chat.json": "openai",
    "responses.json": "responses",
    "anthropic.json": "anthropic",
    "gemini.json": "gemini",
}
TRANSLATIONS = {f"{REQUESTS[sample]}-for-{api}": (sample, api) for sample in REQUESTS for api in APIS}


def _fitted(_: World, options: dict[str, Any]) -> str:
    return json.dumps(plain(fit(CONVERSATION, **options)), indent=1) + "\n"


def _repaired(_: World, api: str, other: str) -> str:
    return json.dumps(plain(repair(BROKEN[api], other, source=api)), indent=1, ensure_ascii=False) + "\n"


def _translated(_: World, sample: str, api: str) -> str:
    """A request of one API, as another has it."""
    conversation = get_dialect(REQUESTS[sample]).read_request(json.loads(FILES[sample]))
    return json.dumps(plain(get_dialect(api).write_request(conversation)), indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", FITS)
def test_what_fits_is_as_it_was(name: str, golden: Golden) -> None:
    golden("fit", name, lambda world: _fitted(world, FITS[name]))


@pytest.mark.parametrize("name", REPAIRS)
def test_what_is_repaired_is_as_it_was(name: str, golden: Golden) -> None:
    golden("repair", name, lambda world: _repaired(world, *REPAIRS[name]))


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_what_is_translated_is_as_it_was(name: str, golden: Golden) -> None:
    golden("dialects", name, lambda world: _translated(world, *TRANSLATIONS[name]))
