"""Exported pages in a real browser: nothing of a transcript runs or is loaded, the search works, phones can read it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Image, Message, Text, ToolCall, ToolResult
from tests.browser import Browser, find_chromium, open_browser
from tests.transfer.test_documents import HOSTILE, html_of

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed"),
    pytest.mark.slow,
]

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


def save_page(directory: Path, turns: list[tuple[str, str]]) -> Path:
    ledger = MemoryLedger()
    steps: list[NewStep] = []
    for question, answer in turns:
        result = base64.b64decode(DOT)
        parts = (
            Text(answer),
            ToolCall("1", "tool", {"text": answer}),
            ToolResult("1", [Text(answer), Image(data=base64.b64encode(result).decode())]),
        )
        steps.append(NewStep(kind="input", messages=(Message("user", question),)))
        steps.append(NewStep(kind="reply", messages=(Message("assistant", parts),), closes=True))
    ledger.create("s", steps=steps)
    page = directory / "page.html"
    page.write_text(html_of(ledger), encoding="utf-8")
    return page


def test_hostile_transcript_runs_and_loads_nothing(browser: Browser, tmp_path: Path) -> None:
    page = save_page(tmp_path, [(text, text) for text in HOSTILE])

    browser.open(page)

    assert [url for url in browser.requests if not url.startswith("data:image/png;base64,")] == [page.as_uri()]
    assert browser.complaints == []
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.querySelectorAll('.turn').length") == len(HOSTILE)
    assert browser.evaluate("document.querySelectorAll('main > .turn').length") == len(HOSTILE)
    assert browser.evaluate("Array.from(document.images).every((each) => each.naturalWidth === 1)") is True
    schemes = browser.evaluate("Array.from(new Set(Array.from(document.links, (each) => each.protocol)))")
    assert set(schemes) <= {"file:", "https:"}


def test_search_shows_the_turns_that_contain_it_and_unfolds_them(browser: Browser, tmp_path: Path) -> None:
    browser.open(save_page(tmp_path, [("one", "Apples"), ("two", "Pears"), ("three", "apple pie")]))

    browser.evaluate(
        "(async () => { const field = document.querySelector('#search input'); field.value = 'APPLE';"
        " field.form.requestSubmit(); })()"
    )

    hidden = browser.evaluate("Array.from(document.querySelectorAll('.turn'), (each) => each.hidden)")
    opened = browser.evaluate("Array.from(document.querySelectorAll('.turn details'), (each) => each.open)")
    assert hidden == [False, True, False]
    assert opened == [True, False, True]
    assert browser.evaluate("document.querySelector('output').textContent") == "2 of 3 turns"
    assert browser.evaluate("CSS.highlights.get('found').size") == 8
    assert browser.complaints == []


def test_page_is_readable_without_its_script(browser: Browser, tmp_path: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(save_page(tmp_path, [("question", "answer")]))
        hidden = browser.evaluate("document.querySelector('#search').hidden")
        shown = browser.evaluate("document.querySelector('main').innerText")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)

    assert hidden is True
    assert "question" in shown
    assert "answer" in shown


def test_phone_scrolls_in_one_direction_only(browser: Browser, tmp_path: Path) -> None:
    wide = "x" * 500 + "\n\n```\n" + "y" * 500 + "\n```\n\n|" + "a long cell|" * 20 + "\n|" + "-|" * 20
    browser.show(width=390, height=844)

    browser.open(save_page(tmp_path, [(wide, wide)]))
    browser.evaluate("document.querySelector('#search button').click()")

    assert browser.evaluate("document.documentElement.scrollWidth") == 390


def test_colors_follow_the_system(browser: Browser, tmp_path: Path) -> None:
    page = save_page(tmp_path, [("question", "answer")])

    colors = []
    for dark in (False, True):
        browser.show(width=800, height=600, dark=dark)
        browser.open(page)
        colors.append(browser.evaluate("getComputedStyle(document.body).backgroundColor"))

    assert colors == ["rgb(246, 247, 249)", "rgb(20, 23, 28)"]
