"""Readers that parse other programs' transcripts into neutral messages, and writers for some of their formats.

read.py               `read_transcript` for every format, and the list of formats, with those of plugins
recognition.py        detection of a file's format from all of its lines
unsupported.py        formats without a reader, rejected by name
base.py               transcript values, and tools for readers
writer.py             conversations for writers, and the tools that writers share
collector.py          entries of logs without forks, and the blocks that most programs share
claude.py             Claude Code
claude_writer.py      files for Claude Code
codex.py              Codex
codex_writer.py       files for Codex
gemini_cli.py         Gemini CLI
gemini_cli_writer.py  files for Gemini CLI
pi.py                 pi
pi_writer.py          files for pi
chatgpt.py            exports of ChatGPT
acp.py                conversations of the Agent Client Protocol, as an editor and an agent exchange them
messages.py           messages and requests of any API
nexus.py              exports of Nexus
nexus3.py             saved sessions of NEXUS3
locations.py          directories in which programs keep their transcripts

A reader is one module. It has a `FORMAT_NAME`, a `score_line` that recognizes its lines by their shape, a function
that parses all lines (or the JSON document) into a `Transcript` and reports the outcome of each, and a `FORMAT` with
the three. Nothing is lost: a line that is not a message is kept as metadata. If sessions can be exported in the format,
the `FORMAT` also has the `WRITER` of the module beside it. Plugins add formats with `nexus_transcripts`, as the bundled
plugin `transcripts` does.
"""
