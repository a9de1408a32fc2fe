"""Ranked search in every kind of ledger, and the index that a ledger keeps for it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from nexus_core import LedgerError, UnknownNameError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.memory import step_scores
from nexus_core.memory.search import SearchResult, StepQuery, map_facet_steps, search_steps
from nexus_core.memory.step_index import TURNS_PER_NUMBER, IndexedStep
from nexus_core.types.ledger import NewStep, Step
from nexus_core.types.messages import Message, Role, Text, ToolCall, ToolResult
from nexus_plugins.ledger import _step_index
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite, step_index
from tests.ledger.backends import Backend, add, said, tell

BO = {"event": {"source": "bo"}}
"""The data of a message that Bo sent."""
LONG_NAME = "".join(sha256(bytes([number])).hexdigest() for number in range(256))
"""A name that does not fit into the index of a table, even compressed."""


def spoken(role: Role, text: str, *, name: str = "", created: int | None = None) -> NewStep:
    return NewStep(kind="turn", closes=True, messages=(Message(role, text, name=name),), created=created)


def texts(result: SearchResult) -> list[str]:
    return [hit.text for hit in result.hits]


def ask(ledger: StoreLedger, text: str, **filters: object) -> list[str]:
    return texts(search_steps(ledger, StepQuery(text=text, **filters)))  # type: ignore[arg-type]


def bake(ledger: StoreLedger) -> None:
    """Three sessions in two directories."""
    ledger.create("bread", data={"cwd": "/kitchen/oven"})
    tell(ledger, "bread", "We changed the rye dough again.", "It rises overnight in the cellar.")
    ledger.create("auth", data={"cwd": "/srv/app"})
    tell(
        ledger,
        "auth",
        "Where is the session checked?",
        "In the auth middleware, src/auth/middleware.py.",
        "The login loops because of the cookie.",
    )
    ledger.create("soup", data={"cwd": "/kitchen"})
    tell(ledger, "soup", "Onions first.")


def test_search_ranks_turns_by_the_words_of_a_question(ledger: StoreLedger) -> None:
    bake(ledger)

    result = search_steps(ledger, StepQuery(text="Where did we change the auth middlewares?"))

    assert result.hits[0].text == "In the auth middleware, src/auth/middleware.py."
    assert (result.hits[0].session, result.hits[0].role, result.hits[0].kind) == ("auth", "user", "turn")
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
    assert result.sessions[0] == "auth"
    assert 0 < result.coverage <= 1


def test_search_finds_the_answer_after_the_words_of_a_question(ledger: StoreLedger) -> None:
    ledger.create("s")
    tell(ledger, "s", "What is the port of the staging database?", "5433, since Monday.", "Good.", "a", "b", "c", "d")

    assert "5433, since Monday." in ask(ledger, "staging database port")[:2]


def test_search_finds_what_was_appended_since_the_last_search(ledger: StoreLedger) -> None:
    bake(ledger)
    assert ask(ledger, "turnip") == []

    tell(ledger, "soup", "A turnip, too.")

    assert ask(ledger, "turnips")[0] == "A turnip, too."


def test_search_stays_in_a_session_or_a_directory(ledger: StoreLedger) -> None:
    bake(ledger)
    tell(ledger, "auth", "The dough of the tests.")

    assert len(ask(ledger, "dough")) > len(ask(ledger, "dough", session="auth"))
    assert "We changed the rye dough again." not in ask(ledger, "dough", session="auth")
    assert ask(ledger, "dough", directory="/kitchen")[0] == "We changed the rye dough again."
    assert "The dough of the tests." not in ask(ledger, "dough", directory="/kitchen")
    assert ask(ledger, "dough", directory="/kitch") == []
    assert ask(ledger, "dough", exclude_sessions=("bread",))[0] == "The dough of the tests."
    assert "It rises overnight in the cellar." not in ask(ledger, "dough", exclude_sessions=("bread",))
    assert ask(ledger, "dough", exclude_sessions=("missing",)) == ask(ledger, "dough")
    with pytest.raises(UnknownNameError, match="did you mean 'bread'"):
        ask(ledger, "dough", session="bred")


def test_search_filters_by_role_kind_and_time(ledger: StoreLedger) -> None:
    ledger.create("s")
    for step in (
        spoken("user", "flour of May", created=1_000_000_000_000),
        spoken("assistant", "flour of June", created=1_100_000_000_000),
        said("flour of July", kind="input", closes=False),
    ):
        add(ledger, "s", step)

    assert ask(ledger, "flour", roles=("assistant",)) == ["flour of June"]
    assert ask(ledger, "flour", kinds=("input",)) == ["flour of July"]
    assert ask(ledger, "flour", until=1_050_000_000_000) == ["flour of May"]
    assert set(ask(ledger, "flour", since=1_050_000_000_000)) == {"flour of June", "flour of July"}
    assert len(ask(ledger, "flour", limit=2)) == 2
    with pytest.raises(UnknownNameError, match="role"):
        ask(ledger, "flour", roles=("asistant",))


def run_release(ledger: StoreLedger) -> None:
    """A session that mentions a release, and runs the command for it."""
    command = Message("assistant", [ToolCall("1", "Bash", {"command": "make release"})])
    ledger.create("work", data={"cwd": "/srv/app"})
    add(ledger, "work", spoken("user", "The release notes and the release command are in the release handbook."))
    for number in range(8):
        add(ledger, "work", spoken("user", f"Filler number {number}."))
    add(ledger, "work", NewStep(kind="turn", closes=True, messages=(command,)))


def test_search_prefers_the_step_with_the_fact_that_a_question_asks_for(ledger: StoreLedger) -> None:
    run_release(ledger)

    result = search_steps(ledger, StepQuery(text="which command did we run for the release?"))

    assert result.hits[0].role == "assistant"


def test_search_filters_by_facet(ledger: StoreLedger) -> None:
    run_release(ledger)

    [only] = ask(ledger, "release", facets=("command",))

    assert "make release" in only
    assert ask(ledger, "release", facets=("error",)) == []
    with pytest.raises(UnknownNameError):
        ask(ledger, "release", facets=("colour",))


def test_steps_with_a_facet_are_read_once_and_the_newest_first(ledger: StoreLedger) -> None:
    ledger.create("s", data={"cwd": "/srv/app"})
    add(ledger, "s", spoken("user", "Always use tabs in the parser.", created=1_000_000))
    cache: dict[IndexedStep, str] = {}
    read: list[str] = []

    def read_text(step: Step) -> str:
        read.append(step.id)
        return step.messages[0].content

    def list_rules(**scope: object) -> list[str]:
        query = StepQuery(text="", facets=("rule",), **scope)  # type: ignore[arg-type]
        return [text for text, _ in map_facet_steps(ledger, query, read_text, cache)]

    assert list_rules() == ["Always use tabs in the parser."]
    add(ledger, "s", spoken("user", "Never push on Fridays, please.", created=2_000_000))
    add(ledger, "s", spoken("user", "What is new?", created=3_000_000))

    assert list_rules() == ["Never push on Fridays, please.", "Always use tabs in the parser."]
    assert len(read) == 2
    assert list_rules(directory="/srv/other") == list_rules(exclude_sessions=("s",)) == []


def test_forgotten_step_is_not_among_those_with_a_facet(ledger: StoreLedger) -> None:
    ledger.create("s")
    step = add(ledger, "s", spoken("user", "Always use tabs in the parser."))
    cache: dict[IndexedStep, str] = {}
    query = StepQuery(text="", facets=("rule",))
    assert map_facet_steps(ledger, query, lambda step: step.id, cache) == [(step.id, "s")]

    forget(ledger, "s", step.id)

    assert map_facet_steps(ledger, query, lambda step: step.id, cache) == []


def test_search_shows_what_a_session_repeats_once(ledger: StoreLedger) -> None:
    repeated = "Extract the constants to the top of the file, then run the tests."
    ledger.create("s")
    tell(ledger, "s", *[repeated] * 3, "The constants are at the top of app.js now.")
    ledger.create("other")
    tell(ledger, "other", repeated)

    found = ask(ledger, "where did the constants go?", limit=3)

    assert found.count(repeated) == 2
    assert "The constants are at the top of app.js now." in found


def test_search_looks_into_tool_calls_and_results(ledger: StoreLedger) -> None:
    ledger.create("s")
    call = Message("assistant", (ToolCall(id="1", name="bash", arguments={"command": "pytest tests/test_cart.py"}),))
    result = Message("tool", (ToolResult(call_id="1", name="bash", parts=(Text("ZeroDivisionError: tax rate"),)),))
    for message in (call, result):
        add(ledger, "s", NewStep(kind="turn", closes=True, messages=(message,)))

    assert ask(ledger, "zero division error")[0] == "ZeroDivisionError: tax rate"
    assert "tests/test_cart.py" in ask(ledger, "which test of the cart was run?")[0]


def test_search_leaves_out_tool_results_that_are_only_near_a_match(ledger: StoreLedger) -> None:
    ledger.create("s")
    result = Message("tool", (ToolResult(call_id="1", name="edit", parts=(Text("The file was updated."),)),))
    for message in (Message("user", "Mend the cart."), result, Message("assistant", "The rate is a decimal now.")):
        add(ledger, "s", NewStep(kind="turn", closes=True, messages=(message,)))

    assert sorted(ask(ledger, "what about the cart?")) == ["Mend the cart.", "The rate is a decimal now."]


def test_search_finds_each_step_of_a_fork_once(ledger: StoreLedger) -> None:
    ledger.create("main")
    steps = tell(ledger, "main", "The turnip is boiled.", "Salt it.")
    ledger.create("fork", head=steps[0].id, origin="main")
    tell(ledger, "fork", "Fry the turnip.")

    assert sorted(text for text in ask(ledger, "turnip") if "turnip" in text) == [
        "Fry the turnip.",
        "The turnip is boiled.",
    ]
    assert set(ask(ledger, "turnip", session="fork")) == {"Fry the turnip.", "The turnip is boiled."}
    assert "Fry the turnip." not in ask(ledger, "turnip", session="main")


def test_search_names_what_occurs_nowhere_in_the_scope(ledger: StoreLedger) -> None:
    bake(ledger)

    result = search_steps(ledger, StepQuery(text="What does Kevin say about src/auth/middleware.py and getUserName?"))

    assert set(result.unknown_names) == {"Kevin", "getUserName"}


def test_search_prefers_the_speaker_and_the_month_of_a_question(ledger: StoreLedger) -> None:
    ledger.create("may")
    for name in ("Bob", "Ann", "Cid"):
        add(ledger, "may", spoken("user", f"I painted tree {name[0]}.", name=name, created=1_683_000_000_000))
    ledger.create("july")
    add(ledger, "july", spoken("user", "I painted lake D.", name="Dan", created=1_689_000_000_000))

    assert ask(ledger, "What did Ann paint?")[0] == "I painted tree A."
    assert ask(ledger, "What was painted in July 2023?")[0] == "I painted lake D."


@pytest.mark.parametrize("name", ["x\0y", "\0", "\ud800", "é\udfff", LONG_NAME], ids=range(5))
def test_search_finds_what_a_speaker_of_any_name_said(ledger: StoreLedger, name: str) -> None:
    ledger.create("s")
    add(ledger, "s", spoken("user", "The deploy of the osprey.", name=name))

    assert ask(ledger, "deploy osprey") == ["The deploy of the osprey."]
    get_index = getattr(ledger.store, "step_index", None)
    assert get_index is None or get_index().catch_up(lambda _: None)  # otherwise each search reads all steps


def test_search_prefers_the_speaker_of_a_question_with_the_word_of_a_label(ledger: StoreLedger) -> None:
    ledger.create("plan")
    tell(ledger, "plan", "Deadline: Friday.")
    ledger.create("may")
    for _ in range(6):
        for name in ("Ann", "Bob"):
            add(ledger, "may", spoken("user", f"I painted tree {name[0]}.", name=name, created=1_683_000_000_000))

    found = ask(ledger, "What did Ann paint before the deadline?")

    assert next(text for text in found if "painted" in text) == "I painted tree A."


def test_search_knows_a_speaker_and_a_label_among_the_turns_of_others(ledger: StoreLedger) -> None:
    ledger.create("may")
    for name in ("Bob", "Ann"):
        add(ledger, "may", spoken("user", f"I painted tree {name[0]}.", name=name, created=1_683_000_000_000))
    tell(ledger, "may", "Deadline: Friday.")

    result = search_steps(ledger, StepQuery(text="ann deadline sculpture", roles=("assistant",)))

    assert result.unknown_words == ("sculpture",)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "flour " * 200_000,
        'flour AND OR NOT NEAR(a b, 3) "unclosed * ^ : - ( ) {words}:x + rowid:1',
        "a:b c-d e*f \"g' h; drop table steps; --",
        "flour\x00\x01\x1b[31m\ud800",
        "'\\ % _ | & ! <-> :*",
        "f",
        "what is it?",
        "小麦粉",
        "😀 🧵",
        " \n\t",
    ],
)
def test_search_answers_any_text(ledger: StoreLedger, text: str) -> None:
    bake(ledger)
    tell(ledger, "bread", "flour of wheat", "小麦粉を買う")

    found = ask(ledger, text)

    if "flour" in text:
        assert found[0] == "flour of wheat"
    if "小" in text:
        assert found[0] == "小麦粉を買う"


def test_search_forgets_a_deleted_session(ledger: StoreLedger) -> None:
    bake(ledger)
    assert ask(ledger, "dough")

    ledger.delete("bread")

    assert ask(ledger, "dough") == []
    assert search_steps(ledger, StepQuery(text="auth middleware")).hits
    assert list(ledger.verify()) == []


def forget(ledger: StoreLedger, label: str, *names: str) -> None:
    record = ledger.session(label)
    assert record is not None
    step = NewStep(kind="forget", closes=True, data={"forgotten_steps": list(names)})
    ledger.append(label, step, after=record.tip)


@pytest.mark.parametrize("is_indexed", [True, False])
def test_search_does_not_find_a_forgotten_step(ledger: StoreLedger, is_indexed: bool) -> None:
    bake(ledger)
    [hit] = [each for each in search_steps(ledger, StepQuery(text="cookie login")).hits if "cookie" in each.text]
    before = ask(ledger, "auth middleware")
    if not is_indexed and hasattr(ledger.store, "step_index"):
        ledger.store.step_index().drop()

    forget(ledger, "auth", hit.step)

    assert ask(ledger, "cookie") == []
    assert search_steps(ledger, StepQuery(text="what about Cookie?")).unknown_names == ("Cookie",)
    assert set(ask(ledger, "auth middleware")) == set(before) - {hit.text}
    assert ledger.step(hit.step) is not None


def test_search_does_not_find_a_step_that_a_fork_forgot(ledger: StoreLedger) -> None:
    bake(ledger)
    parent = ledger.session("auth")
    assert parent is not None
    ledger.create("other", head=parent.tip, origin="auth")
    [hit] = [each for each in search_steps(ledger, StepQuery(text="cookie login")).hits if "cookie" in each.text]

    forget(ledger, "other", hit.step)
    if hasattr(ledger.store, "step_index"):
        ledger.store.step_index().drop()

    assert ask(ledger, "cookie") == []


def test_a_forgotten_step_can_be_deleted(ledger: StoreLedger) -> None:
    bake(ledger)
    [hit] = [each for each in search_steps(ledger, StepQuery(text="cookie login")).hits if "cookie" in each.text]
    forget(ledger, "auth", hit.step)
    assert ask(ledger, "cookie") == []

    ledger.delete("auth")

    assert ask(ledger, "auth middleware") == []
    assert ask(ledger, "rye dough")[0] == "We changed the rye dough again."


def forget_all(ledger: StoreLedger, label: str) -> None:
    record = ledger.session(label)
    assert record is not None
    assert record.tip is not None
    forget(ledger, label, *(step.id for step in ledger.thread(record.tip)))


def find_turnips(ledger: StoreLedger, directory: str) -> list[str]:
    """The turns about turnips, without those beside them."""
    return sorted(text for text in ask(ledger, "turnips", directory=directory, limit=50) if "turnip" in text.lower())


@pytest.mark.parametrize("is_erased", [True, False])
def test_session_whose_turns_are_all_forgotten_goes_on_in_its_directory(ledger: StoreLedger, is_erased: bool) -> None:
    bake(ledger)
    ask(ledger, "dough")
    forget_all(ledger, "soup")
    if is_erased:
        ledger.delete("bread")
    assert ask(ledger, "onions") == []

    tell(ledger, "soup", "A turnip, too.")
    assert find_turnips(ledger, "/kitchen") == ["A turnip, too."]
    ledger.create("other", data={"cwd": "/garden"}, steps=[spoken("user", "Turnips grow.")])

    assert find_turnips(ledger, "/kitchen") == ["A turnip, too."]
    assert find_turnips(ledger, "/garden") == ["Turnips grow."]
    assert find_turnips(ledger, "/kitchen/oven") == []


def test_sessions_of_a_directory_go_on_in_it_after_some_were_forgotten(ledger: StoreLedger) -> None:
    names = [f"cake-{number}" for number in range(20)]  # more than a block has
    for name in names:
        ledger.create(name, data={"cwd": "/srv/cakes"})
        tell(ledger, name, f"Bake {name} with turnips.")
    assert len(find_turnips(ledger, "/srv/cakes")) == 20
    for name in names[:17]:
        forget_all(ledger, name)
    assert len(find_turnips(ledger, "/srv/cakes")) == 3

    for name in names:
        tell(ledger, name, f"Decorate {name} with turnips.")
    ledger.create("other", data={"cwd": "/srv/pies"}, steps=[spoken("user", "Pies of turnips.")])

    assert len(find_turnips(ledger, "/srv/cakes")) == 23
    assert find_turnips(ledger, "/srv/pies") == ["Pies of turnips."]
    for name in names:
        forget_all(ledger, name)
    assert find_turnips(ledger, "/srv/cakes") == []
    tell(ledger, names[0], "A late turnip.")
    assert find_turnips(ledger, "/srv/cakes") == ["A late turnip."]


def test_fork_of_a_deleted_session_goes_on_in_its_directory_after_all_was_forgotten(ledger: StoreLedger) -> None:
    ledger.create("main", data={"cwd": "/kitchen"})
    steps = tell(ledger, "main", "The turnip is boiled.")
    ledger.create("fork", head=steps[0].id, origin="main", data={"cwd": "/kitchen"})
    ask(ledger, "turnip")
    ledger.delete("main")
    forget_all(ledger, "fork")
    assert ask(ledger, "turnip") == []

    tell(ledger, "fork", "Fry the turnip.")

    [hit] = search_steps(ledger, StepQuery(text="turnip", directory="/kitchen")).hits
    assert (hit.session, hit.text) == ("fork", "Fry the turnip.")


def test_directory_of_which_all_is_erased_is_not_in_the_file(sqlite: SqliteLedger, path: Path) -> None:
    bake(sqlite)
    ask(sqlite, "dough")
    forget_all(sqlite, "auth")
    tell(sqlite, "auth", "The login has a turnip.")
    assert ask(sqlite, "turnip", directory="/srv/app")

    sqlite.delete("auth")

    assert b"/srv/app" not in read_files(path)


def test_session_that_moves_to_an_older_directory_has_one_number_more(sqlite: SqliteLedger, path: Path) -> None:
    bake(sqlite)
    ask(sqlite, "dough")
    sqlite.update("soup", data={"cwd": "/kitchen/oven"})

    for number in range(3):
        tell(sqlite, "soup", f"Turnip {number}.")
        assert f"Turnip {number}." in ask(sqlite, "turnip", directory="/kitchen/oven")

    with closing(sqlite3.connect(path)) as file:
        assert file.execute("select count(*) from search_branches").fetchone() == (4,)


def test_search_names_the_fork_that_keeps_steps_of_a_deleted_session(ledger: StoreLedger) -> None:
    ledger.create("main")
    steps = tell(ledger, "main", "The turnip is boiled.", "The onion is fried.")
    ledger.create("fork", head=steps[0].id, origin="main")
    tell(ledger, "fork", "Salt it.")
    assert ask(ledger, "turnip")

    ledger.delete("main")

    hits = search_steps(ledger, StepQuery(text="turnip")).hits
    assert (hits[0].session, hits[0].text) == ("fork", "The turnip is boiled.")
    assert ask(ledger, "onion") == []


def test_search_names_a_fork_that_has_the_step_of_a_deleted_session(ledger: StoreLedger) -> None:
    ledger.create("main")
    first, second = tell(ledger, "main", "The onion is fried.", "The turnip is boiled.")
    for name, step in (("short", first), ("long", second)):
        ledger.create(name, head=step.id, origin="main")
        time.sleep(0.002)  # sessions of the same millisecond are in no order
    assert ask(ledger, "turnip")

    ledger.delete("main")

    assert search_steps(ledger, StepQuery(text="turnip", limit=1)).hits[0].session == "long"


def rebuild_index(ledger: StoreLedger) -> None:
    if hasattr(ledger.store, "step_index"):
        ledger.store.step_index().drop()


def test_new_index_has_what_forks_keep_of_a_deleted_session_in_their_directory(ledger: StoreLedger) -> None:
    ledger.create("main", data={"cwd": "/kitchen"})
    first, _ = tell(ledger, "main", "The turnip is boiled.", "The onion is fried.")
    ledger.create("fork", head=first.id, origin="main", data={"cwd": "/kitchen"})
    [salted] = tell(ledger, "fork", "Salt it.")
    time.sleep(0.002)  # sessions of the same millisecond are in no order
    ledger.create("child", head=salted.id, origin="fork", data={"cwd": "/garden"})
    tell(ledger, "fork", "Cook it.")
    tell(ledger, "child", "Sow it.")
    ledger.delete("main")
    rebuild_index(ledger)

    [hit] = search_steps(ledger, StepQuery(text="turnip", directory="/kitchen", limit=1)).hits

    assert (hit.session, hit.text) == ("fork", "The turnip is boiled.")
    assert find_turnips(ledger, "/garden") == []
    ledger.delete("fork")
    rebuild_index(ledger)
    [hit] = search_steps(ledger, StepQuery(text="turnip", directory="/garden", limit=1)).hits
    assert (hit.session, hit.text) == ("child", "The turnip is boiled.")
    assert find_turnips(ledger, "/kitchen") == []


def test_new_index_of_many_forks_has_shared_turns_in_the_directory_of_one_that_has_all(ledger: StoreLedger) -> None:
    ledger.create("main", data={"cwd": "/kitchen"})
    steps = tell(ledger, "main", *(f"Turnip {number}." for number in range(20)), "The end.")
    for number, step in enumerate(steps[:-1]):
        ledger.create(f"fork-{number}", head=step.id, origin="main", data={"cwd": f"/garden/{number}"})
        tell(ledger, f"fork-{number}", f"Water bed {number}.")
        time.sleep(0.002)  # sessions of the same millisecond are in no order
    ledger.delete("main")
    rebuild_index(ledger)

    assert len(find_turnips(ledger, "/garden/19")) == 20
    assert find_turnips(ledger, "/garden/7") == find_turnips(ledger, "/kitchen") == []
    assert ask(ledger, "water", directory="/garden/7")[0] == "Water bed 7."
    assert {hit.session for hit in search_steps(ledger, StepQuery(text="turnip 7", limit=1)).hits} == {"fork-19"}


@pytest.mark.parametrize("is_indexed", [True, False])
def test_search_names_the_fork_that_goes_on_in_the_branch_of_another_session(
    ledger: StoreLedger, is_indexed: bool
) -> None:
    ledger.create("main", data={"cwd": "/kitchen"})
    [first] = tell(ledger, "main", "The turnip is boiled.")
    if is_indexed:
        assert ask(ledger, "turnip")
    time.sleep(0.002)  # sessions of the same millisecond are in no order
    ledger.create("fork", head=first.id, origin="main", data={"cwd": "/garden"})
    tell(ledger, "fork", "Sow beans with care.")

    for said_by_main in ("", "Peel potatoes."):
        if said_by_main:
            tell(ledger, "main", said_by_main)
            assert search_steps(ledger, StepQuery(text="potatoes")).hits[0].session == "main"
        [hit] = search_steps(ledger, StepQuery(text="beans", directory="/garden", limit=1)).hits
        assert (hit.session, hit.text) == ("fork", "Sow beans with care.")


def list_places(ledger: StoreLedger, question: str, *directories: str) -> dict[str, list[tuple[str, str]]]:
    """What a search finds in each directory, and in which session."""
    queries = {name: StepQuery(text=question, directory=name) for name in directories}
    return {
        name: sorted((hit.session, hit.text) for hit in search_steps(ledger, query).hits)
        for name, query in queries.items()
    }


def test_steps_of_a_session_stay_in_its_directory_when_a_fork_goes_on_after_them(ledger: StoreLedger) -> None:
    ledger.create("main", data={"cwd": "/kitchen"})
    [*_, last] = tell(ledger, "main", "The turnip is boiled.", "The turnip is salted.")
    time.sleep(0.002)  # sessions of the same millisecond are in no order
    ledger.create("fork", head=last.id, origin="main", data={"cwd": "/garden"})
    tell(ledger, "fork", "The turnip is sown.")

    found = list_places(ledger, "turnip", "/kitchen", "/garden")

    assert found == {
        "/kitchen": [("main", "The turnip is boiled."), ("main", "The turnip is salted.")],
        "/garden": [("fork", "The turnip is sown.")],
    }
    rebuild_index(ledger)
    assert list_places(ledger, "turnip", "/kitchen", "/garden") == found


@pytest.mark.parametrize("is_searched_between", [True, False])
def test_steps_of_a_session_stay_in_the_directory_in_which_they_were_made(
    ledger: StoreLedger, is_searched_between: bool
) -> None:
    moves: list[list[str]] = []
    directory, last = "/kitchen", ""
    ledger.create("main", data={"cwd": directory})
    for text, there in (("boiled", "/kitchen"), ("sown", "/garden"), ("salted", "/kitchen")):
        if there != directory:
            moves.append([last, directory])
            directory = there
            ledger.update("main", data={"cwd": directory, "moves": moves})
        [step] = tell(ledger, "main", f"The turnip is {text}.")
        last = step.id
        if is_searched_between:
            assert ask(ledger, "turnip")
    expected = {
        "/kitchen": [("main", "The turnip is boiled."), ("main", "The turnip is salted.")],
        "/garden": [("main", "The turnip is sown.")],
    }

    assert list_places(ledger, "turnip", "/kitchen", "/garden") == expected
    rebuild_index(ledger)
    assert list_places(ledger, "turnip", "/kitchen", "/garden") == expected


def test_steps_that_only_a_fork_has_stay_in_the_directory_in_which_they_were_made(ledger: StoreLedger) -> None:
    ledger.create("main", data={"cwd": "/kitchen"})
    first, last = tell(ledger, "main", "The turnip is boiled.", "The turnip is salted.")
    time.sleep(0.002)  # sessions of the same millisecond are in no order
    for name, step in (("early", first), ("late", last)):
        ledger.create(name, head=step.id, origin="main", data={"cwd": "/garden", "moves": [[step.id, "/kitchen"]]})
        tell(ledger, name, f"The turnip is sown {name}.")
        time.sleep(0.002)
    ledger.delete("main")
    rebuild_index(ledger)

    found = list_places(ledger, "turnip", "/kitchen", "/garden")

    assert [text for _, text in found["/kitchen"]] == ["The turnip is boiled.", "The turnip is salted."]
    assert [text for _, text in found["/garden"]] == ["The turnip is sown early.", "The turnip is sown late."]


def test_steps_before_a_move_that_is_not_known_any_more_are_in_no_directory(ledger: StoreLedger) -> None:
    ledger.create("main", data={"cwd": "/kitchen"})
    [step] = tell(ledger, "main", "The turnip is boiled.")
    for moves in ([["01BX5ZZKBKACTAV9WEVGEMMVS0", "/kitchen"]], [[step.id, ""]]):
        ledger.update("main", data={"cwd": "/garden", "moves": moves})
        rebuild_index(ledger)

        assert list_places(ledger, "turnip", "/garden", "/kitchen") == {"/garden": [], "/kitchen": []}
    assert ask(ledger, "turnip")


def test_search_of_one_directory_leaves_out_those_below(ledger: StoreLedger) -> None:
    for name in ("/srv/app", "/srv/app/lib"):
        ledger.create(name.replace("/", "-"), data={"cwd": name})
        tell(ledger, name.replace("/", "-"), f"The turnip of {name}.")

    assert len(ask(ledger, "turnip", directory="/srv/app")) == 2
    assert ask(ledger, "turnip", directory="/srv/app", below=False) == ["The turnip of /srv/app."]


def test_search_after_another_program_appended_finds_that(backend: Backend) -> None:
    if backend.name == "memory":
        pytest.skip("a ledger in memory has one program")
    first, second = backend.open(), backend.open()
    first.create("s")
    tell(first, "s", "one turnip")
    assert ask(first, "turnip") == ask(second, "turnip") == ["one turnip"]

    tell(second, "s", "two onions")
    third = backend.open()

    assert ask(third, "onion")[0] == "two onions"
    for each in (first, second, third):
        each.close()


def test_search_in_an_empty_ledger_finds_nothing(backend: Backend) -> None:
    ledger = backend.open()

    result = search_steps(ledger, StepQuery(text="anything, Bob?"))

    assert (result.hits, result.coverage, result.turns) == ((), 0.0, 0)
    ledger.close()


def test_copy_with_an_index_is_searched_like_the_original(sqlite: SqliteLedger, tmp_path: Path) -> None:
    bake(sqlite)
    before = ask(sqlite, "auth middleware")
    copy = open_sqlite(f"sqlite:///{tmp_path / 'copy.db'}")

    sqlite.repair(copy)

    assert ask(copy, "auth middleware") == before
    assert list(copy.verify()) == []
    copy.close()


def test_deletion_leaves_no_word_in_the_file(sqlite: SqliteLedger, path: Path) -> None:
    bake(sqlite)
    add(sqlite, "bread", spoken("user", "My cat is fond of turnips.", name="Wilhelmina"))
    assert ask(sqlite, "overnight cellar")
    assert b"overnight" in read_files(path)

    sqlite.delete("bread")

    left = read_files(path).lower()
    assert not [word for word in (b"overnight", b"cellar", b"wilhelmina", b"/kitchen/oven") if word in left]
    assert ask(sqlite, "onions") == ["Onions first."]


def read_files(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))


def corrupt(path: Path, *statements: str) -> None:
    file = sqlite3.connect(path)
    for statement in statements:
        file.execute(statement)
    file.commit()
    file.close()


@pytest.mark.parametrize(
    "damage",
    [
        ("update search_words_data set block = x'00ff00ff00ff00ff'",),
        ("delete from search_words_data",),
        ("drop table search_steps",),
        ("update search_state set value = 'x' where name = 'last'",),
        ("update search_state set value = '0.0' where name = 'version'",),
        ("delete from search_branches",),
        ("delete from search_blocks",),
        ("delete from search_steps",),
        ("delete from search_state where name = 'turns'",),
    ],
)
def test_damaged_index_is_built_anew_and_loses_no_step(sqlite: SqliteLedger, path: Path, damage: Sequence[str]) -> None:
    bake(sqlite)
    before = ask(sqlite, "auth middleware")
    sqlite.close()
    corrupt(path, *damage)

    ledger = open_sqlite(f"sqlite:///{path}")

    assert list(ledger.verify()) == []
    tell(ledger, "soup", "A turnip, too.")
    assert ask(ledger, "turnip")[0] == "A turnip, too."
    assert ask(ledger, "auth middleware") == before
    ledger.close()


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(
    "damage", ["delete from search_blocks", "delete from search_branches", "delete from search_steps"]
)
def test_index_without_rows_is_built_anew_once(
    sqlite: SqliteLedger, path: Path, caplog: pytest.LogCaptureFixture, damage: str, *, is_open: bool
) -> None:
    bake(sqlite)
    before = ask(sqlite, "auth middleware")
    if not is_open:
        sqlite.close()
    corrupt(path, damage)

    with closing(sqlite if is_open else open_sqlite(f"sqlite:///{path}")) as ledger:
        found = [ask(ledger, "auth middleware") for _ in range(3)]

    assert found == [before] * 3
    assert caplog.text.count("is damaged and is built anew") == 1


def test_index_of_which_steps_are_erased_is_not_damaged(ledger: StoreLedger, caplog: pytest.LogCaptureFixture) -> None:
    bake(ledger)
    assert ask(ledger, "dough")

    ledger.delete("bread")
    ledger.delete("auth")
    assert ask(ledger, "onions") == ["Onions first."]
    ledger.delete("soup")
    assert ask(ledger, "onions") == []
    ledger.create("new")
    tell(ledger, "new", "A turnip, too.")

    assert ask(ledger, "turnip") == ["A turnip, too."]
    assert "damaged" not in caplog.text


def test_index_of_many_steps_has_one_segment(sqlite: SqliteLedger, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_step_index, "STEPS_PER_BATCH", 2)
    monkeypatch.setattr(_step_index, "_MERGED_STEPS", 40)
    sqlite.create("s")
    tell(sqlite, "s", *(f"Recipe {number} with rye" for number in range(40)))

    assert len(ask(sqlite, "rye", limit=50)) == 40

    file = sqlite3.connect(path)
    assert file.execute("select count(distinct segid) from search_words_idx").fetchone() == (1,)
    file.close()


def test_search_finds_the_newest_places_of_a_frequent_word(
    ledger: StoreLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_scores, "PLACES_BY_TURNS", ())
    monkeypatch.setattr(step_scores, "MAX_POSTINGS", 3)
    for name in ("a", "b", "c"):
        ledger.create(name, data={"cwd": f"/{name}"})
        tell(ledger, name, *(f"Bread {name}{number}" for number in range(3)), *["Water."] * 8)
        time.sleep(0.002)  # sessions of the same millisecond are in no order

    everywhere, there = ask(ledger, "bread"), ask(ledger, "bread", directory="/a")

    assert {text for text in everywhere if "Bread" in text} == {"Bread c0", "Bread c1", "Bread c2"}
    assert {text for text in there if "Bread" in text} == {"Bread a0", "Bread a1", "Bread a2"}


def test_search_in_a_directory_has_what_is_below_but_not_its_namesakes(ledger: StoreLedger) -> None:
    for directory in ("/srv/app", "/srv/app/api", "/srv/app-2", "/srv/apple", "/srv"):
        ledger.create(directory, data={"cwd": directory})
        tell(ledger, directory, f"Bread of {directory}")

    assert sorted(ask(ledger, "bread", directory="/srv/app")) == ["Bread of /srv/app", "Bread of /srv/app/api"]
    assert len(ask(ledger, "bread", directory="/")) == 5


@pytest.mark.parametrize("name", ["w\udcff", "w\0", "w\ud83d\ude00", "wörk", "w\n'\"\\%"])
def test_search_in_a_directory_of_any_name(ledger: StoreLedger, name: str, caplog: pytest.LogCaptureFixture) -> None:
    for directory in (f"/srv/{name}", f"/srv/{name}/api", f"/srv/{name}-2", f"/srv/{name}z", "/srv/w", "/srv/w?"):
        ledger.create(ascii(directory), data={"cwd": directory})
        tell(ledger, ascii(directory), f"Bread of {directory!a}")

    assert sorted(ask(ledger, "bread", directory=f"/srv/{name}")) == sorted(
        f"Bread of {directory!a}" for directory in (f"/srv/{name}", f"/srv/{name}/api")
    )
    assert len(ask(ledger, "bread", directory="/srv")) == 6
    assert ask(ledger, "bread", directory=f"/srv/{name}/missing") == []
    assert caplog.records == []


def test_error_of_the_search_itself_builds_the_index_once_and_is_reported(
    sqlite: SqliteLedger, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bake(sqlite)
    ask(sqlite, "dough")
    sqlite.close()
    monkeypatch.setattr(step_index, "_FACTS", "select nonsense from search_steps where 1 in (?)")

    for _ in range(2):  # each time as another program
        ledger = open_sqlite(f"sqlite:///{path}")
        with pytest.raises(LedgerError, match=r"fails with a new index, too .*no such column: nonsense"):
            ask(ledger, "dough")
        ledger.close()

    [record] = caplog.records
    assert record.message.startswith("the search index is damaged and is built anew (")


def test_index_leaves_new_steps_of_the_session_that_asks_for_later(sqlite: SqliteLedger, path: Path) -> None:
    bake(sqlite)
    ask(sqlite, "dough")

    tell(sqlite, "auth", "The auth dough is ours.")
    own = ask(sqlite, "dough", exclude_sessions=("auth",))
    indexed = count_indexed_steps(path)
    tell(sqlite, "soup", "No dough in the soup.")
    others = ask(sqlite, "dough", exclude_sessions=("auth",))

    assert "The auth dough is ours." not in own + others
    assert indexed < count_indexed_steps(path)
    assert "No dough in the soup." in others
    assert "The auth dough is ours." in ask(sqlite, "dough")


def test_deletion_of_steps_that_are_not_indexed_yet_keeps_the_index(sqlite: SqliteLedger, path: Path) -> None:
    bake(sqlite)
    ask(sqlite, "dough")
    indexed = count_indexed_steps(path)
    tell(sqlite, "auth", "The auth dough is ours.")
    ask(sqlite, "dough", exclude_sessions=("auth",))

    sqlite.delete("auth")

    assert 0 < count_indexed_steps(path) < indexed
    assert [text for text in ask(sqlite, "auth dough") if "auth" in text] == []


def test_fork_finds_what_the_session_it_came_from_said_since(sqlite: SqliteLedger) -> None:
    bake(sqlite)
    record = sqlite.session("auth")
    assert record is not None
    assert record.tip is not None
    ask(sqlite, "dough")
    sqlite.create("fork", head=record.tip, origin="auth")
    tell(sqlite, "fork", "We go on elsewhere.")

    tell(sqlite, "auth", "The cookie is made of dough.")

    assert "The cookie is made of dough." in ask(sqlite, "dough", exclude_sessions=("fork",))


def count_indexed_steps(path: Path) -> int:
    file = sqlite3.connect(path)
    ((count,),) = file.execute("select count(*) from search_steps").fetchall()
    file.close()
    return int(count)


def test_search_finds_turns_of_a_session_with_more_than_one_number(sqlite: SqliteLedger) -> None:
    count = TURNS_PER_NUMBER + 3
    sqlite.create("long", steps=[spoken("user", f"Tree {number} of the orchard.") for number in range(count)])

    found = ask(sqlite, f"tree {count - 1}", limit=2)

    assert found[0] == f"Tree {count - 1} of the orchard."
    assert ask(sqlite, "tree 7", session="long", limit=1) == ["Tree 7 of the orchard."]


def test_snippet_of_a_tool_call_has_its_arguments(ledger: StoreLedger) -> None:
    call = ToolCall(id="1", name="bash", arguments={"command": "make bread", "password": "hunter2-secret"})
    ledger.create("calls", steps=[NewStep(kind="turn", closes=True, messages=(Message("assistant", (call,)),))])

    [text] = ask(ledger, "which command did bash run?")

    assert text.startswith('bash {"command": "make bread"')
    assert "hunter2" not in text


def test_question_and_answer_are_read_with_each_other(ledger: StoreLedger) -> None:
    asked = NewStep(kind="input", messages=(Message("user", "Who keeps the keys?"),))
    replied = NewStep(kind="reply", closes=True, messages=(Message("assistant", "Ada, in the drawer."),))
    ledger.create("talk", steps=[asked, replied])

    [answer] = search_steps(ledger, StepQuery(text="drawer", with_answers=True, limit=1)).hits
    [question] = search_steps(ledger, StepQuery(text="keys", with_answers=True, limit=1)).hits

    assert (answer.text, answer.question, answer.answer) == ("Ada, in the drawer.", "Who keeps the keys?", "")
    assert (question.text, question.question, question.answer) == ("Who keeps the keys?", "", "Ada, in the drawer.")
    assert (answer.beside, question.beside) == (question.step, answer.step)


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Which oven bakes the rye bread overnight?", ["The oven in the cellar bakes the rye bread overnight."]),
        ("Which oven explains quantum physics of distant galaxies?", []),  # one word of six
        ("Does Zenobia bake the rye bread overnight?", []),  # nobody of that name
    ],
)
def test_only_evident_hits_are_those_from_the_evident_score_on(
    ledger: StoreLedger, question: str, found: list[str]
) -> None:
    texts = ["The oven in the cellar bakes the rye bread overnight.", "The bread is sold in the street."]
    for number, text in enumerate([*texts, *(f"Flour comes on day {day}." for day in range(20))]):
        ledger.create(f"talk-{number}", steps=[spoken("user", text)])

    every = search_steps(ledger, StepQuery(text=question))
    evident = search_steps(ledger, StepQuery(text=question, only_evident=True))

    assert [hit.text for hit in evident.hits] == found
    assert [hit for hit in every.hits if every.is_evident and hit.score >= every.evident_score] == [*evident.hits]
    assert every.hits, "others are found, too"


def test_search_keeps_to_the_sender(ledger: StoreLedger) -> None:
    for number in range(3):
        step = NewStep(kind="input", messages=(Message("user", "The dough is Bo's."),), data=BO)
        ledger.create(f"bo-{number}", steps=[step])
    ledger.create("ada", steps=[NewStep(kind="input", messages=(Message("user", "The dough is mine."),))])

    assert ask(ledger, "dough", sender="", limit=1) == ["The dough is mine."]
    assert ask(ledger, "dough", sender="bo", limit=1) == ["The dough is Bo's."]


def test_damaged_index_prevents_no_deletion(sqlite: SqliteLedger, path: Path) -> None:
    bake(sqlite)
    ask(sqlite, "dough")
    sqlite.close()
    corrupt(path, "update search_words_data set block = x'00ff00ff00ff00ff'")

    ledger = open_sqlite(f"sqlite:///{path}")
    ledger.delete("bread")

    assert ask(ledger, "dough") == []
    assert ask(ledger, "onions") == ["Onions first."]
    ledger.close()


def test_program_without_an_index_may_append_and_delete(
    sqlite: SqliteLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older version knows nothing of the index: what it erases must not be found either."""
    bake(sqlite)
    assert ask(sqlite, "dough")
    sqlite.close()
    older = open_sqlite(f"sqlite:///{path}")
    monkeypatch.setattr(older.store.step_index(), "forget", lambda _names: None)
    tell(older, "soup", "A turnip, too.")
    older.delete("bread")
    older.close()

    ledger = open_sqlite(f"sqlite:///{path}")

    assert ask(ledger, "dough") == []
    assert ask(ledger, "turnip")[0] == "A turnip, too."
    ledger.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_ledger_that_cannot_be_written_is_searched(sqlite: SqliteLedger, path: Path) -> None:
    bake(sqlite)
    sqlite.close()
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert ask(open_sqlite(f"sqlite:///{path}"), "dough")[0] == "We changed the rye dough again."
    finally:
        path.parent.chmod(0o700)


