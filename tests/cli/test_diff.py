"""`nexus diff`: by what two requests differ, who is to blame, and what it costs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.cli.commands import diff
from nexus_core.dialects.registry import BUILT_IN_NAMES
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from tests.conftest import ROOT, Cli, InstallPlugin, Outcome
from tests.effort import sampled
from tests.session.support import TOOLS, calls, says

Talk = Callable[..., list[str]]

COUNTING = """
from itertools import count
from nexus_core import Section, hookimpl

numbers = count()

@hookimpl
def nexus_static_sections(request):
    return [Section("ticker", title="Ticker", text=f"Tick {next(numbers)}.")]
"""
UNORDERED = """
from nexus_core import Section, hookimpl

@hookimpl
def nexus_static_sections(request):
    return [Section("names", title="Names", text=" ".join({"ann", "ben", "cem", "dan", "eve", "fay", "gus", "hal"}))]
"""
STEADY = """
from nexus_core import Section, hookimpl

@hookimpl
def nexus_static_sections(request):
    return [Section("motto", title="Motto", text="Measure twice.")]
"""


@pytest.fixture
def session(nexus: Nexus) -> Session:
    return nexus.session("auth-bug", model="claude-sonnet-4", tools=TOOLS)


@pytest.fixture
def talk(session: Session) -> Talk:
    """Ask and be answered; gives the steps of the replies."""

    def ask(*questions: str) -> list[str]:
        steps = []
        for question in questions:
            session.ask(question)
            steps.append(session.record(says(f"re {question}", name=question)).id)
        return steps

    return ask


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "_CLOCK_TICK_SECONDS", 0.0)


def facts(outcome: Outcome, code: int = 0) -> Any:
    assert outcome.code == code, outcome.err
    return json.loads(outcome.out)


def test_a_conversation_that_goes_on_begins_with_all_of_the_call_before(cli: Cli, talk: Talk) -> None:
    first, second = talk("Why?", "And then?")

    outcome = cli("diff", first, second)

    assert outcome.code == 0
    assert "B begins with all of A, and goes on with 2 messages." in outcome.out
    assert " 0 are billed again" in outcome.out


def test_a_changed_file_is_blamed_with_what_it_costs(cli: Cli, talk: Talk, session: Session, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "Be brief."})
    (first,) = talk("Why?")
    write_files(work, {".nexus3/NEXUS.md": "Be terse."})
    session.reload()
    (second,) = talk("And then?")

    outcome = cli("diff", first, second)

    lines = outcome.out.splitlines()
    assert f"First difference: section 'Project Configuration' ({work}/.nexus3/NEXUS.md) has changed" in lines
    assert [line for line in lines if line.startswith("  ")][1:3] == ["  - Be brief.", "  + Be terse."]
    found = facts(cli("diff", first, second, "--json"))
    assert found["first"]["source"]["uri"] == f"{work}/.nexus3/NEXUS.md"
    assert found["stable"] + found["again"] + found["new"] == found["b"]["tokens"]
    assert min(found["stable"], found["again"], found["new"]) > 0


def test_a_line_that_is_added_replaces_none(cli: Cli, talk: Talk, session: Session, work: Path) -> None:
    write_files(work, {"NEXUS.md": "Be kind.\n"})
    talk("One")
    write_files(work, {"NEXUS.md": "Be kind.\n\nBe brief.\n"})
    session.reload()
    talk("Two")

    lines = cli("diff", "auth-bug").out.splitlines()

    place = next(index for index, line in enumerate(lines) if re.fullmatch(r"  line \d+:", line))
    assert lines[place + 1] == "  + Be brief."
    assert not any(line.startswith("  - ") for line in lines)


def test_another_tool_is_blamed(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("Why?")
    other = nexus.session("auth-bug", tools=[*TOOLS, {"name": "grep", "input_schema": {"type": "object"}}])
    other.ask("And then?")
    other.record(says("So.", name="msg_2"))

    found = facts(cli("diff", "auth-bug", "--json"))

    assert (found["first"]["kind"], found["first"]["name"], found["first"]["fate"]) == ("tool", "grep", "new")


def test_the_name_of_a_session_alone_compares_its_last_two_calls(cli: Cli, talk: Talk) -> None:
    _, second, third = talk("One?", "Two?", "Three?")

    found = facts(cli("diff", "auth-bug", "--json"))

    assert (found["a"]["name"], found["b"]["name"]) == (f"step {second}", f"step {third}")


def test_two_sessions_are_compared_as_they_would_be_sent_now(cli: Cli, talk: Talk, session: Session) -> None:
    talk("Why?")
    session.fork("other")

    assert "They are the same." in cli("diff", "auth-bug", "other").out


def test_a_request_that_names_no_model_is_told_apart_from_one_that_does(cli: Cli, work: Path) -> None:
    said = '[{"role": "user", "content": "Why?"}]'
    write_files(work, {"a.json": f'{{"model": "gpt-4o", "messages": {said}}}', "b.json": said})

    lines = cli("diff", "a.json", "b.json").out.splitlines()

    assert "First difference: the model is gpt-4o in A and not named in B" in lines
    assert lines[-1].split()[:3] == ["changed", "no", "model"]


@pytest.mark.parametrize("kind", ["model:", ""])
def test_every_model_has_a_cache_of_its_own(cli: Cli, kind: str) -> None:
    outcome = cli("diff", f"{kind}gpt-4o", f"{kind}claude-sonnet-4")

    assert "First difference: the model is gpt-4o in A and claude-sonnet-4 in B" in outcome.out
    assert ", 0 are as in A" in outcome.out


@pytest.mark.parametrize("form", ["--json", *BUILT_IN_NAMES])
def test_a_file_that_assemble_wrote_is_the_same_as_what_was_sent(form: str, cli: Cli, work: Path, talk: Talk) -> None:
    (step,) = talk("Why?")
    arguments = ["--json"] if form == "--json" else ["--api", form]
    write_files(work, {"request.json": cli("session", "replay", step, *arguments).out})

    forth, back = cli("diff", "request.json", step), cli("diff", step, "request.json", "--exit-code")

    assert "They are the same." in forth.out
    assert (back.code, "They are the same." in back.out) == (0, True)


@pytest.mark.parametrize("form", BUILT_IN_NAMES)
def test_files_of_two_apis_say_the_same_with_tools_in_them(form: str, cli: Cli, work: Path, session: Session) -> None:
    session.ask("Why?")
    step = session.record(calls("t1", text="I look."))
    session.record(step.tool_calls[0].result("nothing"))
    session.next()
    last = session.record(says("It expires.", name="msg_2")).id
    bodies = {name: cli("session", "replay", last, "--api", name).out for name in ("anthropic", form)}
    write_files(work, {f"{name}.json": body for name, body in bodies.items()})

    assert "They are the same." in cli("diff", f"{form}.json", "anthropic.json").out


def test_a_file_goes_before_a_session_of_the_same_name(cli: Cli, work: Path, talk: Talk) -> None:
    talk("Why?")
    body = {"model": "m", "system": "Be kind.", "messages": [{"role": "user", "content": "Hi."}]}
    write_files(work, {"auth-bug": json.dumps(body)})

    found = facts(cli("diff", "auth-bug", "session:auth-bug", "--json"))

    assert (found["a"]["name"], found["b"]["name"]) == ("file auth-bug", "session auth-bug")
    assert found["first"]["kind"] == "model"


def test_two_files_are_compared_without_any_ledger(cli: Cli, work: Path, nexus_home: Path) -> None:
    bodies = [{"messages": [{"role": "user", "content": text}]} for text in ("Hi.", "Ho.")]
    write_files(work, {f"{place}.json": json.dumps(body) for place, body in enumerate(bodies)})

    outcome = cli("diff", "0.json", "1.json")

    assert "First difference: message 0 (user) has changed" in outcome.out
    assert outcome.out.splitlines()[4:6] == ["  - Hi.", "  + Ho."]
    assert list(nexus_home.iterdir()) == []


def test_a_model_beside_a_session_is_what_it_would_be_sent_in_it(cli: Cli, talk: Talk) -> None:
    talk("Why?", "And now?")

    outcome = cli("diff", "auth-bug", "model:gpt-4o")
    other_way = cli("diff", "model:gpt-4o", "auth-bug")
    told = json.loads(cli("diff", "auth-bug", "model:gpt-4o", "--json").out)

    assert (told["a"]["messages"], told["b"]["messages"]) == (5, 5)
    assert [change["kind"] for change in told["changes"]] == ["model"]
    assert "the model is claude-sonnet-4 in A and gpt-4o in B" in outcome.out
    assert "B: model gpt-4o in session auth-bug (5 messages," in outcome.out
    assert "A: model gpt-4o in session auth-bug (5 messages," in other_way.out


def test_a_model_that_nobody_knows_is_told(cli: Cli, talk: Talk) -> None:
    talk("Why?")

    outcome = cli("diff", "auth-bug", "model:gtp-4o")

    assert outcome.code == 0
    assert outcome.err.count("[unknown-model]") == 1
    assert "did you mean 'gpt-4o'" in outcome.err


def test_with_check_a_difference_is_a_finding(cli: Cli, work: Path) -> None:
    bodies = [{"messages": [{"role": "user", "content": text}]} for text in ("Hi.", "Ho.")]
    write_files(work, {f"{place}.json": json.dumps(body) for place, body in enumerate(bodies)})

    assert cli("diff", "0.json", "1.json").code == 0
    assert cli("diff", "0.json", "1.json", "--exit-code").code == 1
    assert cli("diff", "0.json", "0.json", "--exit-code").code == 0


# ---- the same, made again -------------------------------------------------------------------------------------------


@pytest.fixture
def install_everywhere(install_plugin: InstallPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstallPlugin:
    """Install a plugin that other processes find as well."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site-packages"))
    return install_plugin


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.acceptance("Y-05")
def test_a_directory_is_the_same_each_time_in_every_process(cli: Cli, install_everywhere: InstallPlugin) -> None:
    install_everywhere("motto", STEADY)

    outcome = cli("diff", "--exit-code")

    assert (outcome.code, outcome.out.splitlines()[-1]) == (0, "They are the same.")


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(("name", "source"), sampled([("ticker", COUNTING), ("names", UNORDERED)], one_in=2))
def test_a_plugin_whose_section_is_never_the_same_is_named(
    name: str, source: str, cli: Cli, install_everywhere: InstallPlugin
) -> None:
    install_everywhere(name, source)

    outcome = cli("diff", "--exit-code")

    assert outcome.code == 1
    assert f"First difference: section '{name.title()}' (plugin:{name}) has changed" in outcome.out


