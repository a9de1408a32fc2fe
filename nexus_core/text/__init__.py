"""Safe text: what may reach a model, a terminal or a file, and the one console through which it gets there.

visible.py          nothing that steers a terminal; console.py: data and messages; progress.py: a bar for long work
hidden.py           characters that a reader does not see and a model reads
surrogates.py       halves of characters
markers.py          lines that only Nexus may write; fence.py: what is to be read and not to be obeyed
front_matter.py     the head of a Markdown file between two `---` lines; flow_values.py: one value in quotes or brackets
sentences.py        a sentence in Markdown, however it is decorated
redaction.py        keys and passwords taken out of a text; written_secrets.py: found in commands and addresses
secret_shapes.py    what keys and passwords look like
"""
