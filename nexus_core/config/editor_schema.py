"""JSON Schema of config.json for editors, with comments and edits of lists.

Validation after merging is stricter and simpler: there, servers are normalized and lists are lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import models_json_schema

from nexus_core.config.merge import REMOVE_KEY, REPLACE_KEY
from nexus_core.config.pointers import SERVERS, SERVERS_ALIAS
from nexus_core.config.schema import Config
from nexus_core.config.servers import SERVER_FIELDS
from nexus_core.config.validate import DISABLED_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

JSON_SCHEMA_DRAFT = "https://json-schema.org/draft/2020-12/schema"

_Schema = dict[str, Any]
_COMMENTS: _Schema = {r"^(_|\$schema$)": {"description": "For readers and editors; Nexus passes over it."}}
_FOR_READERS = ("description", "default")
_SERVER_DEFINITION = "mcp-server"  # cannot clash with the name of a class
_NOT_BLANK = r"\S"


def build_json_schema(plugin_models: Mapping[str, type[BaseModel]] | None = None) -> _Schema:
    """Return the JSON Schema of config.json.

    Args:
        plugin_models: By plugin name, the model of `plugins.<name>`; other names allow anything.
    """
    models = dict(sorted((plugin_models or {}).items()))
    every: list[type[BaseModel]] = [Config, *models.values()]
    references, found = models_json_schema([(model, "validation") for model in every])
    definitions: dict[str, _Schema] = found["$defs"]
    root = definitions.pop(_get_definition_name(references[Config, "validation"]))
    properties = root["properties"]
    definitions.pop(_get_definition_name(properties[SERVERS]["items"]), None)  # users do not write the normalized form
    definitions = {name: _allow_comments_and_edits(part) for name, part in definitions.items()}
    definitions[_SERVER_DEFINITION] = _build_server()
    root = _allow_comments_and_edits(root)
    root["properties"] |= {
        "$schema": {"type": "string", "description": "Where this schema lies, for editors."},
        SERVERS: {**_build_servers(), "description": properties[SERVERS]["description"]},
        SERVERS_ALIAS: {**_build_servers(), "description": f"Another name of `{SERVERS}`, as other tools have it."},
        "plugins": _build_plugins(
            properties["plugins"], {name: references[model, "validation"] for name, model in models.items()}
        ),
    }
    return {"$schema": JSON_SCHEMA_DRAFT, **root, "$defs": dict(sorted(definitions.items()))}


def _get_definition_name(reference: _Schema) -> str:
    """Return the name of a referenced definition."""
    return str(reference["$ref"]).rpartition("/")[2]


def _build_plugins(written: _Schema, sections: Mapping[str, _Schema]) -> _Schema:
    names = {"type": "array", "items": {"type": "string"}, "description": "Plugins not to load, by name."}
    return {**written, "properties": {DISABLED_KEY: names, **sections}}


# ---- what may be written besides the value itself ---------------------------------------------------------


def _allow_comments_and_edits(schema: _Schema) -> _Schema:
    """Return the schema of an object that may contain comments, and edits in place of lists."""
    if "properties" not in schema:
        return schema
    # Titles only repeat the names.
    parts = {name: {key: part[key] for key in part if key != "title"} for name, part in schema["properties"].items()}
    properties = {name: _allow_edits(part) for name, part in parts.items()}
    return {**schema, "properties": properties, "patternProperties": _COMMENTS | schema.get("patternProperties", {})}


def _allow_edits(schema: _Schema) -> _Schema:
    """Return a schema that allows edits of an inherited list wherever it allows a list."""
    shared = {key: schema[key] for key in _FOR_READERS if key in schema}
    branches = schema.get("anyOf", [{key: part for key, part in schema.items() if key not in shared}])
    lists = [branch for branch in branches if branch.get("type") == "array"]
    if not lists:
        return schema
    return {
        **shared,
        "anyOf": [
            *branches,
            *(_build_list_edit(REPLACE_KEY, each) for each in lists),
            _build_list_edit(REMOVE_KEY, {"type": "array"}),
        ],
    }


def _build_list_edit(key: str, value: _Schema) -> _Schema:
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


def _build_server() -> _Schema:
    """Return the schema of one server. Unknown keys are allowed, because other tools have more of them."""
    fields = {name: _BY_FIELD[field] for name, (field, _) in SERVER_FIELDS.items()}
    fields["tools"] = {"anyOf": [_NAMES, {"type": "object"}]}  # Codex has an object here
    nested = {"type": "object", "properties": fields}
    return {
        "type": "object",
        "description": "How to reach a server: a command to start, or an address to connect to.",
        "properties": {**fields, "transport": {"anyOf": [_TYPE, nested]}},
        "anyOf": [{"required": [name]} for name in ("command", "url", "httpUrl", "serverUrl", "transport")],
    }


def _build_servers() -> _Schema:
    server = {"$ref": f"#/$defs/{_SERVER_DEFINITION}"}
    named = {"required": ["name"], "properties": {"name": {"type": "string", "pattern": _NOT_BLANK}}}
    listed = {"type": "array", "items": {**server, **named}}
    by_name = {"type": "object", "patternProperties": _COMMENTS, "additionalProperties": server}
    by_name["propertyNames"] = {"pattern": _NOT_BLANK}
    return {
        "anyOf": [
            listed,
            by_name,
            _build_list_edit(REPLACE_KEY, listed),
            _build_list_edit(REMOVE_KEY, {"type": "array"}),
        ]
    }
