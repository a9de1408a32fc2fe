"""Text utilities: terminal output, hidden characters, secrets, front matter.

console.py          terminal output: data, messages, tables, a pager and progress
layout.py           tables and sentences that fit the width of a terminal
markdown.py         Markdown formatted for a terminal
markdown_stream.py  Markdown that arrives in pieces, on a terminal
text_stream.py      text that arrives in pieces
safety.py           hidden characters, forged markers and fences
secrets.py          redaction of API keys, passwords and tokens
secret_patterns.py  detection of secrets by prefix, name and armor
front_matter.py     the YAML head of a Markdown file, and its body
yaml_head.py        parser for that head, limited to strings, lists and objects
sentences.py        search for a sentence in Markdown
"""
