import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from nexus_core.text.safety import visible, visible_json, visible_line

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY_TEXT)
def test_no_control_character_but_newline_and_tab_survives(text: str) -> None:
    assert not [c for c in visible(text) if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]


@given(ANY_TEXT)
def test_making_visible_twice_changes_nothing_more(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(ANY_TEXT)
def test_a_line_is_always_one_line(text: str) -> None:
    assert len(visible_line(text).splitlines()) <= 1


@given(st.dictionaries(ANY_TEXT, ANY_TEXT))
def test_json_means_the_same_after_making_it_visible(value: dict[str, str]) -> None:
    document = visible_json(json.dumps(value, ensure_ascii=False))

    assert json.loads(document) == value
    assert not [c for c in document if unicodedata.category(c) in {"Cc", "Cs"}]
