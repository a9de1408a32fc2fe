"""Transcripts that other programs wrote, read into neutral messages. Nothing is written, nothing is lost.

reading.py       a text becomes a Transcript, whichever program wrote it
recognition.py   which program that was, by the evidence of the whole file; formats that are refused by name
transcript.py    what is read; account.py: what became of every line
lines.py         a JSON object on every line; document.py: one JSON document; tree.py: conversations that branch
claude/          Claude Code; codex/: Codex; pi/: pi; chatgpt.py: ChatGPT's export; nexus.py: Nexus's own
nexus3.py        saved sessions of NEXUS3
messages.py      lists of messages and requests of any API
unreadable.py    messages in a shape that is new
"""
