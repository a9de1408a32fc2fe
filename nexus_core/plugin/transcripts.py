"""Values and helpers for plugins that read the transcripts of other programs.

A reader is a module with a `TranscriptFormat`, which a plugin names in `nexus_transcripts`. Its `score_line` gets the
outline of a line: the keys with empty values, and the texts of `type`, `role`, `kind`, `source` and `schema_version`.
Its functions parse all lines, or a document, into a `Transcript`; `EntryCollector` does most of that for a log without
forks.

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
    from nexus_core.types.messages import Stop as Stop  # noqa: PLC0414 - a type, and not in __all__

_HOMES = {
    "EntryCollector": "nexus_core.transcripts.collector",
    "JsonLine": "nexus_core.transcripts.base",
    "LineAccount": "nexus_core.transcripts.base",
    "LocatedValue": "nexus_core.transcripts.base",
    "SCORE_NONE": "nexus_core.transcripts.base",
    "SCORE_OWN": "nexus_core.transcripts.base",
    "SCORE_SHARED": "nexus_core.transcripts.base",
    "Transcript": "nexus_core.transcripts.base",
    "TranscriptBranch": "nexus_core.transcripts.base",
    "TranscriptCompaction": "nexus_core.transcripts.base",
    "TranscriptEntry": "nexus_core.transcripts.base",
    "TranscriptError": "nexus_core.errors",
    "TranscriptFormat": "nexus_core.transcripts.base",
    "build_opaque_message": "nexus_core.transcripts.base",
    "build_tool_call": "nexus_core.transcripts.collector",
    "build_tool_result": "nexus_core.transcripts.collector",
    "find_folder": "nexus_core.transcripts.collector",
    "find_object": "nexus_core.transcripts.base",
    "find_text": "nexus_core.transcripts.base",
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
}
"""The module of each name."""

__all__ = [
    "SCORE_NONE",
    "SCORE_OWN",
    "SCORE_SHARED",
    "EntryCollector",
    "JsonLine",
    "LineAccount",
    "LocatedValue",
    "Transcript",
    "TranscriptBranch",
    "TranscriptCompaction",
    "TranscriptEntry",
    "TranscriptError",
    "TranscriptFormat",
    "build_opaque_message",
    "build_tool_call",
    "build_tool_result",
    "find_folder",
    "find_object",
    "find_text",
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
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
