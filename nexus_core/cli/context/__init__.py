"""`nexus context`: where the tokens go, in a transcript or in what goes to a model here.

command.py     the command
transcript.py  `nexus context FILE`; transcript_facts.py: what it says as JSON
request.py     without a file; request_facts.py: what it says as JSON
excerpts.py    the beginning of a message, as it was said
shares.py      a request in pieces, by zone, kind, layer, file and tool; tree.py: from the whole to its pieces
"""
