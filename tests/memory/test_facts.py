"""Facts are told from calls of tools and from texts, carried from one compaction to the next, and ranked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.memory.facts import extract_facts, facts_to_json, find_facts, merge_facts, rank_facts, read_facts
from nexus_core.types.compaction import FACT_CLASSES, Fact, ThreadMessage
from nexus_core.types.messages import Message, Reasoning, ToolCall, ToolResult
from tests.compaction.threads import answered, called, said


def found(messages: list[ThreadMessage], kind: str) -> dict[str, str]:
    """Facts of a class with their notes."""
    return {fact.text: fact.note for fact in extract_facts(messages) if fact.kind == kind}


@pytest.mark.parametrize(
    ("tool", "arguments", "note"),
    [
        ("read_file", {"path": "src/a.py"}, "read"),
        ("Read", {"file_path": "src/a.py"}, "read"),
        ("view", {"filename": "src/a.py"}, "read"),
        ("grep", {"pattern": "x", "path": "src/a.py"}, "read"),
        ("Edit", {"file_path": "src/a.py", "old_string": "lib/b.py", "new_string": "lib/c.py"}, "changed"),
        ("write_file", {"path": "src/a.py", "content": "see lib/b.py"}, "changed"),
        ("str_replace_based_edit_tool", {"command": "view", "path": "src/a.py"}, "read"),
        ("str_replace_based_edit_tool", {"command": "create", "path": "src/a.py"}, "changed"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/a.py\n@@\n"}, "changed"),
        ("apply_patch", {"patch": "--- a/src/a.py\n+++ b/src/a.py\n"}, "changed"),
        ("delete_files", {"paths": ["src/a.py"]}, "changed"),
        ("lint", {"target_file": "src/a.py"}, ""),
    ],
)
def test_a_call_tells_which_file_it_reads_or_changes(tool: str, arguments: dict[str, Any], note: str) -> None:
    assert found(called(tool, arguments), "path") == {"src/a.py": note}


def test_a_patch_that_is_no_json_tells_its_files() -> None:
    call = ToolCall("c", "apply_patch", raw="*** Begin Patch\n*** Delete File: src/old.py\n*** Add File: src/new.py\n")

    assert found([ThreadMessage(Message("assistant", (call,)), "s1")], "path") == {
        "src/old.py": "changed",
        "src/new.py": "changed",
    }


@pytest.mark.parametrize(
    ("result", "is_error", "note"),
    [
        ("3 passed\nexit code: 0", False, "exit 0"),
        ("Exit code 1\nboom", True, "exit 1"),
        ("Process exited with code 127", False, "exit 127"),
        ("Process exited with status code 5", False, "exit 5"),
        ("The program exited with 6.", False, "exit 6"),
        ('{"output": "x", "metadata": {"exit_code": 2}}', False, "exit 2"),
        ("curl: the server answered with status code 404", False, ""),
        ("if [ ! -f config ]; then exit 1; fi", False, ""),
        ("returned non-zero exit status 3.", True, "exit 3"),
        ("x" * 10_000 + "\n[exit code: 4]", False, "exit 4"),
        ("boom", True, "failed"),
        ("fine", False, ""),
    ],
)
def test_a_command_is_kept_with_how_it_ended(result: str, is_error: bool, note: str) -> None:
    messages = called("bash", {"command": "pytest -q"}, result, is_error=is_error)

    assert found(messages, "command") == {"pytest -q": note}


@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("shell", ["bash", "-lc", "make test"]),
        ("exec_command", "\n  make test\n\n"),
        ("run_terminal_cmd", ["make", "test"]),
    ],
)
def test_a_command_may_be_a_list_or_a_script(tool: str, command: object) -> None:
    assert found(called(tool, {"command": command}), "command") == {"make test": ""}


COMMIT = """git add -A && git commit -m "$(cat <<'EOF'
Return an error from setTheme

The caller shows it.
EOF
)" && git push"""


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("make test\n\nrm -r build", "make test\nrm -r build"),
        (
            COMMIT,
            (
                "git add -A && git commit -m \"$(cat <<'EOF'\nReturn an error from setTheme "
                '[… 22 characters left out …]\nEOF\n)" && git push'
            ),
        ),
        ("cat > a.txt <<EOF\none line\nEOF", "cat > a.txt <<EOF\none line\nEOF"),
        ("cat > a.txt <<EOF\nfirst\nnever closed", "cat > a.txt <<EOF\nfirst [… 13 characters left out …]"),
        ("echo " + "x" * 595, "echo " + "x" * 395 + " [… 200 characters left out …]"),
    ],
)
def test_a_command_is_kept_whole_but_for_long_texts_in_it(command: str, kept: str) -> None:
    assert list(found(called("bash", {"command": command}), "command")) == [kept]


