from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nexus_core.layers.agent_settings import AgentHomes, build_default_homes
from nexus_core.layers.agent_view import AgentView, read_agent_view
from nexus_core.testing import write_files
from tests.timing import assert_linear, assert_quick

RULE_AGENTS = ["cursor", "copilot", "opencode", "goose", "cline"]


def read_as(agent: str, cwd: Path, home: Path, *files: str, **variables: str) -> AgentView:
    """The view of a user whose home is `home`, who works on some files."""
    defaults = build_default_homes(home, system=home / "system")
    homes = AgentHomes(
        defaults.user, defaults.claude, defaults.codex, defaults.gemini, defaults.system, variables=variables
    )
    return read_agent_view(agent, cwd, homes, files=[Path(file) for file in files])


def bodies(view: AgentView) -> list[str]:
    return [text.text.strip() for text in view.texts]


def reasons(view: AgentView) -> dict[Path, str]:
    return {each.path: each.reason for each in view.skipped if each.reason != "not there"}


def conditions(view: AgentView, root: Path) -> dict[str, str]:
    return {each.path.relative_to(root).as_posix(): each.when for each in view.on_demand}


# ---- Cursor --------------------------------------------------------------------------------------------------------


def test_cursor_reads_rules_that_always_apply_and_lists_the_others_with_their_condition(
    repository: Path, home: Path
) -> None:
    rules = {
        "always.mdc": "---\ndescription: x\nglobs:\nalwaysApply: true\n---\nalways",
        "deep/globs.mdc": "---\nglobs: src/**/*.ts, *.tsx\nalwaysApply: false\n---\nglobs",
        "fits.mdc": "---\ndescription: Migrations\n---\nfits",
        "named.mdc": "no front matter",
    }
    write_files(repository, {f".cursor/rules/{name}": text for name, text in rules.items()})

    view = read_as("cursor", repository, home)

    assert bodies(view) == ["always"]
    assert conditions(view, repository) == {
        ".cursor/rules/deep/globs.mdc": "for files that match src/**/*.ts, *.tsx",
        ".cursor/rules/fits.mdc": "when its description fits the task",
        ".cursor/rules/named.mdc": "when you name it: @named",
    }
    assert view.findings == ()


@pytest.mark.parametrize(
    ("globs", "file", "is_read"),
    [
        ("*.ts", "src/deep/a.ts", True),
        ("**/*.{ts,tsx}", "a.tsx", True),
        ("[*.ts, 'docs/**']", "docs/a.md", True),
        ("\n  - *.py\n  - {src,lib}/**", "lib/x", True),
        ('["src/**"]', "web/a.ts", False),
        ("src/", "src/a/b.ts", True),
    ],
)
def test_cursor_reads_a_rule_for_a_file_that_its_globs_match(
    globs: str, file: str, is_read: bool, repository: Path, home: Path
) -> None:
    write_files(repository, {".cursor/rules/x.mdc": f"---\nglobs: {globs}\n---\nrule"})

    view = read_as("cursor", repository, home, file)

    assert bodies(view) == (["rule"] if is_read else [])
    assert len(view.on_demand) == (0 if is_read else 1)


def test_cursor_reads_the_legacy_file_and_agents_md(repository: Path, home: Path) -> None:
    write_files(repository, {".cursorrules": "legacy", "AGENTS.md": "agents", "web/.cursorrules": "not this"})

    assert bodies(read_as("cursor", repository / "web", home)) == ["legacy", "agents"]


def test_cursor_adds_nested_rules_for_files_of_their_directory(repository: Path, home: Path) -> None:
    always = "---\nalwaysApply: true\n---\nweb rule"
    write_files(repository, {"web/.cursor/rules/w.mdc": always, "web/AGENTS.md": "web agents"})

    apart, there = read_as("cursor", repository, home), read_as("cursor", repository, home, "web/a.ts")

    when = "when it works on a file in web/"
    assert conditions(apart, repository) == {"web/.cursor/rules/w.mdc": when, "web/AGENTS.md": when}
    assert sorted(bodies(there)) == ["web agents", "web rule"]


