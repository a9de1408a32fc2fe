from hypothesis import given
from hypothesis import strategies as st

from nexus_core import Section, Source
from nexus_core.rendering import render_labelled, sort_sections

SECTIONS = st.lists(
    st.builds(
        Section,
        st.text("abc", min_size=1, max_size=3),
        title=st.text("ABC", min_size=1, max_size=3),
        text=st.text("xyz \n", max_size=20),
        order=st.integers(-3, 3),
        source=st.builds(Source, uri=st.sampled_from(["/a", "plugin:p"]), plugin=st.sampled_from("pqr")),
    ),
    unique_by=lambda section: (section.order, section.id, section.source and section.source.plugin),
)


@given(SECTIONS, st.randoms())
def test_the_order_of_contributions_never_shows(sections: list[Section], random: object) -> None:
    shuffled = list(sections)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert render_labelled(shuffled) == render_labelled(sections)


@given(SECTIONS)
def test_every_section_with_a_text_is_there_once(sections: list[Section]) -> None:
    expected = [section for section in sections if section.text.strip()]

    assert sorted(map(id, sort_sections(sections))) == sorted(map(id, expected))
    assert render_labelled(sections).count("## ") == len(expected)
