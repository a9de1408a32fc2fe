"""Settings on disk.

documents.py      a file as a document, or an error that shows where it is wrong: excerpt.py draws the lines,
                  secrecy.py knows which not to show, covering.py covers their words, encodings.py what is no text
json_document.py  a text and its value, read fast; json_parser.py: JSON and JSON with comments, with all places in it
lines.py          places by line and column; pointers.py: by JSON pointer; dotted.py: settings by their dotted names
servers/          MCP servers: many shapes become one form
merging.py        the settings of all layers together, each with its origins
schema.py         what may be set; validation.py holds settings against it, remembered.py does so once;
                  editor_schema.py tells editors
keys.py           every setting by name; changing.py and editing.py change one in its file
nexus3.py         settings of NEXUS3 in the same file: set aside by a load, translated by `nexus config migrate`
withholding.py    settings as they may be shown
early.py          the few settings that must be known before any plugin is asked
"""
