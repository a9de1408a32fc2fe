"""What config.json and README.md decide: the rows F and R of the specification, through a whole load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import ConfigError, NexusError, hookimpl
from nexus_core.context import Config, ContextConfig
from nexus_core.plugin import MergePolicy
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus


def config(**settings: object) -> str:
    return json.dumps(settings)


@pytest.mark.acceptance("F-01", "F-02", "F-03", "F-04", "C-01")
def test_the_settings_of_all_layers_are_one(make_nexus: MakeNexus, nexus_home: Path) -> None:
    own = config(
        provider={"model": "own", "context_window": 1}, skills={"disabled": ["a"]}, budget={"reserve_tools": 1}
    )
    above = config(provider={"model": "above"}, skills={"disabled": ["b", "a"]})
    here = config(provider={"provider": "here"}, skills={"disabled": ["c"]})
    write_files(nexus_home, {"config.json": own})

    context = make_nexus(files={"a/.nexus3/config.json": above, "a/b/.nexus3/config.json": here}, cwd="a/b").context()

    provider = context.config.provider
    assert (provider.model, provider.context_window, provider.provider) == ("above", 1, "here")
    assert context.config.skills.disabled == ["a", "b", "a", "c"]
    assert context.config.budget.reserve_tools == 1


@pytest.mark.acceptance("F-12")
def test_the_files_that_contribute_settings_are_listed_in_the_order_of_merging(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path
) -> None:
    write_files(nexus_home, {"config.json": "{}"})
    files = {f"{place}/.nexus3/config.json": "{}" for place in ("a", "a/b", "a/b/c")}

    context = make_nexus(files=files, cwd="a/b/c").context()

    work = tmp_path / "work"
    places = [nexus_home, work / "a/.nexus3", work / "a/b/.nexus3", work / "a/b/c/.nexus3"]
    assert context.sources.config_sources == [place / "config.json" for place in places]
    assert isinstance(context.config, Config)


@pytest.mark.acceptance("F-11")
def test_the_fields_of_the_specification_have_its_defaults_and_bounds() -> None:
    fields = ContextConfig.model_json_schema()["properties"]

    assert {name: fields[name]["default"] for name in ("ancestor_depth", "include_readme", "readme_as_fallback")} == {
        "ancestor_depth": 2,
        "include_readme": False,
        "readme_as_fallback": True,
    }
    assert (fields["ancestor_depth"]["minimum"], fields["ancestor_depth"]["maximum"]) == (0, 10)


@pytest.mark.acceptance("C-01")
@pytest.mark.parametrize(
    ("text", "disabled"),
    [
        ('["c"]', ["a", "b", "c"]),
        ('{"$replace": ["c"]}', ["c"]),
        ('{"$replace": []}', []),
        ('{"$remove": ["a"]}', ["b"]),
    ],
)
def test_a_file_can_extend_replace_or_thin_out_a_list(
    make_nexus: MakeNexus, nexus_home: Path, text: str, disabled: list[str]
) -> None:
    write_files(nexus_home, {"config.json": config(skills={"disabled": ["a", "b"]})})

    context = make_nexus(files={".nexus3/config.json": f'{{"skills": {{"disabled": {text}}}}}'}).context()

    assert context.config.skills.disabled == disabled


@pytest.mark.acceptance("C-01")
@pytest.mark.parametrize(
    ("policy", "disabled"), [("join", ["a", "b", "b"]), ("replace", ["b"]), ("unique", ["a", "b"])]
)
def test_a_key_has_the_policy_that_a_plugin_gives_it(
    make_nexus: MakeNexus, nexus_home: Path, policy: str, disabled: list[str]
) -> None:
    class Policies:
        @hookimpl
        def nexus_merge_policies(self) -> list[MergePolicy]:
            return [MergePolicy("skills.disabled", policy)]  # type: ignore[arg-type]

    write_files(nexus_home, {"config.json": config(skills={"disabled": ["a", "b"]})})
    files = {".nexus3/config.json": config(skills={"disabled": ["b"]})}

    context = make_nexus(files=files, plugins=[Policies()]).context()

    assert context.config.skills.disabled == disabled


@pytest.mark.acceptance("C-01")
def test_a_project_adds_to_what_is_denied_and_never_clears_it(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": config(permissions={"tools": {"deny": ["rm"]}})})

    def denied(value: object) -> list[str]:
        files = {".nexus3/config.json": config(permissions={"tools": {"deny": value}})}
        return make_nexus(files=files).context().config.permissions.tools.deny

    assert denied(["curl"]) == ["rm", "curl"]
    assert denied({"$replace": []}) == denied({"$remove": ["rm"]}) == denied([]) == ["rm"]


@pytest.mark.acceptance("F-06", "F-14", "C-02")
def test_keys_for_readers_are_allowed_at_every_depth_and_others_are_not(make_nexus: MakeNexus) -> None:
    comments = {"_comment": 1, "$schema": "x", "provider": {"_why": [1], "options": {"_": {}}}, "skills": {"_": {}}}
    nexus = make_nexus(files={".nexus3/config.json": json.dumps(comments)})
    assert nexus.context().config == Config()

    nexus = make_nexus(files={".nexus3/config.json": '{"provider": {"_why": 1, "comment": 2}}'})

    with pytest.raises(ConfigError, match=r"unknown setting 'provider\.comment'"):
        nexus.context()


@pytest.mark.acceptance("F-07")
def test_a_fault_is_told_as_pydantic_found_it_with_file_line_and_column(make_nexus: MakeNexus, tmp_path: Path) -> None:
    nexus = make_nexus(files={".nexus3/config.json": '{\n  "context": {\n    "include_readme": "yes"\n  }\n}\n'})

    with pytest.raises(ConfigError) as caught:
        nexus.load()

    path = tmp_path / "work/.nexus3/config.json"
    assert str(caught.value) == (
        f"Configuration Error: Invalid setting in {path}\n\n"
        "  Line 3, Column 5: context.include_readme: should be a valid boolean\n\n"
        '  2 |   "context": {\n  3 |     "include_readme": "yes"\n          ^\n  4 |   }\n\n'
        "Correct the setting and try again."
    )


MALFORMED = {
    "a trailing comma": '{\n\n\n  "provider": {\n    "model": "m",\n  }\n}',
    "three blank lines first": '\n\n\n{\n  "a": 1,\n  b: 2\n}',
    "no end": '{"provider": {',
    "a key twice": '{"provider": {},\n "provider": {}}',
    "not a number": '{"compaction": {"trigger_ratio": NaN}}',
    "a comment": "{} // why",
    "deep": "[" * 100,
}


@pytest.mark.acceptance("F-08", "F-09", "B-10")
@pytest.mark.parametrize("place", ["global", "ancestor", "local"])
@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_file_of_any_layer_stops_the_load_and_shows_where(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, place: str, text: str
) -> None:
    work = tmp_path / "work"
    directory = {"global": nexus_home, "ancestor": work / ".nexus3", "local": work / "sub/.nexus3"}[place]
    write_files(directory, {"config.json": text})

    with pytest.raises(ConfigError) as caught:
        make_nexus(cwd="sub").context()

    title, _, where, _, *excerpt, _, closing = str(caught.value).split("\n")
    line, column = map(int, str(caught.value.where).rsplit(":", 2)[1:])
    assert title == f"Configuration Error: Invalid JSON in {directory}/config.json"
    assert where.startswith(f"  Line {line}, Column {column}: ")
    assert closing == "Fix the JSON syntax error and try again."
    number = len(str(min(line + 1, text.count("\n") + 1)))
    caret = next(at for at, row in enumerate(excerpt) if row.strip() == "^")
    assert excerpt[caret - 1] == f"  {line:>{number}} | {text.splitlines()[line - 1]}"
    assert excerpt[caret].index("^") == len(f"  {line:>{number}} | ") + column - 1


@pytest.mark.acceptance("B-11")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("name", ["NEXUS.md", "config.json", "mcp.json"])
def test_another_encoding_is_an_error_that_names_the_file_and_the_byte(
    make_nexus: MakeNexus, tmp_path: Path, name: str, encoding: str
) -> None:
    path = tmp_path / "work/.nexus3" / name
    path.parent.mkdir(parents=True)
    path.write_bytes('{"é": "é"}'.encode(encoding))

    with pytest.raises(NexusError, match=r"[Bb]yte 0x\w\w at offset \d") as caught:
        make_nexus().context()

    assert str(caught.value.where).startswith(str(path))


@pytest.mark.acceptance("F-10", "M-02")
@pytest.mark.parametrize("blank", ["", " \n\t\n"])
def test_an_empty_file_sets_nothing(make_nexus: MakeNexus, blank: str) -> None:
    files = {f".nexus3/{name}": blank for name in ("NEXUS.md", "config.json", "mcp.json")}

    context = make_nexus(files=files).context()

    assert (context.config, context.mcp_servers, context.sources.prompt_sources) == (Config(), [], [])


# ---- README ------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("R-01", "R-02", "R-03", "C-19")
@pytest.mark.parametrize(
    ("switches", "with_text", "without"),
    [
        ({"include_readme": False, "readme_as_fallback": False}, ["NEXUS.md"], []),
        ({"include_readme": False, "readme_as_fallback": True}, ["NEXUS.md"], ["README.md"]),
        ({}, ["NEXUS.md"], ["README.md"]),
        ({"include_readme": True, "readme_as_fallback": False}, ["NEXUS.md", "README.md"], ["README.md"]),
        ({"include_readme": True, "readme_as_fallback": True}, ["NEXUS.md", "README.md"], ["README.md"]),
    ],
)
def test_the_readme_is_there_as_the_two_switches_say(
    make_nexus: MakeNexus, nexus_home: Path, switches: dict[str, bool], with_text: list[str], without: list[str]
) -> None:
    write_files(nexus_home, {"config.json": config(context=switches)})
    files = {
        "with/NEXUS.md": "Instructions.",
        "with/README.md": "# With",
        "without/README.md": "# Without",
    }

    contexts = [make_nexus(files=files, cwd=place).context() for place in ("with", "without")]

    found = [[source.path.name for source in context.sources.prompt_sources] for context in contexts]
    assert found == [with_text, without]
    for context in contexts:
        readme = next((text.text for text in context.texts if text.path.name == "README.md"), None)
        assert readme is None or readme.startswith("----- BEGIN DOCUMENTATION")


@pytest.mark.acceptance("R-02")
def test_each_layer_falls_back_to_its_own_readme(make_nexus: MakeNexus) -> None:
    files = {
        "a/.nexus3/config.json": "{}",
        "a/README.md": "# A",
        "a/b/.nexus3/NEXUS.md": "B",
        "a/b/README.md": "# B",
        "a/b/c/README.md": "# C",
    }

    context = make_nexus(files=files, cwd="a/b/c").context()

    names = [(source.layer_name, source.path.name) for source in context.sources.prompt_sources]
    assert names == [("ancestor:a", "README.md"), ("ancestor:b", "NEXUS.md"), ("local", "README.md")]


@pytest.mark.acceptance("B-13")
def test_blank_instructions_make_way_for_the_readme(make_nexus: MakeNexus) -> None:
    context = make_nexus(files={".nexus3/NEXUS.md": "\n \n", "README.md": "# Read"}).context()

    assert [source.path.name for source in context.sources.prompt_sources] == ["README.md"]


@pytest.mark.acceptance("C-33")
def test_rules_and_instructions_are_two_sections_and_either_keeps_the_readme_away(make_nexus: MakeNexus) -> None:
    readme = {"README.md": "# Read"}

    both = make_nexus(files={"NEXUS.md": "Own.", "AGENTS.md": "Rules.", **readme}).context()

    assert [section.title for section in both.layer_sections] == ["Project Configuration", "Workspace Rules (work)"]
    assert "# Read" not in both.system_prompt
