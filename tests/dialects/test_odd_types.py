"""What stands where a word should stand is refused with its place, whatever it is."""

from __future__ import annotations

import pytest

from nexus_core import MessageError, fit
from nexus_core.testing.fixtures import MakeNexus

ODD: tuple[object, ...] = ([], {}, 5, None, True)


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_part_without_a_word_for_its_type_is_refused(odd: object, role: str) -> None:
    with pytest.raises(MessageError, match=r"messages\[0\].content\[0\]"):
        fit([{"role": role, "content": [{"type": odd, "text": "Hello."}]}], model="gpt-4o")


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("field", ["role", "type"])
def test_a_reply_that_says_nobody_is_refused(make_nexus: MakeNexus, odd: object, field: str) -> None:
    session = make_nexus().session("s", model="gpt-4o")
    session.ask("Hello.")
    with pytest.raises(MessageError):
        session.record({field: odd, "content": [{"type": odd}]})