@pytest.mark.parametrize(
    ("agent", "path", "expected"),
    [
        ("cursor", ".cursor/rules/x.mdc", []),
        ("copilot", ".github/instructions/x.instructions.md", ["rule"]),
        ("cline", ".clinerules/x.md", ["---\nglobs: [a\n  b: c: d\n---\nrule"]),
        ("claude", ".claude/rules/x.md", ["rule"]),
    ],
)
def test_broken_front_matter_is_a_finding_with_its_line(
    agent: str, path: str, expected: list[str], repository: Path, home: Path
) -> None:
    write_files(repository, {path: "---\nglobs: [a\n  b: c: d\n---\nrule"})

    view = read_as(agent, repository, home)

    (finding,) = view.findings
    assert (finding.code, finding.path, finding.line) == ("profile-front-matter", repository / path, 2)
    assert bodies(view) == expected


def test_cursor_ignores_a_rule_with_another_suffix(repository: Path, home: Path) -> None:
    write_files(repository, {".cursor/rules/x.md": "rule", ".cursor/rules/README.md": "about"})

    (finding,) = read_as("cursor", repository, home).findings

    assert finding.message == "Cursor ignores this: the name of a rule ends with .mdc"
    assert finding.path == repository / ".cursor/rules/x.md"


def test_cursor_takes_an_odd_value_of_always_apply_for_false(repository: Path, home: Path) -> None:
    write_files(repository, {".cursor/rules/x.mdc": "---\ndescription: d\nalwaysApply: yes please\n---\nrule"})

    view = read_as("cursor", repository, home)

    assert bodies(view) == []
    assert [(each.code, each.line) for each in view.findings] == [("profile-front-matter", 3)]


# ---- GitHub Copilot ------------------------------------------------------------------------------------------------


def test_copilot_reads_the_files_of_the_user_the_repository_and_other_agents(repository: Path, home: Path) -> None:
    write_files(
        home, {".copilot/copilot-instructions.md": "mine", ".copilot/instructions/x.instructions.md": "my rule"}
    )
    write_files(repository, {".github/copilot-instructions.md": "repository", "AGENTS.md": "agents"})
    write_files(
        repository, {"CLAUDE.md": "claude", "GEMINI.md": "gemini", "web/AGENTS.md": "web", "web/CLAUDE.md": "no"}
    )

    view = read_as("copilot", repository / "web", home)

    assert bodies(view) == ["mine", "my rule", "repository", "agents", "claude", "gemini", "web"]


def test_copilot_reads_path_specific_instructions_only_for_files_that_match(repository: Path, home: Path) -> None:
    files = {"py": 'applyTo: "**/*.py,tests/**"', "all": "applyTo: **", "none": "description: for all"}
    texts = {
        f".github/instructions/{name}.instructions.md": f"---\n{head}\n---\n{name}" for name, head in files.items()
    }
    write_files(repository, texts)

    apart, there = read_as("copilot", repository, home), read_as("copilot", repository, home, "src/a.py")

    assert bodies(apart) == ["all", "none"]
    assert conditions(apart, repository) == {
        ".github/instructions/py.instructions.md": "for files that match **/*.py, tests/**"
    }
    assert bodies(there) == ["all", "none", "py"]


def test_copilot_reads_the_directories_of_its_variable(repository: Path, home: Path) -> None:
    write_files(home, {"team/AGENTS.md": "team", "team/.github/instructions/x.instructions.md": "rule"})

    view = read_as("copilot", repository, home, COPILOT_CUSTOM_INSTRUCTIONS_DIRS=f"{home / 'team'}, {home / 'none'}")

    assert bodies(view) == ["team", "rule"]


# ---- opencode ------------------------------------------------------------------------------------------------------


def test_opencode_reads_agents_md_from_the_working_directory_up_and_then_the_users(
    repository: Path, home: Path
) -> None:
    write_files(home, {".config/opencode/AGENTS.md": "mine", ".claude/CLAUDE.md": "claude's"})
    write_files(repository, {"AGENTS.md": "shop", "web/AGENTS.md": "web", "web/CLAUDE.md": "claude"})

    view = read_as("opencode", repository / "web", home)

    assert bodies(view) == ["web", "shop", "mine"]
    assert reasons(view)[repository / "web/CLAUDE.md"] == "AGENTS.md comes first"
    assert reasons(view)[home / ".claude/CLAUDE.md"] == f"{home / '.config/opencode/AGENTS.md'} comes first"


