"""The tool `read_skill`, with which a model without a shell reads the guide of a skill.

    from nexus_plugins.skills.call import SkillGuideTool

    guides = SkillGuideTool(nexus)
    session = nexus.session("support", tools=[*tools, guides.tool])
    ...
    for call in step.tool_calls:
        session.record(guides.run(call) if call.name in guides else call.result(run(call)))

Without a session, `guides.tool` is a definition for any API, and `guides.read(name)` is the text of a guide.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from nexus_core import FileError, NexusError, Tool, UnknownNameError, UsageError
from nexus_core.plugin.text import neutralize, visible_line
from nexus_plugins.skills._guides import find_capabilities, find_guides, mark_guide_used, read_guide_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core import Nexus, Request
    from nexus_core.plugin import LoadedLayers, Settings
    from nexus_core.plugin.ledgers import CallResult, RecordedCall
    from nexus_plugins.skills._guides import SkillCapability

NAME = "read_skill"
READ_SKILL = Tool(
    name=NAME,
    description="Read the whole guide of a skill. Do it before you do what the description of the skill is about.",
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string", "description": "A skill that Nexus Environment lists."}},
        "required": ["name"],
        "additionalProperties": False,
    },
)


class SkillGuideTool:
    """The tool `read_skill`: definition, and guides of the skills in a working directory.

    Args:
        nexus: The Nexus whose skills are read; they are searched again for every guide.
        names: The only skills whose guides may be read, such as those of a worker (subagent); None for all.
    """

    risk = "low"  # an agent may read a guide at every permission level

    def __init__(self, nexus: Nexus, names: Iterable[str] | None = None) -> None:
        self._nexus = nexus
        self._names = None if names is None else frozenset(names)

    @property
    def tool(self) -> dict[str, object]:
        """The definition of the tool, for `tools=` of a session or an SDK."""
        return {"name": NAME, "description": READ_SKILL.description, "input_schema": READ_SKILL.parameters}

    def __contains__(self, name: object) -> bool:
        return name == NAME

    def read(self, name: str) -> str:
        """Return the guide of a skill below its name and path, and mark it as used.

        Raises:
            UnknownNameError: There is no such skill.
            UsageError: The settings disable it.
            FileError: Its file can no longer be read.
        """
        loaded = self._nexus.load()
        capability = find_skill(name, loaded, self._nexus, self._names)
        text = format_guide(capability)
        with suppress(FileError):  # the guide can be read even if the mark cannot be written
            mark_guide_used(self._nexus.home, capability.guide.path)
        return text

    def run(self, call: RecordedCall) -> CallResult:
        """Return the result of a tool call for `session.record`. Invalid calls get an error result."""
        name = None if call.has_invalid_arguments else call.arguments.get("name")
        if call.name != NAME or not isinstance(name, str):
            return call.result(f"call {NAME} with the name of a skill", is_error=True)
        try:
            return call.result(self.read(name))
        except NexusError as error:
            return call.result(str(error), is_error=True)


SkillGuides = SkillGuideTool
"""Deprecated alias of `SkillGuideTool`."""


def is_skill_tool_offered(request: Request, settings: Settings) -> bool:
    """Return True if the model has the tool: the caller passes it, or the user's settings ask for it."""
    is_passed = any(tool.name == NAME for tool in request.tools or ())
    return is_passed or settings.get("plugins.skills.tool") is True


def find_skill(name: str, loaded: LoadedLayers, nexus: Nexus, names: frozenset[str] | None = None) -> SkillCapability:
    """Return a skill that the settings and `names` let an agent use.

    Raises:
        UnknownNameError: There is no such skill.
        UsageError: The settings disable it.
    """
    guides = find_guides(loaded).guides
    usable = find_capabilities(guides, nexus.home, loaded.settings)
    found = {each.guide.name: each for each in usable if names is None or each.guide.name in names}
    if name in found:
        return found[name]
    if name in guides and name not in {each.guide.name for each in usable}:
        raise UsageError(
            f"skill {name!r} is switched off", hint="skills.enabled and skills.disabled in the settings decide"
        )
    raise UnknownNameError("skill", name, found)


def format_guide(capability: SkillCapability) -> str:
    """Return the guide of a skill below its name, path and missing requirements.

    Raises:
        FileError: Its file can no longer be read.
    """
    guide = capability.guide
    text = neutralize(read_guide_text(guide))
    trust = "your own" if guide.layer.is_own else f"of the project, layer {guide.layer.name}"
    lines = [f"Skill: {guide.name} ({trust})", f"Source: {guide.path}"]
    if capability.missing:
        lines.append(f"Missing: {', '.join(capability.missing)}")
    return "\n".join([*map(visible_line, lines), "", text])