@pytest.mark.parametrize(("method", "name"), [("write", "SQLITE_READONLY"), ("write_without_sync", "SQLITE_CANTOPEN")])
def test_ledger_whose_index_cannot_be_written_is_searched(
    sqlite: SqliteLedger, monkeypatch: pytest.MonkeyPatch, method: str, name: str
) -> None:
    bake(sqlite)

    def refuse(_work: object, **_options: object) -> None:
        error = sqlite3.OperationalError("attempt to write a readonly database")
        error.sqlite_errorname = name
        from nexus_plugins.ledger.sqlite.database import build_sqlite_error

        raise build_sqlite_error(error, sqlite.store.path)

    monkeypatch.setattr(sqlite.store, method, refuse)

    assert ask(sqlite, "dough")[0] == "We changed the rye dough again."


def test_index_of_a_session_follows_its_directory(sqlite: SqliteLedger) -> None:
    bake(sqlite)
    assert ask(sqlite, "onions", directory="/kitchen")
    sqlite.update("soup", data={"cwd": "/garden"})
    tell(sqlite, "soup", "A turnip, too.")

    assert ask(sqlite, "turnip", directory="/garden")[0] == "A turnip, too."
    assert "A turnip, too." not in ask(sqlite, "turnip onions", directory="/kitchen")
    assert "A turnip, too." in ask(sqlite, "turnip onions", session="soup")


