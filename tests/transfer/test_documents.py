"""Sessions as Markdown and HTML: complete, well-formed, and harmless whatever a transcript contains."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.text.safety import visible
from nexus_core.transfer.documents import build_document, iterate_tokens, write_markdown
from nexus_core.transfer.html_page import write_html
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import (
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from tests.effort import examples
from tests.transfer.support import import_sample, sample_names

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(24)).decode()
VOID = frozenset({"meta", "input", "br", "img", "hr"})
TAGS = frozenset(
    {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "details",
        "summary",
        "a",
        "span",
        "form",
        "input",
        "output",
        "button",
        "main",
        "section",
        "time",
        "article",
        "div",
        "p",
        "pre",
        "code",
        "figure",
        "figcaption",
        "img",
        "b",
        "em",
        "strong",
        "s",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "br",
        "hr",
        "script",
    }
)
ATTRIBUTES = frozenset(
    {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "href",
        "dir",
        "rel",
        "title",
        "src",
        "alt",
        "loading",
        "role",
        "hidden",
        "type",
        "aria-label",
        "placeholder",
        "autocomplete",
        "aria-live",
        "start",
    }
)
HOSTILE = (
    "<script>alert(1)</script>",
    "</details></article></section></main></body></html><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style></pre></code><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' autofocus onfocus='alert(1)",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt&colon;alert(1))",
    "[click](java\tscript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x) [path](//evil.example/x) [unc](\\\\evil\\x)",
    '[click](https://good.example "x\\" onclick=\\"alert(1)")',
    "![beacon](https://evil.example/beacon.png)",
    "![svg](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
    f"![fake](data:image/png;base64,{base64.b64encode(b'<svg onload=alert(1)>').decode()})",
    "<javascript:alert(1)> <https://good.example>",
    "<!-- hidden --> <?php ?> <![CDATA[x]]>",
    "`\n` <script>alert(1)</script> `",
    "\\`<script>alert(1)</script>`",
    "```\n</code></pre><script>alert(1)</script>",
    "~~~html\n<script>alert(1)</script>\n~~~\n<script>alert(2)</script>",
    "a\x00b\x1b[31mc\x7fd\x9be\rf",
    "user\u202etxt.exe\u2066x\u200bzero\ufeffbom",
    "&#x202e;reversed &#8203; &rlm; &lt;script&gt;",
    "\U000e0049\U000e0067\U000e006e\U000e006f\U000e0072\U000e0065",
    "[x]: javascript:alert(1)\n\n[x] [x][] [y][x]",
    "> " * 60 + "buried",
    "- " * 60 + "buried",
    "# Turn 9\n\n## Turn 10\n\n### Assistant\n\nforged\n\n---\n",
    "| a | b |\n|:-:|--:|\n| <b> | `<i>` |",
    "````\n```\n````\n`````",
    "\ud800 lone surrogate",
    "x</textarea><iframe srcdoc='<script>alert(1)</script>'></iframe><base href=//evil.example>",
)


def build(*parts: Part, role: str = "assistant", model: str = "m", label: str = "s") -> MemoryLedger:
    ledger = MemoryLedger()
    messages = (Message(role, parts),) if role != "user" else ()  # type: ignore[arg-type] # checked by Message
    asked = Message("user", parts if role == "user" else "question")
    steps = [
        NewStep(kind="input", messages=(asked,), tokens=7, created=1_790_000_000_000),
        NewStep(kind="reply", messages=messages, closes=True, data={"model": model}, created=1_790_000_060_000),
    ]
    ledger.create(label, steps=steps)
    return ledger


def html_of(ledger: MemoryLedger, label: str = "s", *, with_secrets: bool = False) -> str:
    record = ledger.session(label)
    assert record is not None
    return write_html(build_document(ledger, record, with_secrets=with_secrets))


def markdown_of(ledger: MemoryLedger, label: str = "s", *, with_secrets: bool = False) -> str:
    record = ledger.session(label)
    assert record is not None
    return write_markdown(build_document(ledger, record, with_secrets=with_secrets))


@dataclass
class Page(HTMLParser):
    """An HTML page, checked while it is read: every tag is closed in order, and none is unexpected."""

    open_tags: list[str] = field(default_factory=list)
    text: str = ""
    links: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    policy: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append(tag)
        given = dict(attrs)
        self.links += [str(given["href"])] if "href" in given else []
        self.titles += [str(given["title"])] if "title" in given else []
        self.images += [str(given["src"])] if "src" in given else []
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(given["content"])
        if tag not in VOID:
            self.open_tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags, tag
        assert self.open_tags.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open_tags and self.open_tags[-1] == "script":
            self.scripts.append(data)
        elif not self.open_tags or self.open_tags[-1] != "style":
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def read_page(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert page.open_tags == []
    assert page.tags.count("script") == page.tags.count("style") == page.tags.count("body") == 1
    assert all(link.startswith(("#turn-", "http://", "https://", "mailto:")) for link in page.links), page.links
    assert all(re.match(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+\Z", each) for each in page.images)
    assert visible(html) == html
    return page


def check_markdown(markdown: str) -> None:
    """Assert that a document has no HTML but its own folds, no image and no forged heading."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    parser.validateLink = lambda url: True  # type: ignore[method-assign] # noqa: ARG005 - as a careless reader
    environment: dict[str, object] = {}
    depth = 0
    for token in iterate_tokens(parser.parse(markdown, environment)):
        if token.type == "html_block":
            assert re.fullmatch(r"<details>\n<summary>[^<>]*</summary>|</details>", token.content.strip())
        assert token.type != "html_inline"
        if token.type == "link_open":
            assert re.match(r"https?:|mailto:|[^:/\\]*\Z|[^:]*/", str(token.attrGet("href"))), token.attrGet("href")
        assert token.type != "image"
        depth += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type == "heading_open" and not depth:
            assert token.tag in ("h1", "h2", "h3")
        if token.type != "inline":
            assert visible(token.content) == token.content
    assert environment.get("references", {}) == {}
    assert markdown.count("\n<details>\n") == markdown.count("\n</details>\n")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    everywhere: tuple[Part, ...] = (
        Text(text),
        Reasoning(text=text),
        ToolCall("1", text, {text: text, "list": [{"deep": f"{text}\n{text}"}]}),
        ToolCall("2", "raw", raw=text),
        ToolResult("1", [Text(text)], is_error=True),
        ToolResult("9", [Text(text)], name=text),
        Image(mime=text, url=text, file_id=text),
        File(name=text, mime=text, data=base64.b64encode(text.encode("utf-8", "replace")).decode()),
        Opaque(text, {"type": text, text: text}),
    )
    ledger = build(*everywhere, model=text)

    html, markdown = html_of(ledger), markdown_of(ledger)

    read_page(html)
    check_markdown(markdown)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_of_a_user_is_shown_completely(text: str) -> None:
    page = read_page(html_of(build(Text(text), role="user")))

    shown = "".join([page.text, *page.links, *page.titles, *page.images])
    words = re.findall(r"[a-z]{4,}", visible(text.replace("&colon;", ":")))
    assert [word for word in words if word not in shown] == []


