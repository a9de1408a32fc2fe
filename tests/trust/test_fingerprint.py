import json
import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from nexus_core.testing import write_files
from nexus_core.trust.coverage import MAX_NAMED_BYTES, add_code_digests
from nexus_core.trust.fingerprint import (
    build_server_content,
    build_setting_content,
    canonical,
    describe_server,
    describe_setting,
    digest_secret,
    name_effect,
)
from tests.trust.conftest import BEARER, HTTP, STDIO, TOKEN


def files_of(server: dict[str, Any], root: Path) -> dict[str, Any]:
    """What is covered of the code, by name."""
    content = json.loads(add_code_digests(build_server_content(server, root)))
    files: dict[str, Any] = content.get("code", {}).get("digests", {})
    return files


def test_canonical_json_is_sorted_dense_and_ascii() -> None:
    value = {"b": [1, None, True], "a": "é"}

    text = canonical(value)

    assert text == '{"a":"\\u00e9","b":[1,null,true]}'


def test_a_read_only_mapping_is_canonical_too() -> None:
    assert canonical(MappingProxyType({"a": MappingProxyType({})})) == '{"a":{}}'


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))


def test_a_digest_does_not_show_the_secret_and_changes_with_it() -> None:
    one, other = digest_secret(TOKEN), digest_secret(TOKEN + "x")

    assert one != other
    assert TOKEN not in one


@pytest.mark.parametrize("server", [STDIO, HTTP], ids=["stdio", "http"])
def test_secrets_of_environment_and_headers_are_in_no_content_and_no_summary(
    project: Path, server: dict[str, Any]
) -> None:
    texts = build_server_content(server, project) + describe_server(server)

    for secret in (TOKEN, BEARER, "planted"):
        assert secret not in texts


def test_the_password_of_an_address_is_neither_kept_nor_shown(project: Path) -> None:
    server = {"name": "x", "url": "https://me:planted@mcp.example.com/v1"}

    content, summary = build_server_content(server, project), describe_server(server)

    assert "planted" not in content + summary
    assert summary == "'https://me:***@mcp.example.com/v1'"
    assert content != build_server_content({**server, "url": "https://me:other@mcp.example.com/v1"}, project)


@pytest.mark.parametrize(
    "url",
    [
        "https://a:evil.example.com/@good.example.com",
        "https://a:80\\@good.example.com",
        "https://a:1#@good.example.com",
    ],
)
def test_an_address_that_could_be_read_in_two_ways_is_shown_whole(url: str) -> None:
    assert url in describe_server({"name": "x", "url": url})


def test_a_script_in_a_command_for_a_shell_is_covered(project: Path) -> None:
    server = {"name": "x", "command": ["bash", "-c", "cd . && exec node tools/server.js;./bin/serve"]}

    assert {"tools/server.js", "bin/serve"} <= set(files_of(server, project))


def test_an_open_quotation_does_not_hide_a_script(project: Path) -> None:
    server = {"name": "x", "command": ["bash", "-c", "node tools/server.js 'oops"]}

    assert "tools/server.js" in files_of(server, project)


@pytest.mark.parametrize(
    "word", ["@tools/server.js", "a.jar:tools/server.js", "--x=y=tools/server.js", "src=tools/server.js,ro"]
)
def test_a_path_within_a_word_is_covered(project: Path, word: str) -> None:
    assert "tools/server.js" in files_of({"name": "x", "command": ["run", word]}, project)


def test_an_absolute_path_inside_the_root_is_covered(project: Path) -> None:
    server = {"name": "x", "command": ["node", str(project / "tools/server.js")]}

    assert "tools/server.js" in files_of(server, project)


def test_code_that_a_variable_loads_into_the_program_is_covered(project: Path) -> None:
    server = {"name": "x", "command": ["node"], "env": {"NODE_OPTIONS": "--require ./tools/server.js"}}

    assert "tools/server.js" in files_of(server, project)


@pytest.mark.acceptance("T2")
@pytest.mark.parametrize(
    "server",
    [
        {"command": ["node", "${SCRIPT:-./tools/server.js}"]},
        {"command": ["sh", "-c", "node ${SCRIPT:-tools/server.js} --fast"]},
        {"command": ["node", "server.js"], "cwd": "${workspaceFolder}/tools"},
        {"command": ["node", "server.js"], "cwd": "${PLACE:-tools}"},
        {"command": ["node"], "env": {"NODE_OPTIONS": "${OPTIONS:---require ./tools/server.js}"}},
        {"command": ["node"], "env_file": "tools/server.js"},
        {"command": ["node"], "env_file": "${workspaceFolder}/tools/server.js"},
    ],
)
def test_a_file_that_a_reference_leads_to_is_covered(project: Path, server: dict[str, object]) -> None:
    assert "tools/server.js" in files_of({"name": "x", **server}, project)


