"""What authors of plugins import besides the few names in `nexus_core`.

As there, each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from nexus_core.config.documents import read_document as read_json
    from nexus_core.config.documents import read_layer_document as read_layer_json
    from nexus_core.config.documents import read_layer_text, setting_error
    from nexus_core.config.editing import remove_value, set_value
    from nexus_core.config.json_document import JsonDocument
    from nexus_core.config.pointers import pointer_to
    from nexus_core.config.schema import Strict
    from nexus_core.config.servers.normalising import normalise_servers
    from nexus_core.config.servers.references import SecretReplacer as SecretReferences
    from nexus_core.dialects.api_dialect import ApiDialect
    from nexus_core.dialects.arguments import as_object as call_arguments
    from nexus_core.dialects.arguments import parsed as parse_arguments
    from nexus_core.dialects.fields import joined as error_inside
    from nexus_core.dialects.fields import named as json_kind
    from nexus_core.dialects.media import absent as media_note
    from nexus_core.dialects.media import inline as inline_data
    from nexus_core.dialects.notes import fields_of, noted
    from nexus_core.dialects.outline import Outline
    from nexus_core.dialects.pairing import with_ids
    from nexus_core.dialects.plain import plain_mapping
    from nexus_core.dialects.requests import read_each
    from nexus_core.errors import ConflictError, ExistsError, LedgerError, UnreachableError
    from nexus_core.files.admission import Admission, real_path
    from nexus_core.files.lock import locked
    from nexus_core.files.ownership import is_foreign, owners_beside
    from nexus_core.files.paths import file_in
    from nexus_core.files.places import defaults_directory
    from nexus_core.files.reading import read_bytes, read_text
    from nexus_core.files.repository import levels_above, repository_of, repository_root
    from nexus_core.files.writing import make_directories, write_text_atomically
    from nexus_core.history.ledger.ledger import StoreLedger
    from nexus_core.history.ledger.opening import without_secret
    from nexus_core.history.ledger.rows import (
        AliasRow,
        BranchRow,
        DeletionRow,
        ErasedRow,
        HistoryRow,
        Place,
        Salvaged,
        SessionRow,
        StepRow,
    )
    from nexus_core.history.ledger.searching import cut_around, search_session, words_said
    from nexus_core.layers.explaining import explain
    from nexus_core.layers.rechecking import clear_for_start, decide_again
    from nexus_core.nexus import Nexus
    from nexus_core.rendering.labelled import render_system
    from nexus_core.session.replaying import tools_offered
    from nexus_core.session.steps.naming import find_named
    from nexus_core.session.steps.recorded import CallResult, RecordedCall
    from nexus_core.text.console import Console
    from nexus_core.text.flow_values import FlowValue as FlowValue  # noqa: PLC0414 - a type, and not a value
    from nexus_core.text.front_matter import MAX_HEAD_CHARACTERS as MAX_HEAD_CHARACTERS  # noqa: PLC0414 - a number
    from nexus_core.text.front_matter import FrontMatterError, read_front_matter
    from nexus_core.text.hidden import strip_hidden
    from nexus_core.text.markers import escape as escape_markers
    from nexus_core.text.markers import neutralise
    from nexus_core.text.markers import unescape as unescape_markers
    from nexus_core.text.redaction import redact, redact_json
    from nexus_core.text.visible import visible, visible_line
    from nexus_core.text.written_secrets import completable_names, hide_secrets, names_secret, secrets_in
    from nexus_core.tokens.counter import TextCounter
    from nexus_core.tokens.counters import open_counter
    from nexus_core.tokens.estimator import estimate
    from nexus_core.tokens.messages import count_messages
    from nexus_core.tokens.pieces import cut_pieces
    from nexus_core.tokens.tokenizers import find_import_error
    from nexus_core.trust.coverage import is_unchanged
    from nexus_core.trust.fingerprint import canonical, describe_server, one_line
    from nexus_core.values.api import BEFORE_MESSAGES as BEFORE_MESSAGES  # noqa: PLC0414 - a number, and not a value
    from nexus_core.values.api import ApiRules, Dialect
    from nexus_core.values.arrangement import Arranged, Arrangement, Past
    from nexus_core.values.budget import GroupSizes, Truncation
    from nexus_core.values.command import Command
    from nexus_core.values.compaction import (
        CompactionBudget,
        CompactionPlan,
        Summariser,
        SummaryRequest,
        ThreadGroup,
        ThreadMessage,
        ThreadOutline,
        ThreadTurn,
    )
    from nexus_core.values.conversation import Conversation, Reply
    from nexus_core.values.conversation import Stop as Stop  # noqa: PLC0414 - some words, and not a value
    from nexus_core.values.counting import Model, ModelCounter, TokenCounter
    from nexus_core.values.declarations import InitFile, MergePolicy, PluginSettings
    from nexus_core.values.declarations import InitScope as InitScope  # noqa: PLC0414 - two words, and not a value
    from nexus_core.values.events import HookCall, Problem
    from nexus_core.values.extra import Extra
    from nexus_core.values.layer import Layer, LayerConfig, LayerText, Skipped
    from nexus_core.values.ledger import Ledger, NewStep, SessionRecord, Step
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.message import Role as Role  # noqa: PLC0414 - some words, and not a value
    from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
    from nexus_core.values.parts import Part as Part  # noqa: PLC0414 - any of these, and not a value
    from nexus_core.values.parts import ResultPart as ResultPart  # noqa: PLC0414 - as above
    from nexus_core.values.piece import Piece
    from nexus_core.values.plugin import PluginInfo
    from nexus_core.values.rendering import AgentRole, Renderer
    from nexus_core.values.servers import MCPServerConfig, MCPServerWithOrigin
    from nexus_core.values.settings import Settings

_HOMES = {
    name: module
    for module, names in {
        "config.documents": "read_json read_layer_json read_layer_text setting_error",
        "config.editing": "remove_value set_value",
        "config.json_document": "JsonDocument",
        "config.pointers": "pointer_to",
        "config.schema": "Strict",
        "config.servers.normalising": "normalise_servers",
        "config.servers.references": "SecretReferences",
        "dialects.api_dialect": "ApiDialect",
        "dialects.arguments": "call_arguments parse_arguments",
        "dialects.fields": "error_inside json_kind",
        "dialects.media": "inline_data media_note",
        "dialects.notes": "fields_of noted",
        "dialects.pairing": "with_ids",
        "dialects.outline": "Outline",
        "dialects.plain": "plain_mapping",
        "dialects.requests": "read_each",
        "errors": "ConflictError ExistsError LedgerError UnreachableError",
        "files.admission": "Admission real_path",
        "files.lock": "locked",
        "files.ownership": "is_foreign owners_beside",
        "files.paths": "file_in",
        "files.places": "defaults_directory",
        "files.reading": "read_bytes read_text",
        "files.repository": "levels_above repository_of repository_root",
        "files.writing": "make_directories write_text_atomically",
        "history.ledger.ledger": "StoreLedger",
        "history.ledger.opening": "without_secret",
        "history.ledger.rows": "AliasRow BranchRow DeletionRow ErasedRow HistoryRow Place Salvaged SessionRow StepRow",
        "history.ledger.searching": "cut_around search_session words_said",
        "layers.explaining": "explain",
        "layers.rechecking": "clear_for_start decide_again",
        "rendering.labelled": "render_system",
        "session.replaying": "tools_offered",
        "session.steps.naming": "find_named",
        "session.steps.recorded": "CallResult RecordedCall",
        "text.console": "Console",
        "text.flow_values": "FlowValue",
        "text.front_matter": "FrontMatterError MAX_HEAD_CHARACTERS read_front_matter",
        "text.hidden": "strip_hidden",
        "text.markers": "escape_markers neutralise unescape_markers",
        "text.redaction": "redact redact_json",
        "text.visible": "visible visible_line",
        "text.written_secrets": "completable_names hide_secrets names_secret secrets_in",
        "tokens.counter": "TextCounter",
        "tokens.counters": "open_counter",
        "tokens.estimator": "estimate",
        "tokens.messages": "count_messages",
        "tokens.pieces": "cut_pieces",
        "tokens.tokenizers": "find_import_error",
        "trust.coverage": "is_unchanged",
        "trust.fingerprint": "canonical describe_server one_line",
        "values.api": "ApiRules BEFORE_MESSAGES Dialect",
        "values.arrangement": "Arranged Arrangement Past",
        "values.budget": "GroupSizes Truncation",
        "values.command": "Command",
        "values.compaction": (
            "CompactionBudget CompactionPlan Summariser SummaryRequest ThreadGroup ThreadMessage "
            "ThreadOutline ThreadTurn"
        ),
        "values.conversation": "Conversation Reply Stop",
        "values.counting": "Model ModelCounter TokenCounter",
        "values.declarations": "InitFile InitScope MergePolicy PluginSettings",
        "values.events": "HookCall Problem",
        "values.extra": "Extra",
        "values.layer": "Layer LayerConfig LayerText Skipped",
        "values.ledger": "Ledger NewStep SessionRecord Step",
        "values.loaded": "Loaded",
        "values.message": "Role",
        "values.parts": "File Image Opaque Part Reasoning ResultPart Text ToolCall ToolResult",
        "values.piece": "Piece",
        "values.plugin": "PluginInfo",
        "values.rendering": "AgentRole Renderer",
        "values.servers": "MCPServerConfig MCPServerWithOrigin",
        "values.settings": "Settings",
    }.items()
    for name in names.split()
}
"""By name, the module it is in."""
_NAMES_THERE = {
    "SecretReferences": "SecretReplacer",
    "call_arguments": "as_object",
    "error_inside": "joined",
    "escape_markers": "escape",
    "inline_data": "inline",
    "json_kind": "named",
    "media_note": "absent",
    "parse_arguments": "parsed",
    "read_json": "read_document",
    "read_layer_json": "read_layer_document",
    "unescape_markers": "unescape",
}

__all__ = [
    "Admission",
    "AgentRole",
    "AliasRow",
    "ApiDialect",
    "ApiRules",
    "Arranged",
    "Arrangement",
    "BranchRow",
    "CallResult",
    "Command",
    "CompactionBudget",
    "CompactionPlan",
    "ConflictError",
    "Console",
    "Conversation",
    "DeletionRow",
    "Dialect",
    "ErasedRow",
    "ExistsError",
    "Extra",
    "File",
    "FrontMatterError",
    "GroupSizes",
    "HistoryRow",
    "HookCall",
    "Image",
    "InitFile",
    "JsonDocument",
    "Layer",
    "LayerConfig",
    "LayerText",
    "Ledger",
    "LedgerError",
    "Loaded",
    "MCPServerConfig",
    "MCPServerWithOrigin",
    "MergePolicy",
    "Model",
    "ModelCounter",
    "NewStep",
    "Opaque",
    "Outline",
    "Past",
    "Piece",
    "Place",
    "PluginInfo",
    "PluginSettings",
    "Problem",
    "Reasoning",
    "RecordedCall",
    "Renderer",
    "Reply",
    "Salvaged",
    "SecretReferences",
    "SessionRecord",
    "SessionRow",
    "Settings",
    "Shell",
    "Skipped",
    "Step",
    "StepRow",
    "StoreLedger",
    "Strict",
    "Summariser",
    "SummaryRequest",
    "Text",
    "TextCounter",
    "ThreadGroup",
    "ThreadMessage",
    "ThreadOutline",
    "ThreadTurn",
    "TokenCounter",
    "ToolCall",
    "ToolResult",
    "Truncation",
    "UnreachableError",
    "call_arguments",
    "canonical",
    "clear_for_start",
    "completable_names",
    "count_messages",
    "cut_around",
    "cut_pieces",
    "decide_again",
    "defaults_directory",
    "describe_server",
    "error_inside",
    "escape_markers",
    "estimate",
    "explain",
    "fields_of",
    "file_in",
    "find_import_error",
    "find_named",
    "hide_secrets",
    "inline_data",
    "is_foreign",
    "is_unchanged",
    "json_kind",
    "levels_above",
    "locked",
    "make_directories",
    "media_note",
    "names_secret",
    "neutralise",
    "normalise_servers",
    "noted",
    "one_line",
    "open_counter",
    "owners_beside",
    "parse_arguments",
    "plain_mapping",
    "pointer_to",
    "read_bytes",
    "read_each",
    "read_front_matter",
    "read_json",
    "read_layer_json",
    "read_layer_text",
    "read_text",
    "real_path",
    "redact",
    "redact_json",
    "remove_value",
    "render_system",
    "repository_of",
    "repository_root",
    "search_session",
    "secrets_in",
    "set_value",
    "setting_error",
    "strip_hidden",
    "tools_offered",
    "unescape_markers",
    "visible",
    "visible_line",
    "with_ids",
    "without_secret",
    "words_said",
    "write_text_atomically",
]


# Hidden from type checkers, which would otherwise take any misspelt name for an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"nexus_core.{_HOMES[name]}"), _NAMES_THERE.get(name, name))
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


class Shell(Protocol):
    """What a command of a plugin finds in `ctx.obj`.

    Attributes:
        console: Where to print; data and messages kept apart, control characters made visible.
    """

    console: Console

    @property
    def cwd(self) -> Path:
        """The directory the command is about: `-C DIR`, else the current one."""

    def nexus(self) -> AbstractContextManager[Nexus]:
        """Open a Nexus for `cwd`; problems with plugins are printed, and it is closed at the end."""