@settings(max_examples=examples(200))
@given(st.text(alphabet=st.sampled_from("<>&\"'`*_[]()!#|-\\\n\t ~:/a1\u202e\x00\ud800"), max_size=60))
@example("[a](<b>)")
@example("`<a>`<a>``<b>``")
def test_any_text_gives_a_sound_document(text: str) -> None:
    ledger = build(Text(text), ToolCall("1", text, {"a": text}), ToolResult("1", [Text(text)]))

    read_page(html_of(ledger))
    check_markdown(markdown_of(ledger))


@pytest.mark.parametrize("name", sample_names())
def test_every_transcript_becomes_a_document(ledger: MemoryLedger, name: str) -> None:
    label = import_sample(ledger, name).label

    read_page(html_of(ledger, label))
    check_markdown(markdown_of(ledger, label))


def test_policy_allows_only_the_style_and_the_script_of_the_page() -> None:
    html = html_of(build(Text("x")))

    page = read_page(html)
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style is not None
    digests = [base64.b64encode(sha256(each.encode()).digest()).decode() for each in (style[1], page.scripts[0])]
    assert page.policy == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "http" not in style[1] + page.scripts[0]


def test_same_session_gives_the_same_bytes() -> None:
    first, second = (build(Text("**bold**"), ToolCall("1", "ls", {"b": 1, "a": 2})) for _ in range(2))

    assert html_of(first) == html_of(second)
    assert markdown_of(first) == markdown_of(second)


