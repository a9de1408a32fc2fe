"""What has changed since the model was told."""

from __future__ import annotations

from nexus_core import Section, Source
from nexus_core.request.prefix import MAX_NOTICE_LINE_CHARACTERS, MAX_NOTICE_LINES, build_change_notice


def section(
    text: str, *, name: str = "layer-00000", title: str = "Project Configuration", uri: str = "/w/NEXUS.md"
) -> Section:
    return Section(name, title=title, text=text, source=Source(uri=uri))


def test_nothing_is_said_about_what_is_the_same() -> None:
    assert build_change_notice([section("Be brief.")], [section("Be brief.")]) is None


def test_a_section_that_moved_is_the_same() -> None:
    assert build_change_notice([section("Be brief.")], [section("Be brief.", name="layer-00001")]) is None


def test_what_changed_is_shown_as_a_difference() -> None:
    notice = build_change_notice([section("Be brief.\nBe kind.")], [section("Be verbose.\nBe kind.")])

    assert notice is not None
    assert "Project Configuration (/w/NEXUS.md): changed\n" in notice.text
    assert "-Be brief.\n+Be verbose.\n Be kind." in notice.text


def test_what_is_new_and_what_is_gone_is_named() -> None:
    notice = build_change_notice([section("Old.", uri="/w/OLD.md")], [section("New.", uri="/w/NEW.md")])

    assert notice is not None
    assert "(/w/NEW.md): new\nNew." in notice.text
    assert "(/w/OLD.md): removed" in notice.text


def test_a_notice_has_a_bound() -> None:
    notice = build_change_notice([section("")], [section("\n".join(["x" * 10_000] * 1_000))])

    assert notice is not None
    assert len(notice.text.splitlines()) <= MAX_NOTICE_LINES + 5
    assert len(notice.text) <= (MAX_NOTICE_LINES + 5) * (MAX_NOTICE_LINE_CHARACTERS + 100)
    assert "more lines of" in notice.text


def test_a_line_that_is_cut_says_so_and_where_the_rest_is() -> None:
    notice = build_change_notice([section("Short.")], [section("Short.\n" + "x" * 3000)])

    assert notice is not None
    line = "+" + "x" * (MAX_NOTICE_LINE_CHARACTERS - 1)
    assert f"{line} [… 2,001 more characters of this line of Project Configuration (/w/NEXUS.md) …]" in notice.text


def test_a_line_of_the_longest_that_is_told_is_told_whole() -> None:
    notice = build_change_notice([], [section("x" * MAX_NOTICE_LINE_CHARACTERS)])

    assert notice is not None
    assert notice.text.endswith("new\n" + "x" * MAX_NOTICE_LINE_CHARACTERS)


def test_sections_that_two_plugins_call_the_same_are_told_apart() -> None:
    def noted(text: str, plugin: str) -> Section:
        source = Source(uri=f"plugin:{plugin}", plugin=plugin)
        return Section("notes", title="Notes", text=text, source=source)

    notice = build_change_notice([noted("One.", "a"), noted("Same.", "b")], [noted("Two.", "a"), noted("Same.", "b")])

    assert notice is not None
    assert "-One.\n+Two." in notice.text
    assert "Same." not in notice.text


def test_sections_that_one_plugin_calls_the_same_are_told_apart() -> None:
    def noted(*texts: str) -> list[Section]:
        return [section(text, uri="plugin:a") for text in texts]

    notice = build_change_notice(noted("One.", "Same."), noted("Two.", "Same."))

    assert notice is not None
    assert "-One.\n+Two." in notice.text
    assert notice.text.count("Project Configuration") == 1
