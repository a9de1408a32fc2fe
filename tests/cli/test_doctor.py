import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from tests.conftest import Cli, InstallPlugin

SHOUTING = """
from nexus_core import Finding, hookimpl

@hookimpl
def nexus_diagnose(loaded):
    return [Finding("shouting", "in capitals only", text.path, 1) for text in loaded.texts if text.text.isupper()]
"""

TICKER = """
from itertools import count
from nexus_core import Section, hookimpl

numbers = count()

@hookimpl
def nexus_static_sections(request):
    return [Section("ticker", title="Ticker", text={text})]
"""


def test_a_healthy_directory_exits_with_0_and_prints_nothing(cli: Cli) -> None:
    outcome = cli("doctor")

    assert (outcome.code, outcome.out, outcome.err) == (0, "", "No problems found.\n")


def test_files_of_another_agent_are_checked_for_it_only(cli: Cli, work: Path) -> None:
    write_files(work, {".github/copilot-instructions.md": "\u200bBe kind.\n"})

    assert "hidden-characters" not in cli("doctor").out
    assert "hidden-characters" in cli("doctor", "--as", "copilot").out


def test_findings_are_printed_one_per_line_as_editors_read_them(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "Be kind.\nToday is Monday.\n## Environment"})

    outcome = cli("doctor")

    lines = outcome.out.splitlines()
    assert outcome.code == 1
    assert lines[0].startswith(f"{work}/AGENTS.md:2:1: 'Today is Monday' changes")
    assert lines[0].endswith(" [volatile-text]")
    assert lines[1].startswith(f"{work}/AGENTS.md:3: '## Environment' looks like")
    assert lines[1].endswith(" [forged-marker]")
    assert outcome.err == "2 findings\n"


def test_an_entry_that_is_not_used_is_named_with_its_line(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": {"a": {\n"url": "",\n"colour": 5}}}'})

    lines = cli("doctor").out.splitlines()

    file = f"{work}/.nexus3/mcp.json"
    assert lines == [
        f"{file}:1: not used: server 'a' is left out, because its command or url is empty [ignored-file]",
        f"{file}:3: not used: unknown key 'colour' of server 'a' [ignored-field]",
    ]


def test_findings_are_sorted_by_file_and_line_whatever_their_code(cli: Cli, work: Path) -> None:
    write_files(work, {"NEXUS.md": "## Environment\nrun #12", "AGENTS.md": "run #12\n## Environment"})

    findings = json.loads(cli("doctor", "--json").out)["findings"]

    assert [(Path(finding["path"]).name, finding["line"], finding["code"]) for finding in findings] == [
        ("AGENTS.md", 1, "volatile-text"),
        ("AGENTS.md", 2, "forged-marker"),
        ("NEXUS.md", 1, "forged-marker"),
        ("NEXUS.md", 2, "volatile-text"),
    ]


def test_json_has_a_schema_and_the_same_exit_code(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "Use tabs.", "NEXUS.md": "Use tabs."})

    outcome = cli("doctor", "--json")

    assert outcome.code == 1
    assert json.loads(outcome.out) == {
        "schema": 1,
        "findings": [
            {
                "code": "duplicate-file",
                "message": f"same text as {work}/NEXUS.md, which is used",
                "path": f"{work}/AGENTS.md",
                "line": 0,
                "column": 0,
                "note": False,
            }
        ],
    }


def test_json_of_a_healthy_directory_is_an_empty_list(cli: Cli) -> None:
    outcome = cli("doctor", "--json")

    assert (outcome.code, json.loads(outcome.out)) == (0, {"schema": 1, "findings": []})


def test_plugins_add_findings_of_their_own(cli: Cli, work: Path, install_plugin: InstallPlugin) -> None:
    install_plugin("shouting", SHOUTING)
    write_files(work, {"AGENTS.md": "BE KIND."})

    outcome = cli("doctor")

    assert (outcome.code, outcome.out) == (1, f"{work}/AGENTS.md:1: in capitals only [shouting]\n")
    assert outcome.err == "1 finding\n"


