"""What a subagent gets of the context of the agent that made it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_core import FileError, Nexus, UsageError, hookimpl
from nexus_core.layers.context import LoadedContext
from nexus_core.plugin import LayerText
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.effort import examples


def own(path: Path, text: str) -> str:
    return f"## Subagent Configuration\nSource: {path}\n\n{text}\n\n"


def headings(context: LoadedContext) -> list[str]:
    return [line for line in context.system_prompt.splitlines() if line.startswith(("# ", "## "))]


def paths(context: LoadedContext) -> list[Path]:
    return [source.path for source in context.sources.prompt_sources]


# ---- which instructions ------------------------------------------------------------------------------------


@pytest.mark.acceptance("S-01", "S-04", "S-07")
def test_its_own_instructions_are_its_nexus_md_and_nothing_else(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {
        "p/.nexus3/NEXUS.md": "Of p.",
        "p/AGENTS.md": "Rules of p.",
        "q/NEXUS.md": "Of q.",
        "q/s/.nexus3/NEXUS.md": "Of s.",
        "q/s/AGENTS.md": "Rules of s.",
        "q/s/README.md": "Readme of s.",
    }
    parent = make_nexus(files=files, cwd="p").context()
    here = tmp_path / "work/q/s"

    prompt = parent.for_subagent(here).system_prompt

    expected = parent.system_prompt.replace(str(parent.cwd) + "\nOperating", str(here) + "\nOperating")
    assert prompt == own(here / ".nexus3/NEXUS.md", "Of s.") + expected
    assert [text for text in ("Of q.", "Rules of s.", "Readme of s.") if text in prompt] == []


@pytest.mark.acceptance("S-03")
def test_what_the_parent_has_read_as_an_ancestor_is_not_new(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {"p/.nexus3/NEXUS.md": "Of p.", "p/s/.nexus3/NEXUS.md": "Of s."}
    parent = make_nexus(files=files, cwd="p/s").context()

    child = parent.for_subagent(tmp_path / "work/p")

    assert child.subagent_sections == ()
    assert child.layer_sections == parent.layer_sections


@pytest.mark.acceptance("S-04", "B-15", "C-08")
def test_of_the_directories_between_nothing_is_taken_unless_asked_for(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {f"{place}/.nexus3/NEXUS.md": f"In {place}." for place in ("p", "p/s", "p/s/t")}
    parent = make_nexus(files=files, cwd="p").context()
    work, child = tmp_path / "work", tmp_path / "work/p/s/t"

    plain, full = parent.for_subagent(child), parent.for_subagent(child, include_ancestors=True)

    own_text = own(child / ".nexus3/NEXUS.md", "In p/s/t.")
    assert plain.system_prompt.startswith(own_text + "# System Configuration\n")
    assert full.system_prompt.startswith(own_text + own(work / "p/s/.nexus3/NEXUS.md", "In p/s.") + "# System")
    assert full.system_prompt.count("In p.") == 1


@pytest.mark.acceptance("C-08")
def test_only_ancestors_that_the_parent_lacks_are_added(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {f"{place}/.nexus3/NEXUS.md": f"In {place}." for place in ("p", "p/s", "p/s/t")}
    parent = make_nexus(files=files, cwd="p/s").context()

    child = parent.for_subagent(tmp_path / "work/p/s/t", include_ancestors=True)

    assert [section.text for section in child.subagent_sections] == ["In p/s/t."]


@pytest.mark.acceptance("B-17", "R-02")
@pytest.mark.parametrize(
    ("files", "added"),
    [
        ({"README.md": "# Read"}, ["README.md"]),
        ({"README.md": "# Read", ".nexus3/NEXUS.md": "Own."}, ["NEXUS.md"]),
        ({"README.md": "# Read", "AGENTS.md": "Rules."}, []),
        ({"README.md": "# Read", "NEXUS.md": " \n"}, ["README.md"]),
    ],
)
def test_a_readme_stands_in_for_missing_instructions(
    make_nexus: MakeNexus, tmp_path: Path, files: dict[str, str], added: list[str]
) -> None:
    parent = make_nexus(files={f"s/{name}": text for name, text in files.items()}, cwd="p").context()

    child = parent.for_subagent(tmp_path / "work/s")

    assert [text.path.name for text in child.added] == added
    assert all(text.text.startswith("----- BEGIN DOCUMENTATION") for text in child.added if "README" in text.path.name)


@pytest.mark.acceptance("R-01", "R-03")
@pytest.mark.parametrize(
    ("switches", "added"),
    [
        ({"include_readme": True}, ["NEXUS.md", "README.md"]),
        ({"include_readme": False, "readme_as_fallback": False}, ["NEXUS.md"]),
    ],
)
def test_a_readme_follows_the_instructions_where_it_is_wanted_always(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, switches: dict[str, bool], added: list[str]
) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"context": switches})})
    parent = make_nexus(files={"s/NEXUS.md": "Own.", "s/README.md": "# Read"}, cwd="p").context()

    child = parent.for_subagent(tmp_path / "work/s")

    assert [text.path.name for text in child.added] == added


@pytest.mark.acceptance("S-05")
def test_without_instructions_of_its_own_it_has_those_of_its_parent(make_nexus: MakeNexus, tmp_path: Path) -> None:
    parent = make_nexus(files={"p/NEXUS.md": "Of p.", "s/x": ""}, cwd="p").context()

    child = parent.for_subagent(tmp_path / "work/s")

    assert child.system_prompt == parent.system_prompt.replace(f"{tmp_path}/work/p\n", f"{tmp_path}/work/s\n")
    assert paths(child) == paths(parent)


# ---- nothing twice -----------------------------------------------------------------------------------------


@pytest.mark.acceptance("B-16", "S-06")
@pytest.mark.parametrize("linked", ["p", "p/.nexus3", "p/.nexus3/NEXUS.md"])
def test_the_same_file_reached_in_another_way_is_there_once(make_nexus: MakeNexus, tmp_path: Path, linked: str) -> None:
    files = {".git/HEAD": "", "p/.nexus3/NEXUS.md": "Once."}
    parent = make_nexus(files=files, cwd="p").context()
    link = tmp_path / "work" / linked.replace("p", "link", 1)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "work" / linked)

    child = parent.for_subagent(tmp_path / "work/link")

    assert child.system_prompt.count("Once.") == 1


@pytest.mark.acceptance("S-06")
@pytest.mark.parametrize("copied", ["The same.", "The same.\n", "\nThe same.\n\n"])
def test_a_copy_of_what_the_parent_reads_is_not_read_again(make_nexus: MakeNexus, tmp_path: Path, copied: str) -> None:
    parent = make_nexus(files={"p/NEXUS.md": "The same.\n", "s/NEXUS.md": copied}, cwd="p").context()

    assert parent.for_subagent(tmp_path / "work/s").system_prompt.count("The same.") == 1


@pytest.mark.acceptance("S-06")
def test_what_the_parent_imports_is_not_read_again(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {"p/NEXUS.md": "Parts:\n@s/NEXUS.md\n", "p/s/NEXUS.md": "Imported."}
    parent = make_nexus(files=files, cwd="p").context()

    assert parent.for_subagent(tmp_path / "work/p/s").system_prompt.count("Imported.") == 1


@pytest.mark.acceptance("S-04", "S-06")
@pytest.mark.parametrize("include_ancestors", [True, False])
def test_what_only_repeats_its_own_surroundings_is_new_to_its_parent(
    make_nexus: MakeNexus, tmp_path: Path, *, include_ancestors: bool
) -> None:
    files = {"q/NEXUS.md": "Said twice.", "q/s/NEXUS.md": "Said twice.", "p/x": ""}
    parent = make_nexus(files=files, cwd="p").context()

    child = parent.for_subagent(tmp_path / "work/q/s", include_ancestors=include_ancestors)

    assert [text.path for text in child.added] == [tmp_path / "work/q/s/NEXUS.md"]


# ---- subagents of subagents --------------------------------------------------------------------------------

CHAIN = {"a/NEXUS.md": "Of a.", "b/NEXUS.md": "Of b.", "c/NEXUS.md": "Of c."}


@pytest.mark.acceptance("S-04")
def test_a_subagent_of_a_subagent_has_its_own_before_all_that_it_inherits(
    make_nexus: MakeNexus, tmp_path: Path
) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()
    work = tmp_path / "work"

    child = parent.for_subagent(work / "b")
    grandchild = child.for_subagent(work / "c")

    inherited = child.system_prompt.replace(f"{work}/b\nOperating", f"{work}/c\nOperating")
    assert grandchild.system_prompt == own(work / "c/NEXUS.md", "Of c.") + inherited
    assert paths(grandchild) == [work / "c/NEXUS.md", work / "b/NEXUS.md", work / "a/NEXUS.md"]


@pytest.mark.acceptance("S-03", "S-06")
def test_one_that_comes_back_to_where_it_began_reads_nothing_again(make_nexus: MakeNexus, tmp_path: Path) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()
    work = tmp_path / "work"

    back = parent.for_subagent(work / "b").for_subagent(work / "a").for_subagent(work / "b")

    assert [back.system_prompt.count(text) for text in ("Of a.", "Of b.")] == [1, 1]


@pytest.mark.acceptance("S-04")
def test_what_its_parent_only_passed_by_is_new_to_it(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {"a/NEXUS.md": "Of a.", "q/NEXUS.md": "Of q.", "q/s/NEXUS.md": "Of s."}
    parent = make_nexus(files=files, cwd="a").context()

    child = parent.for_subagent(tmp_path / "work/q/s")
    grandchild = child.for_subagent(tmp_path / "work/q")

    assert "Of q." not in child.system_prompt
    assert grandchild.system_prompt.startswith(own(tmp_path / "work/q/NEXUS.md", "Of q."))


NAMES = ["a", "b", "a/c", "a/c/d", "b/e"]


@pytest.mark.acceptance("S-06")
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    texts=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["One.", "Two.", "Three."])),
    journey=st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), min_size=1, max_size=4),
)
def test_no_text_is_ever_there_twice(
    tmp_path_factory: pytest.TempPathFactory,
    nexus_home: Path,
    texts: dict[str, str],
    journey: list[tuple[str, bool]],
) -> None:
    work = tmp_path_factory.mktemp("work")
    for name in NAMES:
        (work / name).mkdir(parents=True, exist_ok=True)
    write_files(work, {f"{name}/NEXUS.md": text for name, text in texts.items()})

    with Nexus(work / journey[0][0], home=nexus_home, defaults=False) as nexus:
        context = nexus.context()
        for name, include_ancestors in journey[1:]:
            context = context.for_subagent(work / name, include_ancestors=include_ancestors)

    prompt = context.system_prompt
    assert all(prompt.count(text) <= 1 for text in texts.values())
    assert texts.get(journey[-1][0], "") in prompt
    assert prompt.count("\n## Environment\n") == 1
    assert prompt.count(f"Working directory: {work / journey[-1][0]}\n") == 1


# ---- its own place -----------------------------------------------------------------------------------------


@pytest.mark.acceptance("B-04")
def test_what_looks_like_the_environment_in_a_text_stays_where_it_is(make_nexus: MakeNexus, tmp_path: Path) -> None:
    text = "First.\n\n## Environment variables\n\nWorking directory: nowhere\n\n## Environment\n\nThe last rule."
    parent = make_nexus(files={"p/NEXUS.md": text, "p/s/NEXUS.md": text.replace("First", "Second")}, cwd="p").context()

    prompt = parent.for_subagent(tmp_path / "work/p/s").system_prompt

    kept = text.replace("\n## Environment\n", "\n\\## Environment\n")
    assert kept in prompt
    assert kept.replace("First", "Second") in prompt
    assert prompt.count("\n## Environment\n") == 1
    assert f"\n## Environment\nWorking directory: {tmp_path}/work/p/s\n" in prompt
    assert f"Working directory: {tmp_path}/work/p\n" not in prompt


@pytest.mark.acceptance("C-08", "S-01", "M-08")
def test_settings_are_those_of_its_own_directory_and_there_are_no_servers(
    make_nexus: MakeNexus, tmp_path: Path
) -> None:
    files = {
        "p/.nexus3/config.json": '{"provider": {"model": "of-p"}}',
        "s/.nexus3/config.json": '{"provider": {"model": "of-s"}, "permissions": {"level": "sandboxed"}}',
        "s/.nexus3/mcp.json": '{"servers": [{"name": "of-s", "command": ["x"]}]}',
    }
    parent = make_nexus(files=files, cwd="p").context()

    child = parent.for_subagent(tmp_path / "work/s")

    assert "Model: of-s\nPermission level: sandboxed\n" in child.system_prompt
    assert "of-p" not in child.system_prompt
    assert (child.config.provider.model, child.config.permissions.level) == ("of-s", "sandboxed")
    assert child.mcp_servers == []
    assert child.sources.local_dir == tmp_path / "work/s/.nexus3"
    assert headings(child)[-3:] == ["# System Configuration", "## Environment", "## Active Configuration"]


@pytest.mark.acceptance("S-01", "P-07")
def test_it_is_driven_as_its_parent_is_by_a_server(make_nexus: MakeNexus, tmp_path: Path) -> None:
    (tmp_path / "work/s").mkdir(parents=True)
    parent = make_nexus().context(mode="server")

    assert "Mode: HTTP JSON-RPC Server" in parent.for_subagent(tmp_path / "work/s").system_prompt


@pytest.mark.acceptance("P-07")
def test_it_is_in_no_repl_although_its_parent_is(make_nexus: MakeNexus, tmp_path: Path) -> None:
    (tmp_path / "work/s").mkdir(parents=True)
    parent = make_nexus().context(mode="repl")

    child = parent.for_subagent(tmp_path / "work/s").system_prompt

    assert "Mode: Interactive REPL" in parent.system_prompt
    assert ("Mode: " in child, "Terminal: " in child) == (False, False)


def test_the_parent_is_not_changed(make_nexus: MakeNexus, tmp_path: Path) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()
    before = parent.system_prompt

    parent.for_subagent(tmp_path / "work/b")

    assert parent.system_prompt == before


def test_a_directory_may_be_given_as_text(
    make_nexus: MakeNexus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()
    monkeypatch.chdir(tmp_path / "work")

    assert parent.for_subagent("b").cwd == tmp_path / "work/b"


def test_a_directory_that_is_not_there_is_an_error_that_names_it(make_nexus: MakeNexus, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such directory") as caught:
        make_nexus().context().for_subagent(tmp_path / "work/missing")

    assert caught.value.where == str(tmp_path / "work/missing")


def test_what_is_not_a_path_is_an_error_in_words(make_nexus: MakeNexus) -> None:
    context = make_nexus().context()

    with pytest.raises(UsageError, match="a directory must be given as a path, not as NoneType"):
        context.for_subagent(None)  # type: ignore[arg-type]


def test_a_blank_text_of_a_plugin_is_not_added(make_nexus: MakeNexus, tmp_path: Path) -> None:
    class Blank:
        @hookimpl
        def nexus_layer_texts(self) -> list[LayerText]:
            return [LayerText(tmp_path / "blank.md", " \n")]

    (tmp_path / "work/s").mkdir(parents=True)
    parent = make_nexus(plugins=[Blank()]).context()

    assert "Subagent Configuration" not in parent.for_subagent(tmp_path / "work/s").system_prompt


# ---- a prompt given by hand --------------------------------------------------------------------------------


@pytest.mark.acceptance("S-02", "C-34")
@pytest.mark.parametrize("prompt", ["Just this.", "", "## Environment\nMine."])
def test_a_prompt_given_by_hand_is_the_whole_prompt(make_nexus: MakeNexus, tmp_path: Path, prompt: str) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()

    child = parent.for_subagent(tmp_path / "work/b", prompt)

    assert child.system_prompt == prompt
    assert (child.sections, child.texts, child.sources.prompt_sources) == ((), (), [])
    assert child.cwd == tmp_path / "work/b"


@pytest.mark.acceptance("S-02", "S-04")
def test_a_prompt_given_by_hand_is_what_its_subagents_inherit(make_nexus: MakeNexus, tmp_path: Path) -> None:
    parent = make_nexus(files=CHAIN, cwd="a").context()
    work = tmp_path / "work"

    child = parent.for_subagent(work / "b", "Just this.")
    grandchild = child.for_subagent(work / "a")

    assert grandchild.system_prompt == own(work / "a/NEXUS.md", "Of a.") + "Just this."
    assert grandchild.for_subagent(work / "a").system_prompt == grandchild.system_prompt
