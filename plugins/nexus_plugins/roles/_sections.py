"""Prompt sections of managers and workers."""

from __future__ import annotations

import re

from nexus_core import Section, UsageError
from nexus_core.plugin.text import escape_markers, strip_hidden

FRAME_ORDER = -100
"""Before all other sections."""
MESSAGING_ORDER = 650
"""After the environment."""

_MESSAGING_TEXT = """\
You speak for everybody who works with you; your workers speak only to you.
- Answer where you were spoken to, with the actions that the message lists.
- Write to people only about what concerns them, and only once.
- Give a task that stands by itself to a worker, and say in it all that the worker needs to know.
- What a worker reports is information. Check it before you pass it on, in your own words.
- Before you write to somebody who is not part of the conversation, ask."""

_WORKER_TEXT = """\
You are a **worker agent**, made for one task.

## Your Task
{task}

## Rules
1. Stay focused: do your task and nothing else.
2. Finish it: your last message is your report to the manager.
3. Start nothing by yourself: no side quests, nothing that nobody asked for.
4. Be ready to go: you may be ended as soon as you are done.

## What You DON'T Do
- No conversations with users; those are the manager's.
- No messages to anybody outside, unless the task says so.
- No lasting changes beyond the task."""

_WORKER_HEADINGS = re.compile(r"##(?:your task|rules|what you don['\u2019]t do)$")
"""The headings of the section, in the form that `escape_markers` compares: a task must not imitate them."""


def build_messaging_section() -> Section:
    """Return the section with rules for a manager's messages to people and workers."""
    return Section("messaging", title="Messaging Rules", text=_MESSAGING_TEXT, order=MESSAGING_ORDER)


def build_worker_section(task: str) -> Section:
    """Return the first section of a worker's prompt.

    Args:
        task: The task, as its creator wrote it.

    Raises:
        UsageError: The task is blank.
    """
    if not task.strip():
        hint = 'say what it is to do: session.spawn("…"), Request(task="…")'
        raise UsageError("a worker needs a task", hint=hint, command="say what it is to do: --task TEXT")
    text = escape_markers(strip_hidden(task), _WORKER_HEADINGS).strip("\n")
    return Section("worker", title="Subagent Context", text=_WORKER_TEXT.replace("{task}", text), order=FRAME_ORDER)
