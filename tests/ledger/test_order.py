"""What has an order comes back in it: a model reads the arguments of a call as they were written, byte for byte."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_core.dialects.neutral import to_json
from nexus_core.history.ledger.ledger import StoreLedger
from nexus_core.values.ledger import NewStep
from nexus_core.values.message import Message
from nexus_core.values.parts import Opaque, Text, ToolCall, ToolResult
from tests.effort import examples
from tests.ledger.backends import add, tell, texts
from tests.ledger.test_ledger import PICTURE

WORDS = st.text(max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(WORDS | st.sampled_from(["z", "data", "nexus_blob", "a"]), VALUES | st.just(PICTURE))
LABELS = count()


def written(value: Any) -> str:
    """JSON that shows the order of keys."""
    return json.dumps(value)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(body=OBJECTS)
def test_keys_come_back_in_the_order_in_which_they_were_given(ledger: StoreLedger, body: dict[str, Any]) -> None:
    label = f"work {next(LABELS)}"
    message = Message(
        "assistant",
        (
            Text("so", body),
            ToolCall("1", "look", body, raw=written(body)),
            Opaque("anthropic", body),
            ToolResult("1", (Opaque("x", body),)),
        ),
        extra=body,
    )
    ledger.create(label, data=body)
    new = NewStep(kind="turn", closes=True, messages=(message,), data={"z": body, "a": [body]})

    name = ledger.append(label, new, after=None).id

    step, session = ledger.step(name), ledger.session(label)
    assert step is not None
    assert session is not None
    assert written([to_json(each) for each in step.messages]) == written([to_json(message)])
    assert written(step.data) == written({"z": body, "a": [body]})
    assert written(session.data) == written(body)
    assert written(ledger.update(label, data={"y": 1, "b": body}).data) == written({"y": 1, "b": body})


def test_a_ledger_with_given_orders_verifies_and_can_be_copied(ledger: StoreLedger) -> None:
    ledger.create("work")
    call = Message("assistant", (ToolCall("1", "look", {"path": "x", "lines": 3, "also": {"z": 1, "a": 2}}),))
    step = add(ledger, "work", NewStep(kind="turn", closes=True, messages=(call,), data={"z": 1, "a": 2}))
    tell(ledger, "work", "and on")

    assert list(ledger.verify()) == []
    assert list(step.messages[0].tool_calls[0].arguments) == ["path", "lines", "also"]
    assert texts(ledger.scan(str(ledger.session("work").tip), "on")) == ["and on"]  # type: ignore[union-attr]
