import pytest

from nexus_core import Section


def test_a_section_needs_only_an_id_a_title_and_a_text() -> None:
    section = Section("git", title="Git", text="clean")

    assert (section.kind, section.order, section.source) == ("workspace", 500, None)


@pytest.mark.parametrize("field", ["id", "title", "text"])
def test_a_section_refuses_what_is_not_text(field: str) -> None:
    fields = {"id": "git", "title": "Git", "text": "clean", field: None}

    with pytest.raises(ValueError, match=f"Section.{field} must be a str, not NoneType"):
        Section(**fields)  # type: ignore[arg-type]


def test_a_section_refuses_an_empty_id() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        Section("", title="Git", text="clean")


def test_a_section_refuses_an_order_that_cannot_be_sorted() -> None:
    with pytest.raises(ValueError, match=r"Section.order must be an int, not str"):
        Section("git", title="Git", text="clean", order="first")  # type: ignore[arg-type]


def test_equal_texts_have_equal_digests_and_others_do_not() -> None:
    first, same, other = (Section("id", title="T", text=text) for text in ("x", "x", "y"))

    assert first.digest == same.digest != other.digest


def test_a_lone_surrogate_does_not_stop_the_digest() -> None:
    assert len(Section("a", title="a", text="\ud800").digest) == 32