def test_index_has_no_copy_of_the_text(sqlite: SqliteLedger, path: Path) -> None:
    bake(sqlite)
    before = read_files(path).count(b"In the auth middleware")
    ask(sqlite, "auth")
    sqlite.close()

    assert read_files(path).count(b"In the auth middleware") <= before
    file = sqlite3.connect(path)
    assert "search_words_content" not in [name for (name,) in file.execute("select name from sqlite_master")]
    file.close()


def test_search_after_another_in_the_same_second_finds_what_was_said_between(tmp_path: Path) -> None:
    with (
        closing(open_sqlite(f"sqlite:///{tmp_path / 'one.db'}")) as one,
        closing(open_sqlite(f"sqlite:///{tmp_path / 'one.db'}")) as other,
    ):
        one.create("first", data={"cwd": "/bakery"}, steps=[spoken("user", "The dough rests.")])
        query = StepQuery(text="dough", directory="/bakery")
        assert len(search_steps(one, query).hits) == 1
        other.create("second", data={"cwd": "/bakery"}, steps=[spoken("user", "The dough rises.")])
        assert len(search_steps(one, query).hits) == 2  # of another connection
        one.create("third", data={"cwd": "/bakery/cellar"}, steps=[spoken("user", "The dough sinks.")])
        assert len(search_steps(one, query).hits) == 3  # of its own