def test_a_program_found_in_a_path_of_its_own_is_the_one_that_counts(project: Path) -> None:
    server = {"name": "x", "command": "serve", "env": {"PATH": "bin:/usr/bin"}, "cwd": "tools"}

    content = json.loads(build_server_content(server, project))

    assert content["executable"] == str(project / "tools/bin/serve")
    assert "tools/bin/serve" in content["code"]["files"]


def test_nothing_outside_the_root_is_read(project: Path, tmp_path: Path) -> None:
    write_files(tmp_path, {"secret.txt": "outside"})
    arguments = [str(tmp_path / "secret.txt"), "../secret.txt", "/etc/passwd", "/proc/self/environ"]

    files = files_of({"name": "x", "command": ["cat", *arguments]}, project)

    assert files == {}


def test_a_link_to_the_outside_is_covered_by_its_target_alone(project: Path, tmp_path: Path) -> None:
    write_files(tmp_path, {"secret.txt": "outside"})
    (project / "run.sh").symlink_to(tmp_path / "secret.txt")

    files = files_of({"name": "x", "command": ["sh", "run.sh"]}, project)

    assert files == {"run.sh": {"outside": str(tmp_path / "secret.txt")}}


def test_a_file_beyond_all_limits_is_recognised_by_facts_that_cannot_be_set_back(project: Path) -> None:
    path = project / "large.bin"
    with path.open("wb") as file:
        file.truncate(MAX_NAMED_BYTES + 1)
    server = {"name": "x", "command": ["run", "large.bin"]}
    before, times = files_of(server, project)["large.bin"], path.stat()

    with path.open("r+b") as file:
        file.write(b"x")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    after = files_of(server, project)["large.bin"]
    assert before["unread"]
    assert (after["size"], after["modified"]) == (before["size"], before["modified"])
    assert after["changed"] != before["changed"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_file_that_cannot_be_read_is_recorded_as_such(project: Path) -> None:
    (project / "tools/server.js").chmod(0o000)

    files = files_of({"name": "x", "command": ["node", "tools/server.js"]}, project)

    assert files["tools/server.js"]["unread"]


def test_what_is_not_a_regular_file_is_not_waited_for(project: Path) -> None:
    os.mkfifo(project / "pipe")

    files = files_of({"name": "x", "command": ["cat", "pipe", "tools", "."]}, project)

    assert files == {}


@pytest.mark.parametrize("word", ["\0", "\ud800", "x" * 100_000, "/" * 5000, "", "~", "\n"])
def test_a_word_that_cannot_be_a_path_is_no_trouble(project: Path, word: str) -> None:
    server = {"name": "x", "command": [word, word], "cwd": word, "env": {"PATH": word}}

    assert files_of(server, project) == {}


@pytest.mark.parametrize("value", [None, 1, [], {}, "text", [None], {"a": {"b": 1}}])
def test_a_definition_of_the_wrong_kind_is_no_trouble(project: Path, value: object) -> None:
    server = dict.fromkeys(("name", "command", "args", "env", "cwd", "url", "headers"), value)

    assert json.loads(build_server_content(server, project))["kind"] == "server"
    assert describe_server(server)


def test_a_command_is_shown_whole_with_the_names_of_its_environment() -> None:
    summary = describe_server({**STDIO, "args": ["server.js", "a b", "$(evil)", "x" * 5000]})

    assert summary == (
        f"./bin/serve server.js 'a b' '$(evil)' {'x' * 5000}; directory: tools; environment: GITHUB_TOKEN MODE"
    )


def test_an_address_is_shown_whole_with_the_names_of_its_headers() -> None:
    assert describe_server(HTTP) == "'https://mcp.example.com/v1?tenant=a'; headers: Authorization X-Team"


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\x1b[2K", "\\x1b[2K"),
        ("\n", "\\n"),
        ("\u202e", "\\u202e"),
        ("\u200b", "\\u200b"),
        ("\u00a0", "\\xa0"),
        ("\u3164", "\\u3164"),
        ("\U000e0041", "\\U000e0041"),
        ("\ufe0f", "\\ufe0f"),
    ],
)
def test_what_nobody_would_see_in_a_command_is_shown_as_an_escape(hidden: str, shown: str) -> None:
    summary = describe_server({"name": "x", "command": ["node", f"a{hidden}b"], "env": {f"N{hidden}": "v"}})

    assert hidden not in summary
    assert summary.count(shown) == 2


def test_a_setting_keeps_its_structure_and_hides_its_texts() -> None:
    content = build_setting_content("plugins.git", {"env": {"TOKEN": TOKEN}, "depth": 3, "on": True})

    assert TOKEN not in content
    assert json.loads(content)["value"] == {
        "env": {"TOKEN": digest_secret(canonical(TOKEN))},
        "depth": 3,
        "on": True,
    }


@pytest.mark.parametrize("pointer", ["compaction.command", "/compaction/command"])
def test_a_setting_that_is_a_command_can_be_read(pointer: str) -> None:
    assert json.loads(build_setting_content(pointer, ["llm", "-m", "x"]))["value"] == ["llm", "-m", "x"]


@pytest.mark.parametrize("value", [["a", "c"], ["b"], "a", [], None, {"a": "b"}])
def test_a_setting_with_another_value_has_another_content(value: object) -> None:
    assert build_setting_content("/x", value) != build_setting_content("/x", ["a", "b"])


def test_a_setting_with_a_root_covers_the_scripts_it_names(project: Path) -> None:
    before = add_code_digests(build_setting_content("compaction.command", ["node", "tools/server.js"], root=project))
    (project / "tools/server.js").write_text("evil();\n")

    after = add_code_digests(build_setting_content("compaction.command", ["node", "tools/server.js"], root=project))

    assert before != after


@pytest.mark.acceptance("T2")
@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["$PWD/run.py"], "run.py"),
        (["${workspaceFolder}/tools/run.py"], "tools/run.py"),
        (["--script=${PWD}/run.py"], "run.py"),
        (["-m", "my.server"], "my/server.py"),
        (["-m", "my.server"], "my/server/__main__.py"),
        (["-m", "my"], "my/__init__.py"),
        (["-c", "cd . && python3 -m my.server"], "my/server.py"),
        (["tool"], "tool/__main__.py"),
        (["."], "index.js"),
    ],
)
def test_a_file_that_is_named_in_a_roundabout_way_is_covered_too(
    project: Path, arguments: list[str], file: str
) -> None:
    server = {"name": "x", "type": "stdio", "command": ["run", *arguments]}
    write_files(project, {file: "good"})
    before = add_code_digests(build_server_content(server, project))

    write_files(project, {file: "evil"})

    assert add_code_digests(build_server_content(server, project)) != before


