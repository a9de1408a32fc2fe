"""The documents lead somewhere: every page, every link, every picture; and every program in them is run."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from nexus_core.ledger.in_memory import MemoryLedger
from tests.conftest import ROOT
from tests.contract.pages import DOCS, PAGES, name_of

PICTURES = sorted(ROOT.glob("docs/explanation/**/*.svg"))
TERMINALS = sorted(ROOT.glob("docs/images/*.svg"))
GENERATED = {"hooks.md", "values.md"}
SVG = "{http://www.w3.org/2000/svg}"


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[tuple[Path, str]]:
    """Where a page leads to: the file, and the heading in it."""
    found = re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8")))
    parts = [target.partition("#") for target in found if not target.startswith("http")]
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in parts]


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def programs(name: str) -> list[str]:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_to_a_heading_in_it(page: Path) -> None:
    lost = [
        f"{path.name}#{anchor}"
        for path, anchor in links(page)
        if not path.exists() or (anchor and anchor not in anchors(path))
    ]

    assert lost == []


def test_the_index_leads_to_every_page_and_the_readme_to_the_index() -> None:
    index = ROOT / "docs/README.md"

    assert {page for page in DOCS if page != index} - {path for path, _ in links(index)} == set()
    assert index in {path for path, _ in links(ROOT / "README.md")}


def test_a_test_knows_every_page_that_has_programs_or_shows_what_is_printed() -> None:
    tests = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/*.py"))
    pages = [
        page.name for page in DOCS if re.search(r"^(```python|\$ .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]

    assert [name for name in pages if name not in GENERATED and name not in tests] == []
    assert len(pages) > 15


@pytest.mark.parametrize("picture", PICTURES, ids=name_of)
def test_a_picture_says_what_it_shows_has_its_own_ground_and_loads_nothing(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    root = ET.fromstring(text)  # noqa: S314 - our own file

    assert len(root.findtext(f"{SVG}title") or "") > 10
    assert len(root.findtext(f"{SVG}desc") or "") > 40
    shapes = [each for each in root if each.tag == f"{SVG}rect"]
    assert shapes[0].get("class") == "card"
    assert "prefers-color-scheme: dark" in text
    assert re.findall(r"href|url\(|<script|@import", text) == []


@pytest.mark.parametrize("picture", TERMINALS, ids=name_of)
def test_a_picture_of_a_terminal_loads_nothing(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")

    assert re.findall(r"href|url\((?!#)|<script|@import|@font-face|https?://(?!www.w3.org/2000/svg)", text) == []


@pytest.mark.slow
def test_the_pictures_of_terminals_show_what_commands_print() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/pictures.py", "--check"], cwd=ROOT, text=True, capture_output=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_every_picture_is_shown_with_its_description() -> None:
    shown = {
        (page.parent / path).resolve(): words
        for page in DOCS
        for words, path in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    }

    assert set(shown) == set(PICTURES)
    assert all(len(words) > 40 for words in shown.values())


def test_the_program_of_the_page_about_context_runs(
    monkeypatch: pytest.MonkeyPatch, nexus_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nexus_home.is_dir()
    monkeypatch.chdir(ROOT)
    (program,) = programs("reference/context.md")

    exec(program, {})  # noqa: S102 - our own page

    out = capsys.readouterr().out
    assert "The auth-service issues JWTs." in out
    assert f"local {ROOT}/examples/acme/company/backend/auth-service" in out


def test_the_program_of_the_page_about_assembly_runs(
    monkeypatch: pytest.MonkeyPatch, nexus_home: Path, work: Path
) -> None:
    assert nexus_home.is_dir()
    monkeypatch.chdir(work)
    (program,) = programs("reference/assembly.md")
    names: dict[str, Any] = {}

    exec(program, names)  # noqa: S102 - as above

    assert names["arguments"]["model"] == "gpt-4o"
    assert names["arguments"]["messages"][-1]["content"].endswith("\n\nWhy?")


def test_the_order_of_imports_is_told_as_it_is_held() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^```text\n(cli .*?)^```$", contributing, re.MULTILINE | re.DOTALL)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert re.split(r"\s+→\s+", told.strip()) == project["tool"]["importlinter"]["contracts"][0]["layers"]


@pytest.mark.usefixtures("nexus_home")
@pytest.mark.parametrize(("place", "sessions"), [(0, {"work", "try-again"}), (1, {"work"})])
def test_a_program_of_the_page_about_the_ledger_runs(place: int, sessions: set[str]) -> None:
    program = programs("reference/ledger.md")[place]
    names: dict[str, object] = {}

    exec(program, names)  # noqa: S102 - as above

    ledger = names["ledger"]
    assert isinstance(ledger, MemoryLedger)
    assert {record.label for record in ledger.sessions()} == sessions


def test_the_counts_on_the_page_about_tokens_are_true() -> None:
    counting, _ = programs("reference/tokens.md")
    lines = re.findall(r"^(\w+\..+?)  # (.+)$", counting, re.MULTILINE)
    names: dict[str, object] = {}

    exec(counting, names)  # noqa: S102 - as above

    assert len(lines) == 5
    for code, shown in lines:
        told = repr(eval(code, names))  # noqa: S307 - as above
        assert told.replace("cached", "exact") in (shown, f"({shown})")


def test_the_program_of_the_page_about_anthropic_and_gemini_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = programs("reference/dialects-anthropic-gemini.md")

    exec(program, {})  # noqa: S102 - as above

    assert "functionResponse" in capsys.readouterr().out


def test_the_program_of_the_page_about_findings_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = programs("reference/findings.md")
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}
    messages = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}, orphan]
    names: dict[str, object] = {"messages": messages, "request": {}}

    exec(program, names)  # noqa: S102 - as above

    assert capsys.readouterr().out.startswith("2 orphan-result ")
    assert names["request"] == {"messages": messages[:2]}


def test_the_problems_of_the_page_about_them_are_those_of_the_reference() -> None:
    page = (ROOT / "docs/how-to/fix-common-problems.md").read_text(encoding="utf-8")
    reference = {
        name: (ROOT / f"docs/reference/{name}.md").read_text(encoding="utf-8") for name in ("errors", "findings")
    }
    seen = " ".join(row.split(" | ")[0] for row in page.splitlines() if row.startswith("| "))

    errors = set(re.findall(r"`([A-Z]\w+)`", seen)) - {"NEXUS_HOME"}
    codes = set(re.findall(r"`([a-z]+-[a-z-]+)`", seen))

    assert {name for name in errors if f"| `{name}`" not in reference["errors"]} == set()
    assert {code for code in codes if f"`{code}`" not in reference["findings"]} == set()
    assert (len(errors) >= 5, len(codes) >= 9) == (True, True)


def test_what_pages_say_was_counted_is_what_the_results_say() -> None:
    results = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    langgraph = (ROOT / "docs/how-to/adopt-from-langgraph.md").read_text(encoding="utf-8")
    (lost,) = re.findall(r"LangChain trim_messages: .*\| (\d+) of 200, ", results)

    assert f"(in {lost} of\n[200 random conversations]" in langgraph


def test_what_the_readme_says_of_others_is_what_the_results_say() -> None:
    results = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (parted,) = re.findall(r"^\| LangChain trim_messages: .*\| (\d+ of 200), ", results, re.MULTILINE)
    ((cut, cuts),) = re.findall(
        r"^\| fit\(\), .*: cuts that split a call from its result \| (\d+) .* ([\d,]+) cuts,", results, re.MULTILINE
    )
    ((whole, used),) = re.findall(r"^\| .*start_on=\"human\".* \| (\d+) of 200, (\d+) %", results, re.MULTILINE)

    assert f"without its call in {parted} random conversations" in readme
    assert f"Nexus in none of {cuts} cuts" in readme
    assert (cut, whole) == ("0", "0")
    assert int(used) < 80  # "leaves more of the window unused"; Nexus and plain trim_messages use over 90 %
