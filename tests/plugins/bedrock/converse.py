"""What the tests of the dialect need: Bedrock's own description of its API, taken at its word, and a client of it."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from binascii import crc32
from collections.abc import Iterable
from functools import cache
from struct import pack
from typing import Any

import boto3  # type: ignore[import-untyped]
import botocore.session  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.model import ServiceModel  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from hypothesis import strategies as st

from nexus_core.plugin import Dialect
from nexus_plugins.bedrock import nexus_dialects
from tests.dialects.support import TEXTS, WORDS

BEDROCK: Dialect
(BEDROCK,) = nexus_dialects()

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
"""Whatever stands in JSON."""
_SPELLED = {
    "ToolUseId": WORDS,
    "ToolName": WORDS,
    "S3Uri": st.just("s3://bucket/key"),
    "AccountId": st.just("123456789012"),
    "ConversationalModelId": st.just("amazon.nova-pro-v1:0"),
    "GuardrailIdentifier": st.just("a1"),
    "GuardrailVersion": st.just("DRAFT"),
}
"""Texts of which a pattern says what they must look like."""


@cache
def service() -> ServiceModel:
    """The service's own description."""
    loader = botocore.session.get_session().get_component("data_loader")
    return ServiceModel(loader.load_service_model("bedrock-runtime", "service-2"))


def accepted(body: Any, shape: str = "ConverseRequest") -> Any:
    """The same, unless Bedrock would refuse it by its description alone; botocore itself looks at types only."""
    described = service().shape_for(shape)
    report = ParamValidator().validate(body, described)
    assert not report.has_errors(), report.generate_report()
    _look(body, described, shape)
    return body


def sent(*messages: Any) -> Any:
    """Messages that Bedrock would take."""
    return accepted({"modelId": "m", "messages": BEDROCK.write(messages)})["messages"]


def values_of(shape: str) -> st.SearchStrategy[Any]:
    """Whatever the description allows."""
    return _values(service().shape_for(shape))


def client(url: str) -> Any:
    """A client of boto3 that talks to a server on this machine."""
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",  # noqa: S106 - nobody looks at it
        config=Config(retries={"total_max_attempts": 1}),
    )


def stream_of(events: Iterable[dict[str, Any]]) -> bytes:
    """Events as Bedrock sends them: application/vnd.amazon.eventstream."""
    return b"".join(_frame(kind, body) for event in events for kind, body in event.items())


def in_json(value: Any) -> Any:
    """As it stands in JSON: bytes in base64."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {key: in_json(each) for key, each in value.items()}
    return [in_json(each) for each in value] if isinstance(value, list) else value


def _frame(kind: str, body: dict[str, Any]) -> bytes:
    is_event = not kind.endswith("Exception")
    described = {
        ":event-type" if is_event else ":exception-type": kind,
        ":content-type": "application/json",
        ":message-type": "event" if is_event else "exception",
    }
    headers = b"".join(
        pack("!B", len(name)) + name.encode() + pack("!BH", 7, len(value)) + value.encode()
        for name, value in described.items()
    )
    payload = json.dumps(in_json(body)).encode()
    prelude = pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + pack("!I", crc32(prelude)) + headers + payload
    return message + pack("!I", crc32(message))


def _look(value: Any, shape: Any, path: str) -> None:
    """Patterns, words and lengths."""
    if shape.type_name == "structure" and not shape.is_document_type:
        for name, each in value.items():
            _look(each, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for index, each in enumerate(value):
            _look(each, shape.member, f"{path}[{index}]")
    elif shape.type_name == "string":
        metadata = shape.metadata
        assert "enum" not in metadata or value in metadata["enum"], path
        assert metadata.get("min", 0) <= len(value) <= metadata.get("max", len(value)), path
        assert "pattern" not in metadata or re.fullmatch(metadata["pattern"], value), path


def _values(shape: Any) -> st.SearchStrategy[Any]:
    kind, least = shape.type_name, shape.metadata.get("min", 0)
    if kind == "structure":
        return DOCUMENTS if shape.is_document_type else _structures(shape)
    if kind == "list":
        return st.lists(_values(shape.member), min_size=least, max_size=2)
    if kind == "map":
        return st.dictionaries(WORDS, _values(shape.value), max_size=2)
    if kind == "string":
        words = st.sampled_from(shape.enum) if shape.enum else st.text(min_size=least, max_size=8)
        return _SPELLED.get(shape.name, words)
    return {
        "blob": st.binary(min_size=least, max_size=5),
        "boolean": st.booleans(),
        "integer": st.integers(min_value=least, max_value=99),
        "float": st.floats(min_value=0, max_value=1),
    }[kind]


def _structures(shape: Any) -> st.SearchStrategy[Any]:
    members = {name: _values(each) for name, each in shape.members.items()}
    if shape.is_tagged_union:
        return st.one_of(*(st.fixed_dictionaries({name: each}) for name, each in members.items()))
    needed = {name: members.pop(name) for name in shape.required_members}
    return st.fixed_dictionaries(needed, optional=members)