def test_a_command_that_is_run_again_ends_as_it_did_last() -> None:
    messages = [
        *called("bash", {"command": "make"}, "exit code: 2", position=2),
        *called("bash", {"command": "make"}, "exit code: 0", position=4),
    ]

    (fact,) = (fact for fact in extract_facts(messages) if fact.kind == "command")

    assert (fact.note, fact.uses, fact.step, fact.position) == ("exit 0", 2, "s4", 4)


def test_a_command_that_failed_once_is_not_said_to_have_failed_when_it_ran_again() -> None:
    first = called("bash", {"command": "make"}, "boom", position=2, is_error=True)
    again = called("bash", {"command": "make"}, "built", position=4)

    assert found(first, "command") == {"make": "failed"}
    assert found([*first, *again], "command") == {"make": ""}
    assert [
        fact.note for fact in merge_facts(extract_facts(first), extract_facts(again)) if fact.kind == "command"
    ] == [""]


def test_results_belong_to_their_calls_in_whatever_order_they_come() -> None:
    calls = Message("assistant", (ToolCall("a", "bash", {"cmd": "one"}), ToolCall("b", "bash", {"cmd": "two"})))
    results = Message("tool", (ToolResult("b", "exit code: 2"), ToolResult("a", "exit code: 1")))

    messages = [ThreadMessage(calls, "s1"), ThreadMessage(results, "s2", position=1)]

    assert found(messages, "command") == {"one": "exit 1", "two": "exit 2"}


def test_a_file_that_was_changed_stays_so_when_it_is_read_again() -> None:
    messages = [*called("edit", {"path": "a.py"}, position=2), *called("read", {"path": "a.py"}, position=4)]

    (fact,) = extract_facts(messages)

    assert (fact.note, fact.uses, fact.step) == ("changed", 2, "s4")


def test_what_people_say_is_read_too() -> None:
    messages = [
        said("Release 2.4.0 by 2026-03-01, see https://acme.example/plan and ABC-77"),
        answered("I keep `parse_rule` under 20 ms; ValueError: no."),
    ]

    facts = {(fact.kind, fact.text): fact.step for fact in extract_facts(messages)}

    assert facts == {
        ("url", "https://acme.example/plan"): "s1",
        ("identifier", "2.4.0"): "s1",
        ("identifier", "ABC-77"): "s1",
        ("number", "2026-03-01"): "s1",
        ("identifier", "parse_rule"): "s2",
        ("number", "20 ms"): "s2",
        ("decision", "I keep `parse_rule` under 20 ms; ValueError: no."): "s2",
    }


def test_thoughts_and_instructions_are_not_read() -> None:
    messages = [
        ThreadMessage(Message("assistant", (Reasoning(text="maybe src/a.py"),)), "s1"),
        ThreadMessage(Message("system", "never open src/b.py"), "s2"),
    ]

    assert extract_facts(messages) == ()


SOURCE = 'throw new Error("no theme");\nError: Variable reference not found\nthis.showError(\n12: error: "x"'


@pytest.mark.parametrize(
    ("tool", "arguments", "errors"),
    [
        ("read_file", {"path": "a.ts"}, []),
        ("bash", {"command": "cat a.ts | head -5"}, []),
        ("bash", {"command": "cd src && grep -n Error a.ts"}, []),
        ("bash", {"command": "git diff"}, []),
        ("bash", {"command": "npm test"}, ["Error: Variable reference not found"]),
        ("bash", {"command": "cat a.ts && npm test"}, ["Error: Variable reference not found"]),
    ],
)
def test_source_code_that_a_tool_printed_is_not_an_error(
    tool: str, arguments: dict[str, Any], errors: list[str]
) -> None:
    assert list(found(called(tool, arguments, SOURCE), "error")) == errors


def test_a_failed_call_says_why_in_its_first_line() -> None:
    failed = called("edit", {"path": "a.py"}, "String to replace not in a.py\nif x:", is_error=True)

    assert list(found(failed, "error")) == ["String to replace not in a.py"]
    assert found(called("bash", {"command": "grep x a"}, "Command exited with code 1", is_error=True), "error") == {}


