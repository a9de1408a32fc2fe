"""What a message costs, whoever counts its texts."""

from __future__ import annotations

import base64
import struct
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.context import SimpleTokenCounter, TiktokenCounter
from nexus_core.plugin import TextCounter, count_messages
from nexus_core.tokens.messages import (
    UNKNOWN_IMAGE_TOKENS,
    Base64Bytes,
    count_file,
    count_image,
    count_tools,
    read_image_size,
    to_compact_json,
)
from nexus_core.types.messages import File, Image, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult


class Characters:
    """A token a character, so that every number below can be seen to be right."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def count(self, text: str) -> int:
        self.seen.append(text)
        return len(text)


def count(*messages: Message) -> int:
    return count_messages(Characters(), messages)


@pytest.mark.acceptance("K-05")
def test_every_message_costs_4_besides_what_it_says() -> None:
    assert count(Message("user", "hello"), Message("assistant", "hi")) == (5 + 4) + (2 + 4)
    assert count(Message("user", "")) == 4
    assert count() == 0


@pytest.mark.acceptance("K-06")
def test_a_call_counts_as_its_name_and_its_arguments_as_compact_json() -> None:
    message = Message("assistant", (Text("ok"), ToolCall("call_1", "read", {"path": "é.py", "n": 1})))

    assert count(message) == 4 + 2 + len("read") + len('{"path":"é.py","n":1}')


def test_arguments_that_came_as_text_count_as_they_were_written() -> None:
    assert count(Message("assistant", (ToolCall("1", "run", {}, raw='{"a": '),))) == 4 + 3 + 6


def test_a_result_counts_as_its_parts() -> None:
    result = ToolResult("1", (Text("done"), Image(detail="low", file_id="f")))

    assert count(Message("tool", (result,), api="openai")) == 4 + 4 + 85


def test_thoughts_count_and_their_seal_does_not() -> None:
    assert count(Message("assistant", (Reasoning(text="hmm", signature="s" * 900),))) == 4 + 3
    assert count(Message("assistant", (Reasoning(encrypted="x" * 41),))) == 4 + 11


def test_an_unknown_block_counts_as_compact_json() -> None:
    assert count(Message("user", (Opaque("x", {"type": "new", "n": [1, 2]}),))) == 4 + len('{"type":"new","n":[1,2]}')


def test_bytes_in_an_unknown_block_are_not_counted_as_words() -> None:
    block = {"type": "input_audio", "data": "QUJD" * 100_000}

    counter = Characters()
    total = count_messages(counter, [Message("user", (Opaque("openai", block),))])

    assert counter.seen == ['{"type":"input_audio","data":""}']
    assert total == 4 + len(counter.seen[0]) + 300_000 // 500


def test_the_name_of_a_speaker_counts() -> None:
    assert count(Message("user", "hello", name="bob")) == 4 + 5 + 3


def test_a_document_of_plain_text_counts_as_its_words() -> None:
    assert count(Message("user", (File(mime="text/plain", data="aGVsbG8="),))) == 4 + len("hello")


def test_what_is_no_json_stands_in_it_as_its_text() -> None:
    assert to_compact_json({"a": MappingProxyType({"b": 1}), "c": 1j}) == '{"a":{"b":1},"c":"1j"}'


def test_half_a_character_in_arguments_is_no_reason_to_fail() -> None:
    message = Message("assistant", (ToolCall("1", "run", {"x": "\ud800"}),))

    assert all(counter.count_messages([message]) > 4 for counter in (SimpleTokenCounter(), TiktokenCounter()))


def test_tools_count_as_json_and_4_each() -> None:
    tool = Tool(name="run", description="Runs.", parameters={"type": "object"})
    written = '{"name":"run","description":"Runs.","parameters":{"type":"object"}}'

    assert count_tools(Characters(), [tool, tool]) == 2 * (len(written) + 4)


def test_a_counter_of_texts_counts_messages_in_the_same_way() -> None:
    class Words(TextCounter):
        name, exact = "words", True

        def count(self, text: str) -> int:
            return len(text.split())

    assert Words().count_messages([Message("user", "one two"), Message("user", "three")]) == 3 + 8
    assert Words().count_many(["one two", ""]) == [2, 0]
    assert Words().measure("one two") == (2, "exact")


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0" + bytes(5000)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(5000)


def jpeg(width: int, height: int, *, before: int = 70_000) -> bytes:
    """A file with much else before its size, as cameras write it."""
    others = b""
    for _ in range(before // 60_000 + 1):
        others += b"\xff\xe1" + struct.pack(">H", 60_002) + bytes(60_000)
    frame = b"\xff\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + bytes(10)
    return b"\xff\xd8" + others + frame + bytes(1000)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + bytes(4) + b"WEBP" + kind + bytes(4) + body + bytes(1000)


def webp_extended(width: int, height: int) -> bytes:
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", bytes(4) + sizes)


def webp_lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14))


def webp_lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height))


def written(content: bytes) -> str:
    return base64.b64encode(content).decode()


def picture(width: int, height: int, **options: str) -> Image:
    return Image(data=written(png(width, height)), mime="image/png", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [png, gif, jpeg, webp_extended, webp_lossless, webp_lossy])
def test_the_size_is_read_from_the_head_of_the_file(make: object) -> None:
    assert read_image_size(Base64Bytes(written(make(1024, 768)))) == (1024, 768)  # type: ignore[operator]


@pytest.mark.parametrize("make", [png, gif, jpeg, webp_extended, webp_lossless, webp_lossy])
def test_a_file_that_is_cut_off_tells_no_size_and_does_no_harm(make: object) -> None:
    content = make(1024, 768)  # type: ignore[operator]

    for length in range(29):
        assert read_image_size(Base64Bytes(written(content[:length]))) is None


HEADS = [b"", b"\xff\xd8", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"RIFF0000WEBPVP8X", b"RIFF0000WEBPVP8L"]


@given(st.binary(max_size=200), st.sampled_from(HEADS))
def test_no_bytes_make_it_fail(rest: bytes, head: bytes) -> None:
    size = read_image_size(Base64Bytes(written(head + rest)))

    assert size is None or min(size) > 0


def test_only_the_head_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []

    def spy(text: str) -> bytes:
        decoded.append(len(text))
        return base64.b64decode(text)

    monkeypatch.setattr("nexus_core.tokens.messages.a2b_base64", spy)

    assert read_image_size(Base64Bytes(written(jpeg(640, 480, before=900_000)))) == (640, 480)
    assert sum(decoded) < 1000


@pytest.mark.parametrize(
    ("size", "detail", "tokens"),
    [
        ((1024, 1024), "high", 765),  # 768 by 768: 4 tiles
        ((1024, 1024), "", 765),
        ((2048, 4096), "high", 1105),  # 768 by 1536: 6 tiles
        ((512, 512), "high", 255),
        ((4096, 4096), "low", 85),
    ],
)
def test_openai_counts_tiles(size: tuple[int, int], detail: str, tokens: int) -> None:
    assert count_image(picture(*size, detail=detail), "openai") == tokens
    assert count_image(picture(*size, detail=detail), "responses") == tokens


@pytest.mark.parametrize(("size", "tokens"), [((200, 200), 54), ((1000, 1000), 1334), ((8000, 8000), 5000)])
def test_anthropic_counts_pixels(size: tuple[int, int], tokens: int) -> None:
    assert count_image(picture(*size), "anthropic") == tokens


@pytest.mark.parametrize(
    ("size", "tokens"),
    [((384, 384), 258), ((385, 100), 258), ((1024, 769), 4 * 258), ((6144, 6144), 16 * 258), ((6144, 100), 4 * 258)],
)
def test_gemini_counts_tiles_of_its_own(size: tuple[int, int], tokens: int) -> None:
    assert count_image(picture(*size), "gemini") == tokens


@pytest.mark.parametrize("api", ["", *UNKNOWN_IMAGE_TOKENS])
def test_a_head_that_lies_about_its_size_costs_no_more_than_the_largest_picture(api: str) -> None:
    assert count_image(picture(2**31, 2**31), api) <= max(UNKNOWN_IMAGE_TOKENS.values())


@pytest.mark.parametrize("api", UNKNOWN_IMAGE_TOKENS)
def test_a_picture_that_cannot_be_seen_counts_as_a_large_one(api: str) -> None:
    for image in (Image(url="https://example.org/x.png"), Image(file_id="file-1"), Image(data="@@@"), Image()):
        assert count_image(image, api) == UNKNOWN_IMAGE_TOKENS[api]


def test_without_a_known_api_the_highest_count_is_taken() -> None:
    assert count_image(picture(1000, 1000), "") == 1334
    assert count_image(Image(file_id="f"), "neutral") == max(UNKNOWN_IMAGE_TOKENS.values())


def test_a_picture_in_a_data_link_is_seen() -> None:
    link = "data:image/png;base64," + written(png(1000, 1000))

    assert count_image(Image(url=link), "anthropic") == 1334


def test_a_pdf_counts_by_its_pages() -> None:
    pages = b"%PDF-1.4\n" + b"<< /Type /Page /Parent 1 0 R >>\n" * 3 + b"<< /Type /Pages /Count 3 >>"

    assert count_file(File(data=written(pages)), "gemini", len) == 3 * 258
    assert count_file(File(data=written(pages), mime="application/pdf"), "anthropic", len) == 3 * 3000


def test_a_pdf_whose_pages_are_hidden_counts_by_its_size() -> None:
    assert count_file(File(data=written(b"%PDF-1.7" + bytes(250_000))), "gemini", len) == 3 * 258


def test_other_files_count_by_their_bytes() -> None:
    assert count_file(File(data=written(bytes(1_000_000)), mime="audio/wav"), "gemini", len) == 2000
    assert count_file(File(data=written(bytes(10)), mime="application/zip"), "gemini", len) == 258


def test_a_document_that_cannot_be_seen_counts_as_a_page() -> None:
    assert count_file(File(file_id="file-1"), "", len) == 3000


@given(st.binary(max_size=300), st.integers(0, 320), st.integers(0, 60))
def test_any_part_of_base64_reads_as_the_bytes_it_stands_for(content: bytes, offset: int, length: int) -> None:
    unpadded = written(content).rstrip("=")
    for text in (written(content), unpadded, base64.urlsafe_b64encode(content).decode()):
        found = Base64Bytes(text)
        assert found.read(offset, length) == content[offset : offset + length]
        assert found.read_all() == content
        assert len(found) == len(content)


def test_base64_in_lines_is_read_as_one() -> None:
    content = bytes(range(256)) * 4

    assert Base64Bytes(base64.encodebytes(content).decode()).read(500, 9) == content[500:509]
