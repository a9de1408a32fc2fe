"""The JSON Schema of config.json as editors need it: what may be written, comments and edits of lists included.

What is checked after merging is stricter and simpler: there, servers are in one form and lists are lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import models_json_schema

from nexus_core.config.merging import REMOVE, REPLACE
from nexus_core.config.schema import Config
from nexus_core.config.servers import ALIAS, SETTING
from nexus_core.config.servers.fields import FIELDS
from nexus_core.config.validation import DISABLED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_Schema = dict[str, Any]
_COMMENTS: _Schema = {r"^(_|\$schema$)": {"description": "For readers and editors; Nexus passes over it."}}
_FOR_READERS = ("description", "default")
_SERVER = "mcp-server"  # no class can be called so
_NOT_BLANK = r"\S"


def json_schema(plugin_models: Mapping[str, type[BaseModel]] | None = None) -> _Schema:
    """The schema of config.json.

    Args:
        plugin_models: By plugin name, what may stand under `plugins.<name>`; anything may under other names.
    """
    models = dict(sorted((plugin_models or {}).items()))
    every: list[type[BaseModel]] = [Config, *models.values()]
    references, found = models_json_schema([(model, "validation") for model in every])
    definitions: dict[str, _Schema] = found["$defs"]
    root = definitions.pop(_name(references[Config, "validation"]))
    properties = root["properties"]
    definitions.pop(_name(properties[SETTING]["items"]), None)  # the one form is nothing to write
    definitions = {name: _with_comments_and_edits(part) for name, part in definitions.items()}
    definitions[_SERVER] = _server()
    root = _with_comments_and_edits(root)
    root["properties"] |= {
        "$schema": {"type": "string", "description": "Where this schema lies, for editors."},
        SETTING: {**_servers(), "description": properties[SETTING]["description"]},
        ALIAS: {**_servers(), "description": f"Another name of `{SETTING}`, as other tools have it."},
        "plugins": _plugins(
            properties["plugins"], {name: references[model, "validation"] for name, model in models.items()}
        ),
    }
    return {"$schema": DRAFT, **root, "$defs": dict(sorted(definitions.items()))}


def _name(reference: _Schema) -> str:
    """The name of a definition that is referred to."""
    return str(reference["$ref"]).rpartition("/")[2]


def _plugins(written: _Schema, sections: Mapping[str, _Schema]) -> _Schema:
    names = {"type": "array", "items": {"type": "string"}, "description": "Plugins not to load, by name."}
    return {**written, "properties": {DISABLED: names, **sections}}


# ---- what may be written besides the value itself ---------------------------------------------------------


def _with_comments_and_edits(schema: _Schema) -> _Schema:
    """The schema of an object that may have comments in it, and edits in the place of lists."""
    if "properties" not in schema:
        return schema
    # Their titles only repeat their names.
    parts = {name: {key: part[key] for key in part if key != "title"} for name, part in schema["properties"].items()}
    properties = {name: _with_edits(part) for name, part in parts.items()}
    return {**schema, "properties": properties, "patternProperties": _COMMENTS | schema.get("patternProperties", {})}


def _with_edits(schema: _Schema) -> _Schema:
    """A schema that allows edits of an inherited list wherever it allows a list."""
    told = {key: schema[key] for key in _FOR_READERS if key in schema}
    branches = schema.get("anyOf", [{key: part for key, part in schema.items() if key not in told}])
    lists = [branch for branch in branches if branch.get("type") == "array"]
    if not lists:
        return schema
    return {**told, "anyOf": [*branches, *(_edit(REPLACE, each) for each in lists), _edit(REMOVE, {"type": "array"})]}


def _edit(key: str, value: _Schema) -> _Schema:
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}


# ---- servers ----------------------------------------------------------------------------------------------

_TEXT: _Schema = {"type": ["string", "null"]}
_WORD: _Schema = {"type": ["string", "number", "boolean"]}
_WORDS: _Schema = {"type": "array", "items": _WORD}
_TABLE: _Schema = {"type": ["object", "null"], "additionalProperties": {"type": [*_WORD["type"], "null"]}}
_NAMES: _Schema = {"type": ["array", "null"], "items": {"type": "string"}}
_NUMBER: _Schema = {"type": ["number", "null"]}
_TYPE: _Schema = {"anyOf": [{"enum": ["stdio", "http", "sse", None]}, {"type": "string"}]}
_BY_FIELD: dict[str, _Schema] = {
    "name": _TEXT,
    "type": _TYPE,
    "command": {"anyOf": [_TEXT, _WORDS]},
    "args": {"anyOf": [_WORDS, {"type": "null"}]},
    "url": _TEXT,
    "env": _TABLE,
    "headers": _TABLE,
    "cwd": _TEXT,
    "env_file": _TEXT,
    "env_passthrough": _NAMES,
    "include_tools": _NAMES,
    "exclude_tools": _NAMES,
    "start_timeout": _NUMBER,
    "call_timeout": _NUMBER,
    "enabled": {"type": ["boolean", "null"]},
}


def _server() -> _Schema:
    """One server; keys that are not known are allowed, because other tools have more of them."""
    fields = {name: _BY_FIELD[field] for name, (field, _) in FIELDS.items()}
    fields["tools"] = {"anyOf": [_NAMES, {"type": "object"}]}  # for Codex, something else
    nested = {"type": "object", "properties": fields}
    return {
        "type": "object",
        "description": "How to reach a server: a command to start, or an address to connect to.",
        "properties": {**fields, "transport": {"anyOf": [_TYPE, nested]}},
        "anyOf": [{"required": [name]} for name in ("command", "url", "httpUrl", "serverUrl", "transport")],
    }


def _servers() -> _Schema:
    server = {"$ref": f"#/$defs/{_SERVER}"}
    named = {"required": ["name"], "properties": {"name": {"type": "string", "pattern": _NOT_BLANK}}}
    listed = {"type": "array", "items": {**server, **named}}
    by_name = {"type": "object", "patternProperties": _COMMENTS, "additionalProperties": server}
    by_name["propertyNames"] = {"pattern": _NOT_BLANK}
    return {"anyOf": [listed, by_name, _edit(REPLACE, listed), _edit(REMOVE, {"type": "array"})]}