def test_opencode_falls_back_to_the_files_of_claude_unless_a_variable_forbids_it(repository: Path, home: Path) -> None:
    write_files(home, {".claude/CLAUDE.md": "mine"})
    write_files(repository, {"CLAUDE.md": "shop"})

    assert bodies(read_as("opencode", repository, home)) == ["shop", "mine"]
    assert bodies(read_as("opencode", repository, home, OPENCODE_DISABLE_CLAUDE_CODE="1")) == []


def test_opencode_reads_what_its_settings_name(repository: Path, home: Path) -> None:
    own = home / "rules.md"
    write_files(home, {"rules.md": "mine", ".config/opencode/opencode.json": f'{{"instructions": ["{own}"]}}'})
    write_files(repository, {"docs/b.md": "b", "docs/a.md": "a", "docs/no.txt": "no", "one.md": "one"})
    write_files(repository, {"opencode.jsonc": '{"instructions": ["docs/*.md", "./one.md"]} // both'})

    view = read_as("opencode", repository, home)

    assert bodies(view) == ["mine", "a", "b", "one"]
    assert view.findings == ()


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("name", ["/etc/hostname", "../secret.md", "~/secret.md", "https://example.com/a.md"])
def test_a_project_names_no_file_outside_for_opencode_and_nothing_is_fetched(
    name: str, repository: Path, home: Path
) -> None:
    write_files(home, {"secret.md": "secret"})
    write_files(repository, {"../secret.md": "secret", "opencode.json": f'{{"instructions": ["{name}"]}}'})

    view = read_as("opencode", repository, home)

    assert view.texts == ()
    assert [(each.code, each.path) for each in view.findings] == [("profile-unread", repository / "opencode.json")]


def test_a_name_in_opencode_settings_without_a_file_is_a_finding(repository: Path, home: Path) -> None:
    write_files(repository, {"opencode.json": '{"instructions": ["gone.md"]}'})

    (finding,) = read_as("opencode", repository, home).findings

    assert finding.message == "opencode finds nothing for 'gone.md' in instructions"


def test_a_pattern_of_opencode_that_is_not_evaluated_is_one_finding(repository: Path, home: Path) -> None:
    pattern = "{a,b}" * 40 + ".md"
    write_files(repository, {"opencode.json": json.dumps({"instructions": [pattern]})})

    (finding,) = read_as("opencode", repository, home).findings

    assert "not evaluated here" in finding.message


# ---- goose ---------------------------------------------------------------------------------------------------------


def test_goose_reads_hints_and_agents_md_from_the_repository_down(repository: Path, home: Path) -> None:
    write_files(home, {".config/goose/.goosehints": "mine"})
    write_files(repository, {".goosehints": "shop", "AGENTS.md": "agents", "web/.goosehints": "web"})

    assert bodies(read_as("goose", repository / "web", home)) == ["mine", "shop", "agents", "web"]


def test_goose_imports_in_code_too_three_deep(repository: Path, home: Path) -> None:
    write_files(repository, {".goosehints": "`x` @1.md.\n", **{f"{n}.md": f"{n} @{n + 1}.md" for n in range(1, 6)}})

    assert bodies(read_as("goose", repository, home)) == ["`x` 1 2 3 @4.md."]


@pytest.mark.parametrize(
    "settings", ["CONTEXT_FILE_NAMES:\n- CLAUDE.md\n- .goosehints\nOTHER: &a x\n", 'CONTEXT_FILE_NAMES: ["CLAUDE.md"]']
)
def test_goose_reads_the_names_in_its_settings(settings: str, repository: Path, home: Path) -> None:
    write_files(home, {".config/goose/config.yaml": f"GOOSE_MODEL: x\n{settings}"})
    write_files(repository, {"CLAUDE.md": "claude", "AGENTS.md": "agents"})

    assert bodies(read_as("goose", repository, home)) == ["claude"]


