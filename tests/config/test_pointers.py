import pytest

from nexus_core.config.pointers import array_index, dotted_to_pointer, join_pointer, pointer_to, split_pointer


def test_a_pointer_is_split_where_it_was_joined() -> None:
    assert split_pointer(pointer_to(pointer_to("", "~1/~0"), 0)) == ["~1/~0", "0"]
    assert split_pointer("") == []
    assert split_pointer("/") == [""]


def test_a_dotted_name_and_a_row_of_keys_lead_to_the_same_place() -> None:
    assert dotted_to_pointer("provider.model") == join_pointer(["provider", "model"]) == "/provider/model"
    assert join_pointer(["a/b", 0]) == "/a~1b/0"
    assert join_pointer([]) == ""


@pytest.mark.parametrize("pointer", ["a", "a/b", "/~", "/~2", "/a~", "/~0~"])
def test_what_is_no_pointer_is_refused(pointer: str) -> None:
    with pytest.raises(ValueError, match="not a JSON pointer"):
        split_pointer(pointer)


def test_an_index_is_a_plain_number() -> None:
    assert array_index("10") == 10
    assert array_index("01") is None
