"""Messages of every API: what it takes comes back as it was, and what is spoiled is read or refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from anthropic.types import MessageParam
from anthropic.types.beta import BetaMessageParam
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam

from nexus_core.dialects.registry import get_dialect
from tests.dialects import test_openai, test_responses
from tests.dialects.support import JSON, OBJECTS, accepted, attempted, spoiled, values_of
from tests.dialects.test_gemini import CONTENTS

ALLOWED: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "openai": ("openai", values_of(ChatCompletionMessageParam)),
    "responses": ("responses", values_of(ResponseInputItemParam)),
    "anthropic": ("anthropic", values_of(MessageParam)),
    "anthropic-beta": ("anthropic", values_of(BetaMessageParam)),
    "gemini": ("gemini", CONTENTS),  # in either spelling
}
"""Whatever an SDK allows, and whose it is."""
ANYTHING: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "openai": ("openai", JSON | OBJECTS),
    "responses": ("responses", JSON | OBJECTS),
    "anthropic": (
        "anthropic",
        JSON
        | st.fixed_dictionaries({"role": st.just("user"), "content": JSON})
        | st.fixed_dictionaries({"role": st.just("assistant"), "content": st.tuples(JSON).map(list)}),
    ),
    "gemini": (
        "gemini",
        JSON
        | st.fixed_dictionaries({"role": st.just("user"), "parts": JSON})
        | st.fixed_dictionaries(
            {
                "role": st.just("user"),
                "parts": st.tuples(JSON | st.fixed_dictionaries({"functionResponse": JSON})).map(list),
            }
        ),
    ),
    **{f"spoiled-{name}": (api, spoiled(values)) for name, (api, values) in ALLOWED.items()},
}


def cases(openai: dict[str, Any], responses: dict[str, Any]) -> list[Any]:
    tables = {"openai": openai, "responses": responses}
    return [
        pytest.param(api, item, id=f"{api}-{name}") for api, table in tables.items() for name, item in table.items()
    ]


@pytest.mark.parametrize(("api", "item"), cases(test_openai.VALID, test_responses.VALID))
def test_what_the_sdk_has_a_type_for_comes_back_as_it_was(api: str, item: dict[str, Any]) -> None:
    accepted({"openai": test_openai.CHAT, "responses": test_responses.ITEMS}[api], [item])

    assert get_dialect(api).write([get_dialect(api).read(item)]) == [item]


@pytest.mark.parametrize(("api", "item"), cases(test_openai.BEYOND, test_responses.BEYOND))
def test_what_is_in_no_type_comes_back_too(api: str, item: dict[str, Any]) -> None:
    assert get_dialect(api).write([get_dialect(api).read(item)]) == [item]


@pytest.mark.parametrize(("api", "values"), ALLOWED.values(), ids=ALLOWED)
@given(data=st.data())
def test_whatever_the_sdk_allows_comes_back_as_it_was(
    api: str, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    items = data.draw(st.lists(values, max_size=3))
    before = deepcopy(items)

    assert get_dialect(api).write([get_dialect(api).read(item) for item in items]) == items
    assert items == before


@pytest.mark.parametrize(("api", "values"), ANYTHING.values(), ids=ANYTHING)
@given(data=st.data())
def test_anything_at_all_is_understood_or_refused(
    api: str, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    read = attempted(get_dialect(api).read, data.draw(values))
    written = get_dialect(api).write([read] if read else [])

    assert get_dialect(api).write([get_dialect(api).read(each) for each in written]) == written
