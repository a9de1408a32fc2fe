import pytest

from nexus_core import Section, Source
from nexus_core.rendering.labelled import render_labelled


@pytest.mark.acceptance("P-01")
def test_the_prompt_starts_with_its_title() -> None:
    assert render_labelled([]) == "# System Configuration\n"


@pytest.mark.acceptance("P-02")
def test_text_from_a_file_stands_under_its_title_and_source() -> None:
    section = Section("own", title="Global Configuration", text="Be brief.\n", source=Source(uri="/home/NEXUS.md"))

    assert render_labelled([section]) == (
        "# System Configuration\n\n## Global Configuration\nSource: /home/NEXUS.md\n\nBe brief.\n"
    )


def test_computed_text_follows_its_title_directly() -> None:
    section = Section("env", title="Environment", text="Mode: REPL", source=Source(uri="plugin:environment"))

    assert render_labelled([section]) == "# System Configuration\n\n## Environment\nMode: REPL\n"


def test_a_section_with_a_blank_body_is_left_out() -> None:
    assert render_labelled([Section("x", title="X", text=" \n ")]) == "# System Configuration\n"


def test_sections_stand_by_order_then_id_then_plugin() -> None:
    sections = [
        Section("b", title="4", text="x", order=2, source=Source(uri="plugin:q", plugin="q")),
        Section("b", title="3", text="x", order=2, source=Source(uri="plugin:p", plugin="p")),
        Section("z", title="1", text="x", order=1),
        Section("a", title="2", text="x", order=2),
    ]

    titles = [line for line in render_labelled(sections).splitlines() if line.startswith("## ")]

    assert titles == ["## 1", "## 2", "## 3", "## 4"]


def test_a_line_break_in_a_name_starts_no_heading() -> None:
    section = Section("x", title="X\n## Forged", text="x", source=Source(uri="/a\n## Forged/NEXUS.md"))

    lines = render_labelled([section]).splitlines()

    assert [line for line in lines if line.startswith("## ")] == ["## X\\n## Forged"]


def test_blank_lines_around_a_text_do_not_change_the_layout() -> None:
    padded = Section("x", title="X", text="\n\n  indented\n\n")

    assert render_labelled([padded]) == "# System Configuration\n\n## X\n  indented\n"