def test_a_broken_plugin_is_a_finding_about_no_file(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise ImportError('boom')")

    outcome = cli("doctor", "--json")

    (finding,) = json.loads(outcome.out)["findings"]
    assert outcome.code == 1
    assert (finding["code"], finding["path"]) == ("plugin-problem", None)
    assert "boom" in finding["message"]


def test_a_broken_plugin_is_told_once(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise ImportError('boom')")

    outcome = cli("doctor")

    assert (outcome.out.count("boom"), outcome.err) == (1, "1 finding\n")
    assert "Traceback" in cli("--debug", "doctor").err


def test_a_plugin_that_fails_while_it_looks_is_a_finding_too(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", SHOUTING.replace("return", "raise RuntimeError('boom') #"))

    outcome = cli("doctor")

    assert outcome.code == 1
    assert "nexus_diagnose: " in outcome.out
    assert "raised RuntimeError: boom" in outcome.out
    assert outcome.out.endswith(" [plugin-problem]\n")


def test_a_strict_run_finds_broken_plugins_as_well(
    cli: Cli, install_plugin: InstallPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin("bad", "raise ImportError('boom')")
    monkeypatch.setenv("NEXUS_STRICT", "1")

    outcome = cli("doctor")

    assert outcome.code == 1
    assert outcome.out.endswith(" [plugin-problem]\n")


def test_settings_that_cannot_be_read_are_an_error_and_no_finding(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": "{"})

    outcome = cli("doctor")

    assert (outcome.code, outcome.out) == (3, "")
    assert "mcp.json" in outcome.err


def test_nothing_in_a_finding_steers_the_terminal(cli: Cli, work: Path) -> None:
    server = {"name": "a\nb\x1b[2K", "command": ["node", "\u202ex"]}
    write_files(work, {".nexus3/mcp.json": json.dumps({"servers": [server]})})

    outcome = cli("doctor")

    assert len(outcome.out.splitlines()) == 1
    assert not {"\x1b", "\u202e"} & set(outcome.out)


def test_codes_are_explained_without_looking_for_anything(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "Today is Monday."})

    outcome = cli("doctor", "--codes")

    heading, *rows = outcome.out.splitlines()
    assert outcome.code == 0
    assert heading.split() == ["CODE", "MEANING"]
    assert {"hidden-characters", "plugin-problem", "volatile-text"} < {row.split()[0] for row in rows}


def test_codes_as_json(cli: Cli) -> None:
    document = json.loads(cli("doctor", "--codes", "--json").out)

    assert document["schema"] == 1
    assert document["codes"]["near-cap"] == "A file will soon be too large to be read"


def test_help_ends_with_two_examples(cli: Cli) -> None:
    outcome = cli("doctor", "--help")

    examples = outcome.out.rpartition("Examples:\n")[2].splitlines()
    assert outcome.code == 0
    assert [example.split()[0] for example in examples] == ["nexus", "nexus"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("f'Tick {next(numbers)}.'", "plugin 'ticker' returns a different section 'ticker' on each call"),
        (
            "'It is 2026-11-16 09:30.'",
            "plugin 'ticker' has '2026-11-16 09:30' in its section 'ticker', which changes from day to day",
        ),
    ],
)
def test_a_plugin_whose_section_changes_with_every_call_is_named(
    text: str, told: str, cli: Cli, install_plugin: InstallPlugin
) -> None:
    install_plugin("ticker", TICKER.format(text=text))

    outcome = cli("doctor")

    assert outcome.code == 1
    assert outcome.out == f"{told}, and each change invalidates the prompt cache [volatile-section]\n"


def test_a_section_that_stays_the_same_is_no_finding(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("ticker", TICKER.format(text="'Measure twice.'"))

    assert cli("doctor").code == 0


def test_faults_of_the_settings_are_findings_and_the_doctor_goes_on(cli: Cli, work: Path) -> None:
    config = '{"context": {\n"ancestor_depth": 99,\n"includ_readme": true}}'
    write_files(work, {".nexus3/config.json": config, "AGENTS.md": "Today is Monday."})

    outcome = cli("doctor")

    file = f"{work}/.nexus3/config.json"
    assert (outcome.code, outcome.err) == (1, "3 findings\n")
    lines = outcome.out.splitlines()
    assert lines[0].startswith(f"{file}:2:1: context.ancestor_depth: should be less than")
    assert lines[1].startswith(f"{file}:3:1: unknown setting 'context.includ_readme'; did you mean")
    assert [line.rpartition(" ")[2] for line in lines] == ["[invalid-setting]", "[invalid-setting]", "[volatile-text]"]


def test_a_file_that_is_no_json_stops_the_doctor_with_its_line(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": "{,}"})

    outcome = cli("doctor")

    assert outcome.code == 3
    assert "Line 1, Column 2" in outcome.err


def test_a_model_that_is_only_guessed_is_found_where_it_is_set(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"provider":\n{"model": "claude-sonet-5"}}'})

    outcome = cli("doctor")

    assert outcome.code == 1
    assert outcome.out.startswith(f"{work}/.nexus3/config.json:2:2: 'claude-sonet-5' is not in the table of models;")
    assert "did you mean 'claude-sonnet-5'?" in outcome.out
    assert outcome.out.endswith(" [guessed-model]\n")


WEATHER = """
from nexus_core import hookimpl

@hookimpl
def nexus_models():
    return []
"""


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"plugins": {"weathr": {"city": "Oslo"}}},
            "plugins.weathr: no such plugin is installed; did you mean 'weather'?",
        ),
        (
            {"provider": {"provider": "antropic"}},
            "provider.provider: no API is called 'antropic'; did you mean 'anthropic'?",
        ),
        (
            {"compaction": {"summarizers": ["extractiv"]}},
            "compaction.summarizers: no summarizer is called 'extractiv'; did you mean 'extractive'?",
        ),
        (
            {"skills": {"disabled": ["deplo"]}},
            "skills.disabled: there is no skill 'deplo' here; did you mean 'deploy'?",
        ),
    ],
)
def test_a_name_of_something_that_is_not_there_is_found(
    cli: Cli, nexus_home: Path, install_plugin: InstallPlugin, config: dict[str, object], said: str
) -> None:
    install_plugin("weather", WEATHER)
    guide = "---\nname: deploy\ndescription: How to deploy.\n---\nPush.\n"
    write_files(nexus_home, {"config.json": json.dumps(config), "skills/deploy/SKILL.md": guide})

    outcome = cli("doctor")

    assert (outcome.code, outcome.err) == (1, "1 finding\n")
    assert outcome.out.startswith(f"{nexus_home}/config.json:1:")
    assert said in outcome.out


def test_settings_of_a_plugin_that_is_elsewhere_or_says_of_none_are_a_note(
    cli: Cli, nexus_home: Path, install_plugin: InstallPlugin
) -> None:
    install_plugin("weather", WEATHER)
    write_files(nexus_home, {"config.json": '{"plugins": {"weather": {"city": "Oslo"}, "zzz": {}}}'})

    outcome = cli("doctor")

    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split(": ", 2)[2] for line in outcome.out.splitlines()] == [
        "plugins.weather: the plugin declares no settings, so these are not validated [unknown-name]",
        "plugins.zzz: no such plugin is installed [unknown-name]",
    ]


def executable(path: Path) -> Path:
    write_files(path.parent, {path.name: "#!/bin/sh\n"})
    path.chmod(0o755)
    return path


def test_another_nexus_that_comes_first_on_path_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = executable(tmp_path / "other/nexus")
    monkeypatch.setenv("PATH", str(other.parent))

    outcome = cli("doctor")

    assert outcome.code == 0
    assert f"another program called nexus comes first on PATH: {other}" in outcome.out
    assert "or type nexusctx" in outcome.out


def test_the_nexus_of_this_installation_is_not_another_one(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = executable(tmp_path / "own/nexus"), executable(tmp_path / "other/nexus")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nexus").symlink_to(own)
    monkeypatch.setattr("sys.argv", [str(own)])
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{other.parent}")

    assert cli("doctor").out == ""


def test_doctor_and_layers_name_an_import_from_the_system(cli: Cli, work: Path) -> None:
    write_files(work, {".git/HEAD": "", "AGENTS.md": "Rules.\n\n@/etc/passwd\n"})

    findings, layers = cli("doctor").out, cli("layers").out

    assert f"/etc/passwd: not used: import leads outside {work} (AGENTS.md:3) [ignored-file]\n" in findings
    assert f"import leads outside {work} (AGENTS.md:3)" in layers


def test_a_text_that_is_not_utf_8_is_one_finding_among_others(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "Today is 2026-03-01.\n"})
    (work / "AGENTS.md").write_bytes(b"Caf\xe9\n")

    outcome = cli("doctor", "--json")

    findings = {each["code"]: each for each in json.loads(outcome.out)["findings"]}
    assert outcome.code == 1
    assert findings["unreadable-file"]["path"] == f"{work}/AGENTS.md"
    assert findings["unreadable-file"]["message"].startswith("not UTF-8: byte 0xe9 at offset 3; save the file as UTF-8")
    assert findings["volatile-text"]["path"] == f"{nexus_home}/NEXUS.md"


@pytest.mark.parametrize(
    "command",
    [
        ["tokens", "notes.txt"],
        ["memory", "list"],
        ["memory", "search", "why"],
        ["session", "replay", "s"],
        ["session", "stats", "s"],
        ["context", "--session", "s"],
        ["context", "chat.json"],
        ["context", "--as", "claude"],
        ["status"],
    ],
    ids=" ".join,
)
def test_a_text_that_is_not_utf_8_does_not_stop_commands_that_do_not_send_it(
    cli: Cli, work: Path, nexus: Nexus, command: list[str]
) -> None:
    chat = json.dumps([{"role": "user", "content": "Why?"}])
    write_files(work, {"notes.txt": "A word.\n", "NEXUS.md": "Be kind.\n", "chat.json": chat})
    session = nexus.session("s", model="gpt-4o")
    session.ask("Why?")
    session.record({"role": "assistant", "content": "Because."})
    (work / "NEXUS.md").write_bytes(b"Caf\xe9\n")

    outcome = cli(*command)

    assert outcome.code == 0
    assert "Error" not in outcome.err
    assert outcome.out if command[0] != "memory" else "not UTF-8" in outcome.err


def test_the_status_says_that_a_prompt_is_counted_without_an_unreadable_file(cli: Cli, work: Path) -> None:
    (work / "NEXUS.md").write_bytes(b"Caf\xe9\n")

    assert "tokens without 1 unreadable file (" in " ".join(cli("status").out.split())


def test_a_text_that_is_not_utf_8_does_not_hide_invalid_settings(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"provider": {"model": 1}}'})
    (work / "AGENTS.md").write_bytes(b"Caf\xe9\n")

    codes = [each["code"] for each in json.loads(cli("doctor", "--json").out)["findings"]]

    assert sorted(codes) == ["invalid-setting", "unreadable-file"]


def test_the_files_of_another_agent_are_diagnosed(cli: Cli, work: Path) -> None:
    broken = "---\nglobs: [a\n---\nrule\n"
    write_files(work, {".git/HEAD": "", ".cursor/rules/x.mdc": broken, ".cursor/rules/y.md": "rule\n"})

    outcome, document = cli("doctor", "--as", "cursor"), json.loads(cli("doctor", "--as", "cursor", "--json").out)

    assert outcome.code == 1
    assert outcome.out.startswith(f"{work}/.cursor/rules/x.mdc:2: front matter that cannot be parsed: ")
    assert [each["code"] for each in document["findings"]] == ["profile-front-matter", "profile-ignored"]
    assert cli("doctor", "--as", "goose").code == 0