def test_errors_after_the_first_of_an_output_count_less() -> None:
    output = "\n".join(f"a.ts({number},1): error TS2345: no" for number in range(8))
    other = called("bash", {"command": "ls"}, position=4)

    ranked = merge_facts((), extract_facts([*called("bash", {"command": "tsc"}, output), *other]))

    assert [fact.text[5:6] for fact in ranked if fact.kind == "error"] == list("01234567")
    assert [fact.note for fact in ranked if fact.kind == "error"] == [""] * 5 + ["following"] * 3


def test_a_refused_call_is_a_decision_with_its_reason() -> None:
    refusal = (
        "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nUse vis."
    )

    assert found(called("Edit", {"file_path": "a.ts"}, refusal, is_error=True), "decision") == {
        "The user refused Edit a.ts: Use vis.": "rejected"
    }


def test_details_do_not_displace_decisions() -> None:
    numbers = [Fact("number", f"{number} ms", step="s", position=500) for number in range(400)]
    decision = Fact("decision", "We use vis.", step="s", position=0)

    carried = merge_facts([decision], numbers, limit=80)

    assert decision in carried
    assert len(carried) == 11


def test_uses_are_counted_by_step() -> None:
    messages = [said("src/a.py src/a.py"), answered("src/a.py"), answered("again src/a.py", "s9", 9)]

    (fact,) = extract_facts(messages)

    assert (fact.uses, fact.step, fact.position) == (3, "s9", 9)


def test_facts_of_two_compactions_become_one() -> None:
    first = merge_facts((), extract_facts([said("src/a.py and ABC-1")]))

    both = merge_facts(first, extract_facts(called("edit", {"path": "src/a.py"}, position=20)))

    assert [(fact.text, fact.note, fact.uses, fact.step) for fact in both] == [
        ("src/a.py", "changed", 2, "s20"),
        ("ABC-1", "", 1, "s1"),
    ]


def test_no_more_facts_are_carried_than_wanted() -> None:
    facts = [Fact("path", f"src/{number}.py", step="s", position=number) for number in range(100)]

    assert [fact.position for fact in merge_facts(facts[:50], facts[50:], limit=3)] == [99, 98, 97]


def test_a_fact_that_stands_in_twice_as_many_steps_is_half_as_old() -> None:
    old = Fact("path", "often.py", uses=4, position=60)  # 40 old, counts as 10
    new = Fact("path", "once.py", uses=1, position=85)  # 15 old
    newest = Fact("path", "now.py", uses=1, position=100)

    assert [fact.text for fact in rank_facts([new, old, newest])] == ["now.py", "often.py", "once.py"]


def test_what_was_changed_or_failed_counts_more_than_what_was_only_seen() -> None:
    facts = [
        Fact("path", "read.py", "read", position=90),
        Fact("path", "changed.py", "changed", position=85),
        Fact("command", "make", "exit 2", position=84),
        Fact("command", "ls", "exit 0", position=89),
        Fact("path", "now.py", position=100),
    ]

    assert [fact.text for fact in rank_facts(facts)] == ["now.py", "changed.py", "make", "read.py", "ls"]


FACTS = st.builds(
    Fact,
    st.sampled_from(FACT_CLASSES),
    st.text("abc/.", min_size=1, max_size=4),
    st.sampled_from(["", "read", "changed", "exit 1"]),
    st.sampled_from(["s1", "s2"]),
    st.integers(1, 9),
    st.integers(0, 50),
)


@given(st.lists(FACTS, max_size=12), st.randoms())
def test_the_order_in_which_facts_are_given_does_not_show(facts: list[Fact], dice: Any) -> None:
    distinct = list({(fact.kind, fact.text): fact for fact in facts}.values())
    shuffled = list(distinct)
    dice.shuffle(shuffled)

    assert rank_facts(shuffled) == rank_facts(distinct)


@given(st.lists(FACTS, max_size=12))
def test_facts_come_back_from_json_as_they_were(facts: list[Fact]) -> None:
    assert read_facts(facts_to_json(facts)) == tuple(facts)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "x",
        [1],
        [["path"]],
        [["planet", "x", "", "s", 1, 1]],
        [["path", "x", "", "s", True, 1]],
        [["path", 1, "", "s", 1, 1]],
    ],
)
def test_what_is_no_fact_is_left_out(value: object) -> None:
    assert read_facts(value) == ()


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Edit `__init__.py`, then **setup.py** and _conf.py_.", ["__init__.py", "setup.py", "conf.py"]),
        ("at minute 0, second 0, it took 1,000 ms", ["1,000 ms"]),
        ("see https://github and https://github.com/a/b", ["https://github.com/a/b"]),
    ],
)
def test_names_numbers_and_links_are_not_torn(text: str, facts: list[str]) -> None:
    assert [each for _, each in find_facts(text)] == facts
