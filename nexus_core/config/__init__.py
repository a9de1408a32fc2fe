"""Settings on disk.

json_parser.py  JSON and JSON with comments, with the place of every value
documents.py    a file as a document, or an error that shows where it is wrong (excerpt.py draws it)
merging.py      the settings of all layers together, each with its origins
schema.py       what may be set; validation.py holds settings against it, remembered.py does so once
keys.py         every setting by name; changing.py and editing.py change one in its file
early.py        the few settings that must be known before any plugin is asked
"""
