"""Transcripts and exports of sessions, in and out of a ledger.

importer.py            sessions from the transcripts of other programs
transcript_steps.py    paths of a transcript, and the turns and steps they become
imported_threads.py    threads of earlier imports, to compare a transcript with
exporter.py            sessions as files or messages, and import of such files
agent_export.py        sessions as files of other agents, which continue the conversation
documents.py           sessions for people to read, as Markdown
html_page.py           the same as one HTML file, with page.css and page.js in it
"""
