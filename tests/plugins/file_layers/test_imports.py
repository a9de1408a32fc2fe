from __future__ import annotations

import os
from pathlib import Path

import pytest

from nexus_core import FileError
from nexus_core.plugin import Layer, LayerText, SkippedFile
from nexus_core.testing import write_files
from nexus_core.types.settings import Settings
from nexus_plugins.file_layers import nexus_layer_texts
from tests.effort import sampled
from tests.timing import assert_quick

STRANGER = 54321


@pytest.mark.parametrize(
    ("written", "file"),
    [
        ("@rules.md", "rules.md"),
        ("@docs/rules.md", "docs/rules.md"),
        ("@./docs/rules.md", "docs/rules.md"),
        ("@docs/../rules.md", "rules.md"),
        ("@docs/house\\ rules.md", "docs/house rules.md"),
        ("@docs/Maßstäbe.md", "docs/Maßstäbe.md"),
        ("@my_rules-v1.2.md", "my_rules-v1.2.md"),
        ("@Makefile", "Makefile"),
    ],
)
def test_a_path_stands_for_the_content_of_the_file(tmp_path: Path, written: str, file: str) -> None:
    write_files(tmp_path, {"NEXUS.md": written, file: "content\n\n", "docs/x": ""})

    text = read(tmp_path)

    assert (text.text, text.imports) == ("content", (tmp_path / file,))


def test_a_path_may_be_absolute(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": f"@{tmp_path}/rules.md", "rules.md": "content"})

    assert read(tmp_path).text == "content"


def test_an_import_on_a_line_of_its_own_becomes_lines_of_their_own(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "before\n  @rules.md \t\nafter\n", "rules.md": "one\ntwo\n"})

    assert read(tmp_path).text == "before\none\ntwo\nafter\n"


def test_an_import_in_a_sentence_is_replaced_in_the_sentence(tmp_path: Path) -> None:
    write_files(
        tmp_path, {"NEXUS.md": "Keep to @rules.md, or else read @more.md.\n", "rules.md": "A\n", "more.md": "B"}
    )

    assert read(tmp_path).text == "Keep to A, or else read B.\n"