def test_a_directory_that_is_named_does_not_make_its_other_files_part_of_an_approval(project: Path) -> None:
    server = {"name": "x", "type": "stdio", "command": ["serve", "--root=", "."]}
    before = add_code_digests(build_server_content(server, project))

    write_files(project, {"package.json": "{}", "src/new.py": "new"})

    assert add_code_digests(build_server_content(server, project)) == before


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ('{"kind":"server","command":["node"],"url":null}', "run"),
        ('{"kind":"server","command":["node"],"url":"https://x"}', "run"),
        ('{"kind":"server","command":null,"url":"https://x"}', "connect to"),
        (build_setting_content("compaction.command", "llm"), "run"),
        (build_setting_content("/plugins/x/url", "https://x"), "connect to"),
        (build_setting_content("/plugins/x", 1), "set"),
        ("not JSON", "set"),
        ("[]", "set"),
    ],
)
def test_the_effect_of_a_setting_is_told_in_a_word(content: str, word: str) -> None:
    assert name_effect(content) == word


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("compaction.summarizers", ["anthropic", "extractive"], "compaction.summarizers = anthropic extractive"),
        ("compaction.command", ["curl", "a b"], "compaction.command = curl 'a b'"),
        ("plugins.git.fetch", True, "plugins.git.fetch = true"),
        ("plugins.x.url", "https://me:hunter2@x", "plugins.x.url = 'https://me:***@x'"),
        ("plugins.x.token", "hunter2", "plugins.x.token"),
        ("plugins.x.headers", {"Authorization": "hunter2"}, "plugins.x.headers"),
    ],
)
def test_a_setting_is_shown_with_its_value_unless_that_may_be_a_secret(name: str, value: object, shown: str) -> None:
    assert describe_setting(name, value) == shown
