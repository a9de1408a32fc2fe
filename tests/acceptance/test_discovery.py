"""Where layers are looked for and in which order they count: the rows L of the specification, through a whole load."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nexus_core import ConfigError
from nexus_core.context import Config, ContextLoader
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import ROOT

PLACES = {"global": "home", "ancestor:company": "company/.nexus3", "local": "company/project/.nexus3"}


@pytest.mark.acceptance("L-01")
def test_later_layers_extend_earlier_ones_from_the_defaults_to_the_project(
    make_nexus: MakeNexus, nexus_home: Path
) -> None:
    def settings(name: str, **values: object) -> str:
        return json.dumps({"provider": {"model": name, "options": values}, "skills": {"disabled": [name]}})

    write_files(nexus_home, {"config.json": settings("own", a=1)})  # and no NEXUS.md, so that the defaults stand in
    files = {
        "a/.nexus3/NEXUS.md": "A",
        "a/.nexus3/config.json": settings("a"),
        "a/b/.nexus3/NEXUS.md": "B",
        "a/b/.nexus3/config.json": settings("b"),
        "a/b/c/.nexus3/NEXUS.md": "C",
        "a/b/c/.nexus3/config.json": settings("c"),
    }

    context = make_nexus(files=files, cwd="a/b/c", defaults=True).context()

    names = [source.layer_name for source in context.sources.prompt_sources]
    assert names == ["defaults", "ancestor:a", "ancestor:b", "local"]
    assert context.config.skills.disabled == ["own", "a", "b", "c"]
    assert (context.config.provider.model, context.config.provider.options) == ("c", {"a": 1})


@pytest.mark.acceptance("L-02")
@pytest.mark.parametrize("layer", PLACES)
@pytest.mark.parametrize("name", ["NEXUS.md", "config.json", "mcp.json"])
def test_each_layer_may_have_each_of_the_three_files_alone(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, layer: str, name: str
) -> None:
    text = {"NEXUS.md": "Words.", "config.json": '{"provider": {"model": "m"}}', "mcp.json": '{"servers": []}'}[name]
    place = nexus_home if layer == "global" else tmp_path / "work" / PLACES[layer]
    write_files(place, {name: text})

    context = make_nexus(cwd="company/project").context()

    sources = context.sources
    assert [(source.path, source.layer_name) for source in sources.prompt_sources] == (
        [(place / name, layer)] if name == "NEXUS.md" else []
    )
    assert sources.config_sources == ([place / name] if name == "config.json" else [])
    assert sources.mcp_sources == ([place / name] if name == "mcp.json" else [])
    assert context.config.provider.model == ("m" if name == "config.json" else None)


@pytest.mark.acceptance("L-07", "L-03")
@pytest.mark.parametrize(("depth", "found"), [(None, 2), (0, 0), (1, 1), (2, 2), (3, 3), (9, 9), (10, 10)], ids=str)
def test_the_depth_counts_levels_from_none_to_ten(
    make_nexus: MakeNexus, nexus_home: Path, depth: int | None, found: int
) -> None:
    levels = ["/".join("abcdefghijkl"[:count]) for count in range(1, 13)]
    if depth is not None:
        write_files(nexus_home, {"config.json": json.dumps({"context": {"ancestor_depth": depth}})})

    context = make_nexus(files={f"{level}/.nexus3/NEXUS.md": level for level in levels}, cwd=levels[-1]).context()

    assert len(context.sources.ancestor_dirs) == found
    assert [path.parent.name for path in context.sources.ancestor_dirs] == list("abcdefghijk"[11 - found :])


@pytest.mark.acceptance("L-05")
@pytest.mark.parametrize("place", ["/usr/lib", "/usr", "/"])
def test_the_root_of_the_file_system_is_not_even_looked_at_as_an_ancestor(nexus_home: Path, place: str) -> None:
    write_files(nexus_home, {"config.json": '{"context": {"ancestor_depth": 10}}'})

    loaded = ContextLoader(place).load().loaded

    looked_at = {layer.directory for layer in loaded.layers} | {skipped.path for skipped in loaded.skipped}
    assert (Path("/.nexus3") in looked_at) is (place == "/")
    assert [layer.name for layer in loaded.layers if layer.scope == "ancestor" and not layer.only_rules] == []


@pytest.mark.acceptance("L-07")
@pytest.mark.parametrize("layer", PLACES)
@pytest.mark.parametrize("depth", ["-1", "11", '"2"', "true", "2.5", "[2]"])
def test_a_depth_out_of_range_is_an_error_in_whichever_layer_it_stands(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, layer: str, depth: str
) -> None:
    place = nexus_home if layer == "global" else tmp_path / "work" / PLACES[layer]
    write_files(place, {"config.json": f'{{"context": {{"ancestor_depth": {depth}}}}}'})

    with pytest.raises(ConfigError, match="ancestor_depth") as caught:
        make_nexus(cwd="company/project").context()

    assert str(caught.value.where) == f"{place}/config.json:1:14"


@pytest.mark.acceptance("L-08", "C-05")
@pytest.mark.parametrize(
    ("depths", "effective"),  # of the user, the ancestor and the project
    [
        ([None, None, None], 2),
        ([1, None, None], 1),
        ([1, None, 3], 3),
        ([None, None, 1], 1),
        ([None, 1, None], 2),
        ([None, 4, None], 2),
        ([1, 4, None], 1),
        ([1, 4, 3], 3),
        ([3, None, 0], 0),
    ],
)
def test_the_depth_is_the_projects_or_else_the_users_and_never_an_ancestors(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, depths: list[int | None], effective: int
) -> None:
    work = tmp_path / "work"
    write_files(work, {f"{'/'.join('abcd'[:count])}/.nexus3/NEXUS.md": str(count) for count in range(1, 5)})
    places = [nexus_home, work / "a/b/c/.nexus3", work / "a/b/c/d/.nexus3"]
    for place, depth in zip(places, depths, strict=True):
        if depth is not None:
            write_files(place, {"config.json": json.dumps({"context": {"ancestor_depth": depth}})})

    context = make_nexus(cwd="a/b/c/d").context()

    assert len(context.sources.ancestor_dirs) == effective
    assert context.config.context.ancestor_depth == effective


@pytest.mark.acceptance("L-09", "L-10", "F-13")
def test_where_there_is_nothing_everything_is_the_default(tmp_path: Path, nexus_home: Path) -> None:
    nexus_home.rmdir()
    (tmp_path / "a/b").mkdir(parents=True)

    context = ContextLoader(tmp_path / "a/b").load()

    assert context.config == Config()
    assert [source.layer_name for source in context.sources.prompt_sources] == ["defaults"]
    assert (context.sources.global_dir, context.sources.ancestor_dirs, context.sources.local_dir) == (None, [], None)
    assert (context.mcp_servers, context.loaded.findings) == ([], ())


@pytest.mark.acceptance("L-09", "C-03", "B-06")
def test_the_defaults_stand_in_for_a_missing_file_under_their_own_name_and_path(
    make_nexus: MakeNexus, nexus_home: Path
) -> None:
    context = make_nexus(defaults=True).context()

    path = ROOT / "defaults/NEXUS.md"
    assert f"## Default Configuration\nSource: {path}\n\n{path.read_text(encoding='utf-8')}" in context.system_prompt
    assert str(nexus_home) not in context.system_prompt


@pytest.mark.acceptance("C-03")
def test_the_defaults_are_never_merged_under_a_file_of_the_users_own(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": "{}", "NEXUS.md": "Own."})

    context = make_nexus(defaults=True).context()

    assert context.sources.config_sources == [nexus_home / "config.json"]
    assert context.loaded.settings.value == {}
    assert "Default Configuration" not in context.system_prompt


@pytest.mark.acceptance("L-14", "P-14")
def test_one_load_has_all_three_kinds_of_file(tmp_path: Path, nexus_home: Path) -> None:
    servers = '{"servers": [{"name": "a", "command": ["x"]}]}'
    write_files(nexus_home, {"NEXUS.md": "Own.", "config.json": '{"provider": {"model": "m"}}', "mcp.json": servers})
    (tmp_path / "work").mkdir()

    context = ContextLoader().load(tmp_path / "work")

    assert "Own." in context.system_prompt
    assert context.config.provider.model == "m"
    assert [server.config.name for server in context.mcp_servers] == ["a"]
    assert context.sources.global_dir == nexus_home


@pytest.mark.acceptance("L-15")
@pytest.mark.parametrize("place", PLACES)
def test_every_load_reads_every_kind_of_file_again(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, place: str
) -> None:
    directory = nexus_home if place == "global" else tmp_path / "work" / PLACES[place]

    def write(word: str) -> None:
        servers = json.dumps({"servers": [{"name": word, "command": ["x"]}]})
        settings = json.dumps({"provider": {"model": word}})
        write_files(directory, {"NEXUS.md": word, "config.json": settings, "mcp.json": servers})

    write("before")
    nexus = make_nexus(cwd="company/project")
    nexus.context()
    write("after")

    context = nexus.context()

    assert "before" not in context.system_prompt
    assert context.config.provider.model == "after"
    assert [server.config.name for server in context.mcp_servers] == ["after"]


LOAD = """
import sys
from nexus_core.context import ContextLoader
context = ContextLoader(sys.argv[1]).load()
context.system_prompt, context.config, context.mcp_servers, context.layers, context.sources
print(*sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)))
"""


@pytest.mark.acceptance("L-17")
def test_loading_needs_nothing_but_pluggy_and_pydantic(tmp_path: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "Own.", "config.json": '{"provider": {}}', "mcp.json": '{"servers": []}'})
    (tmp_path / "work").mkdir()

    outcome = subprocess.run(
        [sys.executable, "-c", LOAD, tmp_path / "work"], capture_output=True, text=True, check=True
    )

    foreign = {name for name in outcome.stdout.split() if not name.startswith(("nexus_", "_", "sitecustomize"))}
    needed_by_pydantic = {"annotated_types", "pydantic_core", "typing_extensions", "typing_inspection"}
    assert foreign - needed_by_pydantic == {"pluggy", "pydantic"}


@pytest.mark.acceptance("L-17")
def test_what_loading_needs_is_among_the_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    names = {requirement.partition(">")[0] for requirement in project["dependencies"]}

    assert {"pluggy", "pydantic"} <= names


@pytest.mark.acceptance("B-07")
def test_working_in_the_home_directory_reads_what_is_there_once_as_the_users_own(
    make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(nexus_home.parent))
    servers = '{"servers": [{"name": "a", "command": ["x"]}]}'
    settings = '{"skills": {"disabled": ["a"]}}'
    write_files(nexus_home, {"NEXUS.md": "Only once.", "config.json": settings, "mcp.json": servers})

    context = make_nexus(cwd=str(nexus_home.parent)).context()

    assert context.system_prompt.count("Only once.") == 1
    assert context.config.skills.disabled == ["a"]
    assert [(server.origin, server.status) for server in context.mcp_servers] == [("global", "enabled")]
    assert (context.sources.global_dir, context.sources.local_dir) == (nexus_home, None)


@pytest.mark.acceptance("B-12", "C-20")
def test_a_text_without_a_directory_of_its_own_is_read_at_every_level(make_nexus: MakeNexus, tmp_path: Path) -> None:
    context = make_nexus(files={"a/NEXUS.md": "A", "a/b/NEXUS.md": "B"}, cwd="a/b").context()

    work = tmp_path / "work"
    assert [(source.path, source.layer_name) for source in context.sources.prompt_sources] == [
        (work / "a/NEXUS.md", "ancestor:a"),
        (work / "a/b/NEXUS.md", "local"),
    ]


@pytest.mark.acceptance("B-14")
def test_two_ancestors_of_one_name_are_told_apart_by_path_wherever_they_are_named(
    make_nexus: MakeNexus, tmp_path: Path
) -> None:
    def files(place: str, name: str) -> dict[str, str]:
        return {
            f"{place}/.nexus3/NEXUS.md": f"In {place}.",
            f"{place}/.nexus3/config.json": json.dumps({"skills": {"disabled": [name]}}),
            f"{place}/.nexus3/mcp.json": json.dumps({"servers": [{"name": name, "command": ["x"]}]}),
        }

    context = make_nexus(files=files("src", "far") | files("src/src", "near"), cwd="src/src/x").context()

    far, near = tmp_path / "work/src/.nexus3", tmp_path / "work/src/src/.nexus3"
    prompt = context.system_prompt
    assert f"## Ancestor Configuration (src)\nSource: {far}/NEXUS.md\n\nIn src.\n" in prompt
    assert f"## Ancestor Configuration (src)\nSource: {near}/NEXUS.md\n\nIn src/src.\n" in prompt
    assert [layer.path for layer in context.layers if layer.name == "ancestor:src"] == [far, near]
    assert [server.source_path.parent for server in context.mcp_servers] == [far, near]
    origins = [context.loaded.settings.origins[f"/skills/disabled/{index}"][0] for index in (0, 1)]
    assert [origin.path.parent for origin in origins] == [far, near]