def test_the_variable_of_goose_comes_before_its_settings(repository: Path, home: Path) -> None:
    write_files(home, {".config/goose/config.yaml": "CONTEXT_FILE_NAMES: [no.md]"})
    write_files(repository, {"CLAUDE.md": "claude"})

    assert bodies(read_as("goose", repository, home, CONTEXT_FILE_NAMES='["CLAUDE.md"]')) == ["claude"]


# ---- Cline ---------------------------------------------------------------------------------------------------------


def test_cline_reads_global_rules_the_workspace_and_the_files_of_others(repository: Path, home: Path) -> None:
    write_files(home, {"Documents/Cline/Rules/x.md": "mine", ".agents/AGENTS.md": "shared"})
    write_files(repository, {".clinerules/1.md": "one", ".clinerules/2.txt": "two", ".clinerules/workflows/w.md": "no"})
    write_files(repository, {".cursorrules": "cursor", ".windsurfrules": "windsurf", ".clinerules/x.json": "{}"})

    assert bodies(read_as("cline", repository, home)) == ["mine", "shared", "one", "two", "cursor", "windsurf"]


def test_cline_reads_a_rules_file_in_place_of_the_directory(repository: Path, home: Path) -> None:
    write_files(repository, {".clinerules": "file"})

    assert bodies(read_as("cline", repository, home)) == ["file"]


def test_cline_reads_conditional_rules_only_for_files_that_match(repository: Path, home: Path) -> None:
    write_files(repository, {".clinerules/a.md": '---\npaths:\n  - "src/**"\n---\nsource'})
    write_files(repository, {".clinerules/b.md": "---\npaths: []\n---\nnever"})

    apart, there = read_as("cline", repository, home), read_as("cline", repository, home, "src/a.ts")

    assert bodies(apart) == []
    assert conditions(apart, repository) == {".clinerules/a.md": "for files that match src/**"}
    assert reasons(apart)[repository / ".clinerules/b.md"] == "paths is empty"
    assert bodies(there) == ["source"]


@pytest.mark.parametrize(("root", "expected"), [({"AGENTS.md": "agents"}, ["agents", "web"]), ({}, [])])
def test_cline_reads_agents_md_below_only_with_one_in_the_workspace(
    root: dict[str, str], expected: list[str], repository: Path, home: Path
) -> None:
    write_files(repository, {"web/AGENTS.md": "web", **root})

    assert bodies(read_as("cline", repository, home)) == expected


# ---- all of them ---------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("agent", RULE_AGENTS)
@pytest.mark.skipif(os.name != "posix", reason="links")
def test_links_out_of_the_project_are_not_followed(agent: str, repository: Path, home: Path, tmp_path: Path) -> None:
    write_files(
        tmp_path, {"secret/AGENTS.md": "secret", "secret/x.mdc": "secret", "secret/a.instructions.md": "secret"}
    )
    (repository / "AGENTS.md").symlink_to(tmp_path / "secret/AGENTS.md")
    for parent, name in [(".cursor", "rules"), (".github", "instructions")]:
        (repository / parent).mkdir()
        (repository / parent / name).symlink_to(tmp_path / "secret")
    (repository / ".clinerules").symlink_to(tmp_path / "secret")
    (repository / ".goosehints").symlink_to(tmp_path / "secret/AGENTS.md")

    view = read_as(agent, repository, home)

    assert view.texts == ()
    assert {each.code for each in view.findings} == {"profile-unread"}


def test_claude_reads_a_rule_with_paths_for_a_file_that_matches(repository: Path, home: Path) -> None:
    write_files(repository, {".claude/rules/x.md": '---\npaths: "src/**"\n---\nrule', "web/CLAUDE.md": "web"})

    assert bodies(read_as("claude", repository, home)) == []
    assert bodies(read_as("claude", repository, home, "src/a.py", "web/b.py")) == ["rule", "web"]


# ---- limits of globs -----------------------------------------------------------------------------------------------


