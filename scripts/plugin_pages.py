"""A page of the reference for each bundled plugin: the words of its README, and what its code says of itself."""

from __future__ import annotations

import inspect
import json
import os
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexus_core.config.validate import import_settings_models
from nexus_core.host.calls import get_hooks
from nexus_core.host.loader import find_implementations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from nexus_core.host.calls import HookKind, HookSpec

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs/reference/plugins"

_WITHOUT = "Without it, "
_SWITCH = """\
`NEXUS_PLUGINS=-{name}` switches it off for one run, `{{"plugins": {{"disabled": ["{name}"]}}}}` in your own
`config.json` for all of them.

{without}

To replace it, switch it off and implement {hooks} in [your own plugin](../../../plugins/README.md)."""


def pages(points: Mapping[str, str]) -> dict[Path, str]:
    """The pages by path, for names of plugins and their modules."""
    return {PAGES / f"{name}.md": _page(name, import_module(module)) for name, module in sorted(points.items())}


def _page(name: str, plugin: ModuleType) -> str:
    readme = ROOT / "plugins/nexus_plugins" / name / "README.md"
    _, *words = readme.read_text(encoding="utf-8").strip().split("\n\n")
    without = "\n\n".join(each for each in words if each.startswith(_WITHOUT))
    if not without:
        raise SystemExit(f"{readme.relative_to(ROOT)}: say in a paragraph of its own what is missing: {_WITHOUT}…")
    words = [each for each in words if each != without and f"/plugins/{name}.md)" not in each]
    answered = [hook for hook in get_hooks() if hook in find_implementations(plugin)]
    switch = _SWITCH.format(name=name, without=without, hooks="its hook" if len(answered) == 1 else "its hooks")
    parts = [
        f"# The plugin `{name}`",
        "Generated from the plugin's README and code by `make generate`.",
        *(_moved(each, readme.parent) for each in words),
        "## Hooks",
        _hooks(plugin, answered),
        *_settings(name, plugin),
        *_commands(plugin),
        "## Switch it off, or replace it",
        switch,
    ]
    return "\n\n".join(parts) + "\n"


def _moved(text: str, folder: Path) -> str:
    """Links of the README, as they lead from the page."""

    def lead(match: re.Match[str]) -> str:
        path, mark, anchor = match[1].partition("#")
        return f"]({Path(os.path.relpath((folder / path).resolve(), PAGES)).as_posix()}{mark}{anchor})"

    return re.sub(r"\]\((?!http|#)([^)\s]+)\)", lead, text)


def _hooks(plugin: ModuleType, answered: list[str]) -> str:
    rows = ["| hook | what it returns or does | if several plugins answer |", "| --- | --- | --- |"]
    for name in answered:
        hook = get_hooks()[name]
        answer = " ".join((inspect.getdoc(getattr(plugin, name)) or "").partition("\n\n")[0].split())
        rows.append(f"| [`{name}`](../hooks.md#{anchor_of(hook)}) | {answer} | {_USES[hook.kind]} |")
    return "\n".join(rows)


def anchor_of(hook: HookSpec) -> str:
    """What links to the reference of a hook name."""
    return re.sub(r"[^\w\- ]", "", hook.signature.lower()).replace(" ", "-")


_EMPTY = {"array": "`[]`", "object": "`{}`"}
_USES: dict[HookKind, str] = {
    "collects": "all are used",
    "first answer wins": "the first is used",
    "announces": "all are told; nothing is returned",
}


def _settings(name: str, plugin: ModuleType) -> Iterator[str]:
    yield "## Settings"
    if not hasattr(plugin, "nexus_settings"):
        yield f"None under `plugins.{name}`. The description above names the general settings that it uses, if any."
        return
    (declared,) = plugin.nexus_settings()
    schema = import_settings_models({name: declared.model})[name].model_json_schema()
    rows = ["| setting | default | meaning |", "| --- | --- | --- |"]
    for key, default, meaning in _fields(schema, schema.get("$defs", {})):
        top = key.partition(".")[0]
        whose = " Only in your own `config.json`." if top in declared.protected else ""
        whose += " A project can switch it off, not on." if top in declared.off_only else ""
        whose += " Waits for `nexus trust allow` in a project's." if top in declared.active else ""
        rows.append(f"| `{key}` | {default} | {meaning}{whose} |")
    yield f"Under `plugins.{name}` in `config.json`."
    yield "\n".join(rows)


def _fields(schema: Mapping[str, Any], known: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Keys with defaults and meanings; objects by name are followed by the keys of such an object."""
    for key, field in schema["properties"].items():
        meaning = field.get("description", "")
        if choices := field.get("items", field).get("enum"):
            meaning += f" {'Any' if 'items' in field else 'One'} of {', '.join(f'`{each}`' for each in choices)}."
        yield f"{prefix}{key}", _default(field, is_required=key in schema.get("required", ())), meaning
        inner = field.get("additionalProperties")
        if isinstance(inner, dict) and "$ref" in inner:
            yield from _fields(known[inner["$ref"].rpartition("/")[2]], known, f"{prefix}{key}.NAME.")


def _default(field: Mapping[str, Any], *, is_required: bool) -> str:
    if is_required:
        return "required"
    default = json.dumps(field.get("default"), ensure_ascii=False)
    return f"`{default}`" if "default" in field and default != "null" else _EMPTY.get(field.get("type", ""), "none")


def _commands(plugin: ModuleType) -> Iterator[str]:
    listed = [each for each in plugin.nexus_commands() if not each.hidden] if hasattr(plugin, "nexus_commands") else []
    if listed:
        yield "## Commands"
        yield "\n".join(f"- `nexus {each.name}`: {each.help}" for each in listed)
