import pytest

from nexus_core import Section
from nexus_core.types.prompt import Source, merge_section_data


def test_a_section_needs_only_an_id_a_title_and_a_text() -> None:
    section = Section("git", title="Git", text="clean")

    assert (section.kind, section.order, section.source) == ("workspace", 500, None)


@pytest.mark.parametrize("field", ["id", "title", "text"])
def test_a_section_refuses_what_is_not_text(field: str) -> None:
    fields = {"id": "git", "title": "Git", "text": "clean", field: None}

    with pytest.raises(ValueError, match=f"Section.{field} must be str, not NoneType"):
        Section(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"id": ""}, "Section.id must not be empty"),
        ({"title": ""}, "Section.title must not be empty"),
        ({"kind": "zzz"}, "Section.kind must be one of workspace, persona, session, memory, event, not 'zzz'"),
        ({"order": True}, "Section.order must be int, not bool"),
        ({"source": "/etc/motd"}, "Section.source must be Source or None, not str"),
        ({"data": ["x"]}, "Section.data must be dict, not list"),
        ({"data": {1: "x"}}, "Section.data must be JSON"),
        ({"data": {"x": {"y": {1}}}}, "Section.data must be JSON"),
        ({"data": {"x": [float("nan")]}}, "Section.data must be JSON"),
        ({"data": {"x": float("-inf")}}, "Section.data must be JSON"),
    ],
)
def test_a_section_refuses_what_it_could_not_show(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Section(**{"id": "git", "title": "Git", "text": "clean", **fields})  # type: ignore[arg-type]


def test_a_section_refuses_an_order_that_cannot_be_sorted() -> None:
    with pytest.raises(ValueError, match=r"Section.order must be int, not str"):
        Section("git", title="Git", text="clean", order="first")  # type: ignore[arg-type]


def test_equal_texts_have_equal_digests_and_others_do_not() -> None:
    first, same, other = (Section("id", title="T", text=text) for text in ("x", "x", "y"))

    assert first.digest == same.digest != other.digest


def test_a_lone_surrogate_does_not_stop_the_digest() -> None:
    assert len(Section("a", title="a", text="\ud800").digest) == 32


def test_facts_that_never_end_are_refused() -> None:
    endless: dict[str, object] = {}
    endless["again"] = endless

    with pytest.raises(ValueError, match=r"Section.data must be JSON"):
        Section("git", title="Git", text="clean", data=endless)


def test_a_section_with_facts_is_still_something_to_look_up() -> None:
    facts = {"git": {"branch": "main", "ahead": 2, "dirty": False, "tags": [None, 1.5]}}

    section = Section("git", title="Git", text="clean", data=facts)

    assert {section: 1}[Section("git", title="Git", text="clean", data=facts)] == 1
    assert section != Section("git", title="Git", text="clean")


def test_facts_are_gathered_by_group_and_the_later_one_counts() -> None:
    facts: list[dict[str, object]] = [
        {"persona": {"id": "soul", "mood": "calm"}, "count": 1},
        {},
        {"persona": {"id": "atlas"}, "count": {"of": 2}},
    ]
    sections = [Section(f"s{number}", title="T", text="x", data=data) for number, data in enumerate(facts)]

    assert merge_section_data(sections) == {"persona": {"id": "atlas", "mood": "calm"}, "count": {"of": 2}}
    assert facts[0] == {"persona": {"id": "soul", "mood": "calm"}, "count": 1}


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("settings:", "settings"),
        ("caller:", "caller"),
        ("plugin:roles", "plugin:roles"),
        ("/w/AGENTS.md", "/w/AGENTS.md"),
    ],
)
def test_a_source_is_printed_without_a_dangling_colon(uri: str, shown: str) -> None:
    assert str(Source(uri=uri)) == shown