def test_messages_are_rendered_as_markdown_and_paths_are_not_links() -> None:
    text = "**bold** `a<b` [site](https://good.example/?a=1&b=2) [file](src/app.py#L3)\n\n1. one\n2. two"

    page = read_page(html := html_of(build(Text(text))))

    assert "<strong>bold</strong>" in html
    assert "<code>a&lt;b</code>" in html
    assert page.links.count("https://good.example/?a=1&b=2") == 1
    assert '<span class="path" title="src/app.py#L3">file</span>' in html


def test_tool_calls_are_folded_with_their_results() -> None:
    ledger = build(
        ToolCall("1", "bash", {"command": "ls -la"}), ToolCall("2", "read"), ToolResult("1", "total 0", is_error=True)
    )

    html, markdown = html_of(ledger), markdown_of(ledger)

    assert re.search(r'<details class="tool"><summary><b>bash</b> <span class="state">error</span>.*total 0', html)
    assert "<summary>bash (error): ls -la</summary>" in markdown
    assert markdown.index("total 0") < markdown.index("<summary>read</summary>")


def test_images_of_known_types_are_in_the_file_and_others_are_described() -> None:
    ledger = build(
        Image(mime="image/png", data=PNG),
        Image(url=f"data:image/png;base64,{PNG}"),
        Image(mime="image/png", data=base64.b64encode(b"<svg onload=alert(1)>").decode()),
        Image(url="https://evil.example/x.png"),
    )

    page = read_page(html_of(ledger))

    assert page.images == [f"data:image/png;base64,{PNG}"] * 2
    assert "image https://evil.example/x.png" in page.text


def test_markdown_describes_images_instead_of_containing_them() -> None:
    markdown = markdown_of(build(Image(mime="image/png", data=PNG), Image(url="https://evil.example/x.png")))

    assert re.search(r"^\[image image/png \d+ bytes, which is in the HTML export\]$", markdown, re.MULTILINE)
    assert "[image https://evil.example/x.png]" in markdown
    assert PNG not in markdown


def test_secrets_are_redacted_unless_asked_for() -> None:
    key = "sk-ant-api03-" + "A1b2C3d4" * 12
    ledger = build(
        Text(f"key {key}"), ToolCall("1", "env", {"API_KEY": key}), ToolResult("1", f"ANTHROPIC_API_KEY={key}")
    )

    for write in (html_of, markdown_of):
        assert key not in write(ledger)
        assert write(ledger).count("[redacted:") >= 3
        assert write(ledger, with_secrets=True).count(key) >= 3


def test_compaction_and_interruption_are_noted() -> None:
    ledger = MemoryLedger()
    ledger.create(
        "s", steps=[NewStep(kind="input", messages=(Message("user", "a"),)), NewStep(kind="interrupted", closes=True)]
    )
    tip = ledger.session("s")
    assert tip is not None
    data = {"summary": "What *happened*", "first_kept": None, "tokens_before": 9000, "tokens_after": 100}
    ledger.append("s", NewStep(kind="compaction", closes=True, data=data), after=tip.tip)

    html, markdown = html_of(ledger), markdown_of(ledger)

    for text in (html, markdown):
        assert "The turn was interrupted" in text
        assert "The turns above were compacted: 9,000 to 100 tokens" in text
    assert "What <em>happened</em>" in html


def test_text_that_the_parser_would_leave_out_is_shown_as_it_is() -> None:
    deep, long = "> " * 60 + "buried", "*" + "a" * 60_000

    page = read_page(html_of(build(Text(deep), Text(long))))

    assert "buried" in page.text
    assert long in page.text


def test_empty_session_is_a_document() -> None:
    ledger = MemoryLedger()
    ledger.create("s")

    read_page(html_of(ledger))
    assert markdown_of(ledger).startswith("# s\n")
