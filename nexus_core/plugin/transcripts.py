"""Values and helpers for plugins that read and write the transcripts of other programs.

A reader is a module with a `TranscriptFormat`, which a plugin names in `nexus_transcripts`. Its `score_line` gets the
outline of a line: the keys with empty values, and the texts of `type`, `role`, `kind`, `source` and `schema_version`.
Its functions parse all lines, or a document, into a `Transcript`; `EntryCollector` does most of that for a log without
forks. With a `TranscriptWriter`, sessions can also be exported in the format.

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from nexus_core.errors import TranscriptError
    from nexus_core.transcripts.base import (
        SCORE_NONE,
        SCORE_OWN,
        SCORE_SHARED,
        JsonLine,
        LineAccount,
        LocatedValue,
        Transcript,
        TranscriptBranch,
        TranscriptCompaction,
        TranscriptEntry,
        TranscriptFormat,
        build_opaque_message,
        find_object,
        find_text,
        list_objects,
        locate_elements,
        read_branches,
        trace_path,
        try_read,
    )
    from nexus_core.transcripts.base import EntryKind as EntryKind  # noqa: PLC0414 - a type, and not in __all__
    from nexus_core.transcripts.base import PathPosition as PathPosition  # noqa: PLC0414 - a type, and not in __all__
    from nexus_core.transcripts.collector import (
        EntryCollector,
        build_tool_call,
        build_tool_result,
        find_folder,
        is_shallow,
        read_blocks,
        read_count,
        read_document_records,
        read_image_url,
        read_time,
        split_records,
    )
    from nexus_core.transcripts.read import read_transcript
    from nexus_core.transcripts.writer import (
        ExportReport,
        PortableCompaction,
        PortableConversation,
        PortableMessage,
        PortableReply,
        ResumeHint,
        TranscriptWriter,
        format_iso_time,
        format_json,
        format_media_url,
        has_data,
        write_arguments,
    )
    from nexus_core.types.messages import Stop as Stop  # noqa: PLC0414 - a type, and not in __all__

_HOMES = {
    "EntryCollector": "nexus_core.transcripts.collector",
    "ExportReport": "nexus_core.transcripts.writer",
    "JsonLine": "nexus_core.transcripts.base",
    "LineAccount": "nexus_core.transcripts.base",
    "LocatedValue": "nexus_core.transcripts.base",
    "PortableCompaction": "nexus_core.transcripts.writer",
    "PortableConversation": "nexus_core.transcripts.writer",
    "PortableMessage": "nexus_core.transcripts.writer",
    "PortableReply": "nexus_core.transcripts.writer",
    "ResumeHint": "nexus_core.transcripts.writer",
    "SCORE_NONE": "nexus_core.transcripts.base",
    "SCORE_OWN": "nexus_core.transcripts.base",
    "SCORE_SHARED": "nexus_core.transcripts.base",
    "Transcript": "nexus_core.transcripts.base",
    "TranscriptBranch": "nexus_core.transcripts.base",
    "TranscriptCompaction": "nexus_core.transcripts.base",
    "TranscriptEntry": "nexus_core.transcripts.base",
    "TranscriptError": "nexus_core.errors",
    "TranscriptFormat": "nexus_core.transcripts.base",
    "TranscriptWriter": "nexus_core.transcripts.writer",
    "build_opaque_message": "nexus_core.transcripts.base",
    "build_tool_call": "nexus_core.transcripts.collector",
    "build_tool_result": "nexus_core.transcripts.collector",
    "find_folder": "nexus_core.transcripts.collector",
    "find_object": "nexus_core.transcripts.base",
    "find_text": "nexus_core.transcripts.base",
    "format_iso_time": "nexus_core.transcripts.writer",
    "format_json": "nexus_core.transcripts.writer",
    "format_media_url": "nexus_core.transcripts.writer",
    "has_data": "nexus_core.transcripts.writer",
    "is_shallow": "nexus_core.transcripts.collector",
    "list_objects": "nexus_core.transcripts.base",
    "locate_elements": "nexus_core.transcripts.base",
    "read_blocks": "nexus_core.transcripts.collector",
    "read_branches": "nexus_core.transcripts.base",
    "read_count": "nexus_core.transcripts.collector",
    "read_document_records": "nexus_core.transcripts.collector",
    "read_image_url": "nexus_core.transcripts.collector",
    "read_time": "nexus_core.transcripts.collector",
    "read_transcript": "nexus_core.transcripts.read",
    "split_records": "nexus_core.transcripts.collector",
    "trace_path": "nexus_core.transcripts.base",
    "try_read": "nexus_core.transcripts.base",
    "write_arguments": "nexus_core.transcripts.writer",
}
"""The module of each name."""

__all__ = [
    "SCORE_NONE",
    "SCORE_OWN",
    "SCORE_SHARED",
    "EntryCollector",
    "ExportReport",
    "JsonLine",
    "LineAccount",
    "LocatedValue",
    "PortableCompaction",
    "PortableConversation",
    "PortableMessage",
    "PortableReply",
    "ResumeHint",
    "Transcript",
    "TranscriptBranch",
    "TranscriptCompaction",
    "TranscriptEntry",
    "TranscriptError",
    "TranscriptFormat",
    "TranscriptWriter",
    "build_opaque_message",
    "build_tool_call",
    "build_tool_result",
    "find_folder",
    "find_object",
    "find_text",
    "format_iso_time",
    "format_json",
    "format_media_url",
    "has_data",
    "is_shallow",
    "list_objects",
    "locate_elements",
    "read_blocks",
    "read_branches",
    "read_count",
    "read_document_records",
    "read_image_url",
    "read_time",
    "read_transcript",
    "split_records",
    "trace_path",
    "try_read",
    "write_arguments",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
