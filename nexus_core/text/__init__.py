"""Text utilities: terminal output, hidden characters, secrets, front matter.

console.py          terminal output: data, messages, tables and a progress bar
safety.py           hidden characters, forged markers and fences
secrets.py          redaction of API keys, passwords and tokens
secret_patterns.py  detection of secrets by prefix, name and armor
front_matter.py     parser for the YAML head of a Markdown file
sentences.py        search for a sentence in Markdown
"""