def test_imports_are_recorded_in_order(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@b.md\n@a.md\n", "b.md": "@c.md", "c.md": "c", "a.md": "a"})

    assert read(tmp_path).imports == (tmp_path / "b.md", tmp_path / "c.md", tmp_path / "a.md")


def test_an_import_is_relative_to_the_file_that_has_it(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@docs/a.md", "docs/a.md": "a\n@b.md\n@../c.md", "docs/b.md": "b", "c.md": "c"})

    assert read(tmp_path).text == "a\nb\nc"


def test_an_import_in_a_linked_file_is_relative_to_where_the_file_lies(tmp_path: Path) -> None:
    write_files(tmp_path, {"docs/AGENTS.md": "@style.md", "docs/style.md": "style"})
    (tmp_path / "AGENTS.md").symlink_to("docs/AGENTS.md")

    assert read(tmp_path).text == "style"


@pytest.mark.parametrize("name", [".nexus3/NEXUS.md", "NEXUS.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md"])
def test_every_kind_of_text_may_import(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {name: f"@{'../' if '/' in name else ''}rules.md", "rules.md": "content"})

    assert read(tmp_path).text == "content"


@pytest.mark.parametrize("name", ["CLAUDE.md", "GEMINI.md"])
def test_rules_that_only_import_others_read_like_those(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {name: "@docs/AGENTS.md\n", "docs/AGENTS.md": "rules\n"})

    assert read(tmp_path).text == "rules\n"


def test_a_text_whose_imports_are_blank_is_blank(tmp_path: Path) -> None:
    write_files(tmp_path, {"CLAUDE.md": "@AGENTS.md", "AGENTS.md": "\n"})

    found = nexus_layer_texts(local(tmp_path), Settings())

    assert SkippedFile(tmp_path / "CLAUDE.md", "blank") in found


@pytest.mark.parametrize(
    "text",
    [
        "Ask @alice or @bob-smith.",
        "Write to team@rules.md today.",
        "(@rules.md)",
        "Use @pytest.fixture and @app.route.",
        "Install @types/node and @/components/Button.",
        "A lone @ and @. and @.. and @... stay.",
        "The directory @docs is no file.",
        "A name of the sort @" + "x" * 5000 + " is too long for a file.",
    ],
)
def test_what_is_not_the_name_of_a_file_stays(tmp_path: Path, text: str) -> None:
    write_files(tmp_path, {"NEXUS.md": text, "rules.md": "content", "docs/x": ""})

    assert read(tmp_path).text == text
    assert not skipped(tmp_path)


def test_a_file_that_is_plainly_meant_but_not_there_is_reported(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@docs/ruels.md"})

    assert read(tmp_path).text == "@docs/ruels.md"
    assert skipped(tmp_path) == [("docs/ruels.md", "import not there (NEXUS.md:1)")]


def test_what_is_not_imported_is_reported_once_with_the_file_and_line_that_name_it_first(tmp_path: Path) -> None:
    rules = "Rules:\n\nSee @gone.md\nand @gone.md\n"
    write_files(tmp_path, {"NEXUS.md": "First\n@docs/rules.md\n@docs/gone.md\n", "docs/rules.md": rules})

    assert skipped(tmp_path) == [("docs/gone.md", "import not there (docs/rules.md:3)")]


@pytest.mark.parametrize(
    "code",
    [
        "```\n@rules.md\n```\n",
        "````md\n```\n@rules.md\n```\n````\n",
        "~~~ text\n@rules.md\n```\n@rules.md\n~~~\n",
        "- a list\n  ```sh\n  @rules.md\n  ```\n",
        "1. ```sh\n   @rules.md\n   ```\n",
        "> ```\n> @rules.md\n> ```\n",
        "```\nnever closed\n@rules.md\n",
        "Write ` @rules.md ` to import.\n",
        "Write `` a ` @rules.md `` to import.\n",
        "A span ` over\n @rules.md lines ` is code.\n",
    ],
)
def test_code_is_left_as_it_is(tmp_path: Path, code: str) -> None:
    write_files(tmp_path, {"NEXUS.md": code, "rules.md": "content"})

    text = read(tmp_path)

    assert (text.text, text.imports) == (code, ())


@pytest.mark.parametrize(
    "text",
    [
        "```\ncode\n```\n@rules.md\n",
        "~~~\ncode\n~~~~~\n@rules.md\n",
        "`code` @rules.md `code`\n",
        "A lone ` backtick\n\n@rules.md and another ` here\n",
        "- a lone ` backtick\n- @rules.md\n- another ` here\n",
        "# Heading `\n@rules.md `\n# Heading\n",
        "`` two ` and @rules.md\n",
        "``` not `a` fence\n@rules.md\n",
        "    @rules.md\n",
    ],
)
def test_what_only_looks_like_code_is_not(tmp_path: Path, text: str) -> None:
    write_files(tmp_path, {"NEXUS.md": text, "rules.md": "content"})

    assert read(tmp_path).imports == (tmp_path / "rules.md",)


def test_a_file_is_imported_once(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@a.md\n@b.md\n@./a.md\n", "a.md": "a", "b.md": "b\n@a.md\n"})

    text = read(tmp_path)

    assert text.text == "a\nb\n\n"
    assert text.imports == (tmp_path / "a.md", tmp_path / "b.md")
    assert skipped(tmp_path) == [("a.md", "imported already (b.md:2)")]


def test_imports_nest_five_deep(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@1.md", **{f"{n}.md": f"{n} @{n + 1}.md" for n in range(1, 8)}})

    assert read(tmp_path).text == "1 2 3 4 5 @6.md"
    assert skipped(tmp_path) == [("6.md", "imports nested deeper than 5 (5.md:1)")]


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("length", [2, 3, 6])
def test_a_circle_is_an_error_that_names_the_chain(tmp_path: Path, length: int) -> None:
    names = ["NEXUS.md", *(f"{n}.md" for n in range(1, length))]
    write_files(tmp_path, {name: f"@{names[(i + 1) % length]}" for i, name in enumerate(names)})

    with pytest.raises(FileError) as caught:
        read(tmp_path)

    assert caught.value.what.endswith(" -> ".join(str(tmp_path / name) for name in [*names, "NEXUS.md"]))
    assert caught.value.where == str(tmp_path / names[-1])


def test_a_circle_through_a_link_is_found(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@a.md", "a.md": "@b.md"})
    (tmp_path / "b.md").symlink_to("NEXUS.md")

    with pytest.raises(FileError, match="circle"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["NEXUS.md", "./NEXUS.md", "docs/../NEXUS.md", "link.md"])
def test_a_file_that_mentions_itself_imports_nothing(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {"NEXUS.md": f"Keep @{name} up to date.\n@{name}\n", "docs/x": ""})
    (tmp_path / "link.md").symlink_to("NEXUS.md")

    text = read(tmp_path)

    assert (text.text, text.imports) == (f"Keep @{name} up to date.\n@{name}\n", ())
    assert not skipped(tmp_path)


def test_an_imported_file_may_mention_itself_too(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@docs/a.md", "docs/a.md": "This is @a.md."})

    assert read(tmp_path).text == "This is @a.md."


@pytest.mark.acceptance("T11")
def test_sixty_four_files_may_be_imported_and_no_more(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{n}.md": str(n) for n in range(65)})
    write_files(tmp_path, {"NEXUS.md": "\n".join(f"@{n}.md" for n in range(64))})
    assert len(read(tmp_path).imports) == 64

    write_files(tmp_path, {"NEXUS.md": "\n".join(f"@{n}.md" for n in range(65))})

    with pytest.raises(FileError, match="more than 64 files") as caught:
        read(tmp_path)
    assert caught.value.where == str(tmp_path / "NEXUS.md")


@pytest.mark.acceptance("T16")
def test_four_mebibytes_are_the_most_that_a_text_may_become(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{n}.md": "x" * 1024 * 1024 for n in range(4)})
    write_files(tmp_path, {"NEXUS.md": "@0.md @1.md @2.md @3.md"})

    with pytest.raises(FileError, match="larger than 4 MiB"):
        read(tmp_path)


@pytest.mark.acceptance("T16")
def test_an_imported_file_above_the_limit_is_an_error_that_names_it(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@big.md", "big.md": "x" * (1024 * 1024 + 1)})

    with pytest.raises(FileError, match="larger than 1 MiB") as caught:
        read(tmp_path)

    assert caught.value.where == str(tmp_path / "big.md")


def test_a_file_that_is_not_text_stays_a_name(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "See @logo.png."})
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\xff")

    assert read(tmp_path).text == "See @logo.png."
    assert skipped(tmp_path) == [("logo.png", "not UTF-8 (NEXUS.md:1)")]


@pytest.mark.acceptance("T16")
def test_a_large_file_that_is_not_text_is_read_only_once(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@logo.png " * 3_000})
    (tmp_path / "logo.png").write_bytes(b"\xff" * 1024 * 1024)

    assert read(tmp_path).text == "@logo.png " * 3_000


def test_an_imported_file_is_read_like_any_text(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@windows.md"})
    (tmp_path / "windows.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")

    assert read(tmp_path).text == "one\ntwo"


@pytest.mark.acceptance("T6")
def test_a_file_that_anybody_may_write_to_is_not_imported(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@rules.md", "rules.md": "planted"})
    (tmp_path / "rules.md").chmod(0o666)

    assert read(tmp_path).text == "@rules.md"
    assert skipped(tmp_path) == [("rules.md", "every user may write to it (NEXUS.md:1)")]


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
@pytest.mark.acceptance("T6")
def test_a_file_of_somebody_else_is_not_imported(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@rules.md", "rules.md": "planted"})
    os.chown(tmp_path / "rules.md", STRANGER, STRANGER)

    assert read(tmp_path).text == "@rules.md"


def test_the_user_may_import_from_anywhere_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_files(tmp_path, {".nexus3/NEXUS.md": "@~/notes/a.md\n@../b.md\n@c.md", "notes/a.md": "a", "b.md": "b"})
    write_files(tmp_path, {".nexus3/c.md": "@~/notes/d.md", "notes/d.md": "d"})

    assert read_own(tmp_path / ".nexus3").text == "a\nb\nd"


def test_the_user_may_import_what_a_link_at_home_leads_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_files(tmp_path, {"store/style.md": "style", "home/.nexus3/NEXUS.md": "@style.md"})
    (tmp_path / "home/.nexus3/style.md").symlink_to(tmp_path / "store/style.md")

    assert read_own(tmp_path / "home/.nexus3").text == "style"


def test_the_user_does_not_import_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_files(tmp_path, {"home/.nexus3/NEXUS.md": f"@{tmp_path}/else.md", "else.md": "CANARY"})

    assert "CANARY" not in read_own(tmp_path / "home/.nexus3").text


@pytest.mark.acceptance("T11")
def test_a_project_that_the_user_imports_from_does_not_get_the_users_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_files(tmp_path, {".nexus3/NEXUS.md": "@~/repo/docs/AGENTS.md", ".ssh/id.key": "CANARY", "repo/.git/HEAD": ""})
    write_files(tmp_path, {"repo/docs/AGENTS.md": "@~/.ssh/id.key\n@../more.md", "repo/more.md": "more"})

    assert read_own(tmp_path / ".nexus3").text == "@~/.ssh/id.key\nmore"


@pytest.mark.acceptance("T16")
@pytest.mark.parametrize(
    "text",
    sampled(
        [
            "@a.md " * 170_000,
            "".join(f"@{n:x}\n" for n in range(150_000)),
            "".join(f"@{n:x}.md " for n in range(110_000)),
            "@" + "a/" * 500_000,
            "`" * 1_000_000,
            "".join("`" * n + " " for n in range(1, 1400)),
            "` @a.md " * 120_000,
            "> " * 500_000,
            " " * 1_000_000 + "x",
            "- " * 500_000 + "```",
            "```\n" * 250_000,
            "@\\ " * 300_000,
        ],
        one_in=4,
    ),
    ids=lambda text: repr(text[:12]),
)
def test_no_text_takes_long(tmp_path: Path, text: str) -> None:
    write_files(tmp_path, {"NEXUS.md": text, "a.md": "a"})

    # 35 at most were measured; ten times that if anything were looked up or searched without a limit.
    assert_quick(lambda: read(tmp_path), times=150)


def test_what_is_too_much_to_look_up_is_reported(tmp_path: Path) -> None:
    write_files(tmp_path, {"NEXUS.md": "@nobody " * 4_000 + "@a.md", "a.md": "a"})

    assert read(tmp_path).text.endswith("@a.md")
    assert skipped(tmp_path) == [("NEXUS.md", "more than 4000 words after an @; the others stay as they are")]


def local(root: Path) -> Layer:
    return Layer("local", root / ".nexus3", "local", root=root)


def read(root: Path) -> LayerText:
    [text] = [item for item in nexus_layer_texts(local(root), Settings()) if isinstance(item, LayerText)]
    return text


def read_own(home: Path) -> LayerText:
    [text] = [
        item for item in nexus_layer_texts(Layer("global", home, "global"), Settings()) if isinstance(item, LayerText)
    ]
    return text


def skipped(root: Path) -> list[tuple[str, str]]:
    """What was not imported: each path and the reason."""
    return [
        (item.path.relative_to(root).as_posix(), item.reason)
        for item in nexus_layer_texts(local(root), Settings())
        if isinstance(item, SkippedFile) and item.reason != "not there"
    ]
