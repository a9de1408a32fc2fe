"""`nexus session search`: where something was said, in all sessions or in one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.errors import UsageError
from nexus_core.types.assembled import AgentResult
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message, Reasoning, Text, ToolCall
from tests.cli.session.conftest import Talk
from tests.conftest import Cli
from tests.ledger.test_verify import tamper
from tests.session.support import calls
from tests.terminal import run_in_terminal

KEY = "sk-ant-api03-" + "A1b2" * 10


def found(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = json.loads(cli("session", "search", *arguments, "--exact", "--json").out)["found"]
    return hits


def test_each_finding_is_a_line_with_its_session_its_step_who_said_it_and_the_words(cli: Cli, talk: Talk) -> None:
    talk("bread", "How much flour?")
    talk("cake", "How much sugar?", "And how much\nflour?")

    heading, *lines = cli("session", "search", "flour", "--exact").out.splitlines()

    assert heading.split() == ["SESSION", "WHEN", "STEP", "WHO", "WORDS"]
    assert [(line.split()[0], *line.split(maxsplit=5)[4:]) for line in lines] == [
        ("cake", "assistant", "re And how much flour?"),
        ("cake", "user", "And how much flour?"),
        ("bread", "assistant", "re How much flour?"),
        ("bread", "user", "How much flour?"),
    ]
    assert cli("session", "show", "cake", "--step", lines[0].split()[3]).code == 0


def test_one_session_is_looked_through_on_demand_and_so_many_are_found(cli: Cli, talk: Talk) -> None:
    talk("bread", "one flour", "two flour", "three flour")
    talk("cake", "flour")

    assert {hit["session"] for hit in found(cli, "flour", "--session", "bread")} == {"bread"}
    assert [hit["text"] for hit in found(cli, "flour", "--session", "bread", "--limit", "3")] == [
        "re three flour",
        "three flour",
        "re two flour",
    ]
    assert cli("session", "search", "flour", "--limit", "0").code == 2
    assert "did you mean 'bread'?" in cli("session", "search", "flour", "--session", "bred").err


def test_what_forks_share_is_found_once_and_archived_sessions_are_looked_through(
    cli: Cli, talk: Talk, nexus: Nexus
) -> None:
    talk("main", "flour").fork("other")
    nexus.ledger.update("main", status="archived")
    nexus.ledger.update("other", status="archived")

    assert len(found(cli, "flour")) == 2


def test_a_long_text_is_told_around_the_words(cli: Cli, talk: Talk) -> None:
    talk("s", "a" * 9_000 + " needle " + "b" * 9_000)

    line = cli("session", "search", "needle", "--exact").out.splitlines()[-1]

    assert "…a" in line
    assert " needle b" in line
    assert line.endswith("b…")
    assert len(line) <= 120


def test_calls_results_and_thoughts_are_looked_through(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    session = talk("s")
    session.ask("Why?")
    step = session.record(calls("flour"))
    session.record(step.tool_calls[0].result("no flour here"))
    thought = Message("assistant", (Reasoning(text="flour, I think"), Text("Well.")))
    nexus.session("t").record(AgentResult(messages=[Message("user", "So?"), thought]))

    assert [(hit["role"], hit["text"]) for hit in found(cli, "flour")] == [
        ("assistant", "flour, I think"),
        ("tool", "no flour here"),
        ("assistant", "flour"),
    ]


def test_no_secret_is_told(cli: Cli, talk: Talk) -> None:
    talk("s", f"The key is {KEY}, use it.")

    outcomes = [
        cli("session", "search", text, *more) for text in ("key is", KEY) for more in ((), ("--json",), ("--exact",))
    ]

    assert all("[redacted:" in outcome.out for outcome in outcomes)
    assert not any(KEY[:20] in outcome.out for outcome in outcomes)


def test_nothing_found_is_said_and_nothing_to_look_for_is_refused(cli: Cli, talk: Talk) -> None:
    talk("s", "Why?")

    nothing, empty = cli("session", "search", "flour"), cli("session", "search", "")

    assert (nothing.code, nothing.out, nothing.err) == (0, "", "Nothing found.\n")
    assert empty.code == 2
    assert "there is nothing to look for" in empty.err


def test_a_damaged_session_is_named_and_the_others_are_looked_through(
    cli: Cli, talk: Talk, nexus: Nexus, nexus_home: Path
) -> None:
    talk("whole", "flour")
    talk("torn", "flour")
    tip = str(nexus.ledger.session("torn").tip)  # type: ignore[union-attr]
    nexus.close()
    tamper(nexus_home / "ledger.db", lambda file: file.execute("delete from steps where id = ?", (tip,)))

    outcome = cli("session", "search", "flour", "--exact")

    assert outcome.code == 3
    assert [line.split()[0] for line in outcome.out.splitlines()] == ["SESSION", "whole", "whole"]
    assert f"session 'torn' is damaged: there is no step {tip}" in outcome.err


def test_a_clock_that_was_set_back_changes_nothing_in_the_order(
    cli: Cli, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(2_000_000_000_000_000_000, 0, -86_400_000_000_000))
    monkeypatch.setattr("nexus_core.ledger.store.time.time_ns", times.__next__)
    talk("s", "first flour", "second flour")

    assert [hit["text"] for hit in found(cli, "flour", "--session", "s")] == [
        "re second flour",
        "second flour",
        "re first flour",
        "first flour",
    ]


def test_question_in_plain_words_is_answered_by_rank(cli: Cli, talk: Talk) -> None:
    talk("bread", "How much rye flour?", "And salt?")
    talk("auth", "We changed the auth middleware in src/auth.py", "Which cookies are set?")

    heading, first, *_ = cli("session", "search", "where did we change the auth middleware?").out.splitlines()

    assert heading.split() == ["SESSION", "WHEN", "STEP", "WHO", "WORDS"]
    assert first.split()[0] == "auth"
    assert "We changed the auth middleware in src/auth.py" in first
    assert cli("session", "show", "auth", "--step", first.split()[3]).code == 0


def test_ranked_json_has_the_keys_of_the_exact_one_and_the_score(cli: Cli, talk: Talk) -> None:
    talk("bread", "How much rye flour?")

    ranked = json.loads(cli("session", "search", "flours of Kevin", "--json").out)
    exact = json.loads(cli("session", "search", "flour", "--exact", "--json").out)

    assert set(ranked["found"][0]) == {*exact["found"][0], "score"}
    assert set(ranked) - set(exact) == {
        "coverage",
        "is_evident",
        "unknown_names",
        "unknown_words",
        "without_filters",
    }
    assert ranked["unknown_names"] == ["Kevin"]
    assert 0 < ranked["coverage"] < 1


@pytest.mark.parametrize("label", ["Deadline", "Release Notes"])
def test_the_words_of_a_label_are_found(cli: Cli, talk: Talk, label: str) -> None:
    talk("one", f"{label}: the report is due on Monday.", "Something else about the report.")

    [hit, *_] = json.loads(cli("session", "search", label.lower(), "--json").out)["found"]

    assert hit["text"].startswith(f"{label}: the report")


def test_filters_restrict_a_ranked_search(cli: Cli, talk: Talk, tmp_path: Path) -> None:
    talk("bread", "How much rye flour?")

    def hits(*arguments: str) -> list[tuple[str, str]]:
        found = json.loads(cli("session", "search", "flour", *arguments, "--json").out)["found"]
        return [(hit["role"], hit["kind"]) for hit in found]

    assert hits("--role", "user") == [("user", "input")]
    assert hits("--kind", "reply") == [("assistant", "reply")]
    assert len(hits("--since", "1h", "--here")) == 2
    assert hits("--facet", "error") == []
    assert hits("--until", "2001-01-01") == hits("--directory", str(tmp_path / "elsewhere")) == []


def test_facet_finds_the_step_with_that_fact(cli: Cli, talk: Talk) -> None:
    talk("bread", "Always sift the flour.", "How much flour?")

    found = json.loads(cli("session", "search", "flour", "--facet", "rule", "--json").out)["found"]

    assert [hit["text"] for hit in found] == ["Always sift the flour."]


def test_snippet_of_a_facet_is_the_changed_file(cli: Cli, work: Path) -> None:
    edit = ToolCall("c1", "edit_file", {"path": "src/flour.py", "old": "flour = 1", "new": "flour = 2 # flour, rye"})
    said = Text("The flour of the rye bread is in the flour module.")
    with Nexus(work) as nexus:
        step = NewStep(kind="turn", closes=True, messages=(Message("assistant", (said, edit)),))
        nexus.ledger.create("bread", data={"cwd": str(work)}, steps=[step])

    [found] = json.loads(cli("session", "search", "rye flour", "--facet", "file", "--json").out)["found"]

    assert found["text"] == "src/flour.py"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--since", "yesterdayish"), "'yesterdayish' is not a time"),
        (("--role", "asistant"), "did you mean 'assistant'?"),
        (("--kind", "replies"), "did you mean 'reply'?"),
        (("--facet", "errors"), "did you mean 'error'?"),
        (("--since", "2026-11-19", "--until", "2025-01-01"), "--since 2026-11-19 is after --until 2025-01-01"),
        (("--exact", "--role", "user"), "--exact looks through everything"),
    ],
)
def test_wrong_filter_is_refused_with_a_hint(cli: Cli, talk: Talk, arguments: tuple[str, ...], message: str) -> None:
    talk("bread", "How much rye flour?")

    outcome = cli("session", "search", "flour", *arguments)

    assert outcome.code == 2
    assert message in outcome.err


def test_words_that_occur_nowhere_and_a_weak_result_are_named(cli: Cli, talk: Talk) -> None:
    talk("bread", "We changed the flour.", "And the salt of the dough?")

    question = "where did we change the kubernetes ingress?"
    weak, strong = cli("session", "search", question), cli("session", "search", "flour")
    ranked = json.loads(cli("session", "search", question, "--json").out)

    share = round(100 * ranked["coverage"])
    hit = f"weak match: the best hit has {share}% of the question's words"
    assert weak.err == f"({hit}; occurs nowhere here: kubernetes, ingress)\n"
    assert (ranked["is_evident"], ranked["unknown_words"]) == (False, ["kubernetes", "ingress"])
    assert strong.err == ""


@pytest.mark.parametrize("columns", [80, 120])
def test_hit_on_a_terminal_has_a_line_of_its_own_around_the_words(nexus: Nexus, work: Path, columns: int) -> None:
    edit = {"file": "src/app.py", "edits": [{"old": "x = 1\n" * 99}, {"new": "y = 2\n" * 99 + "rye flour" + " z" * 99}]}
    said = "first " * 99 + "then the rye flour came " + "last " * 99
    messages = (Message("assistant", (Text(said),)), Message("assistant", (ToolCall("c1", "Edit", edit),)))
    steps = [NewStep(kind="turn", closes=True, messages=(each,)) for each in messages]
    nexus.ledger.create("claude-0d3a8e6f", data={"cwd": str(work)}, steps=steps)

    screen = run_in_terminal(
        ["session", "search", "rye flour"], work, columns=columns, rows=99, variables={"FORCE_COLOR": "1"}
    )

    lines = screen.text.splitlines()[3::2]
    assert len(lines) == 2
    assert all("rye flour" in line and columns - 20 < len(line) <= columns for line in lines)
    assert any(line.startswith("  Edit new: …") for line in lines)
    assert screen.written.count("\x1b[1mflour\x1b[0m") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("the",),
            "Nothing found: the text has only words such as 'the' and 'of', which are not indexed; try --exact.\n",
        ),
        (("flour", "--until", "2001-01-01"), "Nothing found with these filters; without them: 2 hits\n"),
        (("flour", "--directory", "{work}k"), "no session works in {work}k or below it; did you mean '{work}'?\n"),
    ],
)
def test_reason_for_an_empty_result_is_said(
    cli: Cli, talk: Talk, work: Path, arguments: tuple[str, ...], message: str
) -> None:
    talk("bread", "How much rye flour?")

    outcome = cli("session", "search", *(each.format(work=work) for each in arguments))

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.endswith(message.format(work=work))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": 5}, "text of a search must not be of type int"),
        ({"since": "7d"}, "since of a search must not be '7d'"),
        ({"roles": "user"}, "roles of a search must not be 'user'"),
        ({"limit": "3"}, "limit of a search must not be '3'"),
        ({"since": 2, "until": 1}, "since is after until"),
        ({"sesion": "bread"}, "did you mean 'session'?"),
    ],
)
def test_wrong_argument_of_nexus_search_is_refused(
    nexus: Nexus, talk: Talk, arguments: dict[str, Any], message: str
) -> None:
    talk("bread", "How much rye flour?")

    with pytest.raises(UsageError) as error:
        nexus.search(**{"text": "flour", **arguments})

    assert message in f"{error.value} {error.value.hint}"