@pytest.mark.usefixtures("no_waiting")
def test_what_was_sent_once_is_the_same_for_ever(cli: Cli, talk: Talk) -> None:
    (step,) = talk("Why?")

    assert cli("diff", step, "--exit-code").code == 0


def test_another_process_that_fails_is_an_error(
    cli: Cli, install_everywhere: InstallPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXUS_STRICT", "1")
    install_everywhere("shy", "import os\nassert 'PYTHONHASHSEED' not in os.environ\n" + STEADY)
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)

    outcome = cli("diff", "--exit-code")

    assert (outcome.code, outcome.out) == (3, "")
    assert "another process (PYTHONHASHSEED=1) could not do it" in outcome.err


# ---- what is wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 2, "there is nothing to compare\n  nexus diff A B"),
        (["auth-bog", "x"], 2, "unknown file, session, step or model 'auth-bog'\n  did you mean 'auth-bug'?"),
        (["gpt4o", "x"], 2, "unknown file, session, step or model 'gpt4o'\n  did you mean 'gpt-4o'?"),
        (["session:auth-bog", "auth-bug"], 2, "unknown session 'auth-bog'\n  did you mean 'auth-bug'?"),
        (["step:x", "auth-bug"], 2, "there is no step 'x'"),
        (["auth-bug"], 2, "there is only one call in session auth-bug"),
        (["model:gpt-4o"], 2, "there is nothing to compare model gpt-4o with"),
        (["file:missing.json", "auth-bug"], 2, "no such file\n  at missing.json"),
        (["broken.json", "auth-bug"], 3, "Line 1, Column 3: Unterminated string"),
        (["own.json", "auth-bug"], 3, "not as `nexus assemble --json` writes it\n  at own.json"),
        (["words.json", "auth-bug"], 3, "words.json"),
        (["own.json", "--exit-code"], 2, "a file is the same each time it is read"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_what_to_do(
    *, arguments: list[str], code: int, told: str, cli: Cli, work: Path, talk: Talk
) -> None:
    talk("Why?")
    own = {"schema": 1, "system_prompt": "", "placements": []}
    write_files(work, {"broken.json": '{ "a', "own.json": json.dumps(own), "words.json": '"words"'})

    outcome = cli("diff", *arguments)

    assert (outcome.code, outcome.out) == (code, "")
    assert told in outcome.err


def test_the_help_ends_with_two_examples(cli: Cli) -> None:
    examples = cli("diff", "--help").out.partition("Examples:")[2].strip().splitlines()

    assert [line.split()[:2] for line in examples] == [["nexus", "diff"]] * 2


# ---- the how-to -----------------------------------------------------------------------------------------------------

HOW_TO = ROOT / "docs/how-to/find-out-why-the-cache-broke.md"


def written(command: str) -> list[str]:
    """What the how-to says that a command prints, names and numbers aside."""
    text = HOW_TO.read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```text\n\$ {command}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return plain(block, Path("/home/you/shop"))


def plain(text: str, directory: Path) -> list[str]:
    named = re.sub(r"\b01[0-9A-Z]{24}\b", "STEP", text.replace(str(directory), "HERE"))
    named = re.sub(r"\[[0-9A-Z]{6}\]$", "[STEP]", named, flags=re.MULTILINE)
    return re.sub(r"\d[\d,]*", "N", re.sub(" {2,}", "  ", named)).splitlines()


def test_the_how_to_shows_what_a_changed_file_does(cli: Cli, session: Session, work: Path) -> None:
    text = "# The shop\n\nWe use Python {} and PostgreSQL.\nRun `make check` before you finish.\n"
    write_files(work, {".nexus3/NEXUS.md": text.format("3.12")})
    session.ask("Why does login fail?")
    step = session.record(calls("t1", text="I look at it."))
    session.record(step.tool_calls[0].result("def login(request): ...\n" * 400))
    session.next()
    session.record(says("The session expires.", name="msg_2"))
    session.ask("And without a cookie?")
    session.record(says("Then there is none.", name="msg_3"))
    write_files(work, {".nexus3/NEXUS.md": text.format("3.13")})
    session.reload()
    session.ask("So what do we do?")
    session.record(says("We renew it.", name="msg_4"))

    assert plain(cli("diff", "auth-bug").out, work) == written("nexus diff auth-bug")
    shown = plain(cli("session", "show", "auth-bug", "-n", "1").out, work)
    assert [line.partition(" · cache: ")[2] for line in shown[-2:]] == [
        line.partition(" · cache: ")[2] for line in written("nexus session show auth-bug -n 1")[-2:]
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("no_waiting")
def test_the_how_to_shows_what_a_restless_plugin_does(cli: Cli, install_everywhere: InstallPlugin, work: Path) -> None:
    install_everywhere("ticker", COUNTING)

    assert plain(cli("diff", "--exit-code").out, work) == written("nexus diff --exit-code")


# ---- the cache's lifetime -------------------------------------------------------------------------------------------


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A function that lets so many minutes pass, on a clock that stands otherwise."""
    now = [1_800_000_000_000_000_000]
    monkeypatch.setattr("time.time_ns", lambda: now[0])

    def wait(minutes: float) -> None:
        now[0] += int(minutes * 60_000_000_000)

    return wait


def test_a_call_after_a_long_pause_finds_an_expired_cache(cli: Cli, talk: Talk, pause: Callable[[float], None]) -> None:
    talk("Why?")
    pause(9.5)
    talk("And then?")

    outcome = cli("diff", "auth-bug")
    compared = facts(cli("diff", "auth-bug", "--json"))

    assert "are not cached (expired after 5 min, the previous call was 9 min earlier)" in " ".join(outcome.out.split())
    assert compared["expired"] == "expired after 5 min, the previous call was 9 min earlier"
    assert compared["cost"]["cache_read"] == 0


def test_a_call_after_a_short_pause_may_use_the_cache(cli: Cli, talk: Talk, pause: Callable[[float], None]) -> None:
    talk("Why?")
    pause(4.5)
    talk("And then?")

    assert facts(cli("diff", "auth-bug", "--json"))["expired"] is None


def test_the_context_of_a_session_says_that_its_cache_has_expired(
    cli: Cli, talk: Talk, pause: Callable[[float], None]
) -> None:
    talk("Why?")
    pause(4.5)
    assert facts(cli("context", "--session", "auth-bug", "--json"))["cache_expired_after"] is None
    pause(1)

    outcome = cli("context", "--session", "auth-bug")

    assert "The provider's cache of the last call has expired, after 5 min" in outcome.out
    assert facts(cli("context", "--session", "auth-bug", "--json"))["cache_expired_after"] == 5