def write_instructions(repository: Path, *patterns: str) -> None:
    write_files(repository, {"opencode.json": json.dumps({"instructions": patterns})})


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("a/**/b/**/c.md", "a/x/b/y/z/c.md", True),
        ("a/**/b/**/c.md", "a/x/y/c.md", False),
        ("a/**", "a/b.md", True),
        ("*a*b*.md", "xxaxxbxx.md", True),
        ("*a*b*.md", "xxbxxaxx.md", False),
        ("{x,{y,z}}/*.md", "z/a.md", True),
        ("[a-c]?.md", "b1.md", True),
        ("[!a-c]?.md", "b1.md", False),
        ("[z-a]*.md", "b1.md", False),
        ("[--/]*.md", "b1.md", False),
        ("{a*.md", "{ab.md", True),
        ("**/*.{md,txt}", "deep/er/a.txt", True),
        ("*.md", "deep/a.md", False),
    ],
)
def test_a_glob_in_opencode_settings_names_files(
    pattern: str, name: str, is_match: bool, repository: Path, home: Path
) -> None:
    write_files(repository, {name: "the file"})
    write_instructions(repository, pattern)

    view = read_as("opencode", repository, home)

    assert bodies(view) == (["the file"] if is_match else [])


def test_a_pattern_that_is_too_long_takes_linear_time_and_is_a_finding(repository: Path, home: Path) -> None:
    def read_with(length: int) -> AgentView:
        write_instructions(repository, "{" + "," * length)
        return read_as("opencode", repository, home)

    assert_linear(read_with, 50_000, 200_000)

    assert "too long" in read_with(20_000).findings[0].message


def test_many_braces_of_a_project_are_limited_together(repository: Path, home: Path) -> None:
    write_files(repository, {f"docs/{at}.md": "text" for at in range(20)})
    write_instructions(repository, *("{a,b}" * 9 + f"{at}*" for at in range(100)))

    assert_quick(lambda: read_as("opencode", repository, home), times=20)

    findings = read_as("opencode", repository, home).findings
    assert {each.code for each in findings} == {"profile-ignored", "profile-unread"}
    assert sum("too many braces" in each.message for each in findings) == 97


@pytest.mark.parametrize(
    ("agent", "name", "key"),
    [
        ("cursor", ".cursor/rules/{}.mdc", "globs"),
        ("copilot", ".github/instructions/{}.instructions.md", "applyTo"),
        ("cline", ".clinerules/{}.md", "paths"),
        ("claude", ".claude/rules/{}.md", "paths"),
    ],
)
def test_globs_of_rules_are_limited_together(agent: str, name: str, key: str, repository: Path, home: Path) -> None:
    pattern = "{a,b}" * 9
    rules = {name.format(at): f'---\n{key}:\n  - "{pattern}{at}"\n---\nrule {at}' for at in range(6)}
    write_files(repository, rules)

    view = read_as(agent, repository, home, "a" * 9 + "0", "a" * 9 + "5")

    assert bodies(view) == ["rule 0"]
    refused = [each.path for each in view.findings if "too many braces" in each.message]
    assert refused == [repository / name.format(at) for at in (3, 4, 5)]


def test_settings_with_more_names_than_are_used_are_a_finding(repository: Path, home: Path) -> None:
    write_instructions(repository, *(f"{at}.md" for at in range(101)))

    messages = [each.message for each in read_as("opencode", repository, home).findings]

    assert "instructions has 101 texts, and only the first 100 are used" in messages[0]


def test_a_project_makes_nothing_outside_be_listed(
    repository: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    write_files(outside, {"secret.md": "secret"})
    (repository / "sub").mkdir()
    (repository / "sub/link").symlink_to(outside)
    write_instructions(repository, f"{repository}/../../outside/*", "sub/link/*.md", f"{repository}/sub/link/*.md")
    listed: list[str] = []
    scan = os.scandir

    def note_scan(path: Path) -> object:
        listed.append(os.path.realpath(path))
        return scan(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", note_scan)
        view = read_as("opencode", repository, home)

    assert str(repository) in listed
    assert str(outside) not in listed
    assert bodies(view) == []
    assert [each.code for each in view.findings] == ["profile-unread"] * 3
    assert all("leads outside" in each.message for each in view.findings)
