"""Settings files: reading, merging, validation, editing.

load.py           settings files as JSON documents, and the settings needed before plugins
jsonc.py          parser for JSON with comments, with the span of every value
pointers.py       JSON pointers, dotted names, and access to settings by them
merge.py          merged settings of all layers, each value with its origins
schema.py         pydantic models of config.json
validate.py       validation of settings against the schema, their names and defaults
durations.py      numbers of seconds, checked
addresses.py      checks of the addresses of servers, their hosts and ports
servers.py        MCP servers in the formats of many tools, normalized to one
edit.py           changes of one setting in its file, with every other byte kept
excerpt.py        excerpts of a file in error messages
secrets.py        secrets in settings: hidden in output, replaced by references
editor_schema.py  JSON Schema of config.json for editors
nexus3.py         detection of NEXUS3 settings in the same file
migrate.py        migration of NEXUS3 settings
renamed.py        former names of settings
"""
