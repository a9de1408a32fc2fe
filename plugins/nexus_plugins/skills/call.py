"""Runs the tool `read_skill`, by which a model without a shell reads the guide of a skill.

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
from nexus_core.plugin import neutralise, visible_line
from nexus_plugins.skills._capabilities import capabilities_of
from nexus_plugins.skills._guides import find_guides, read_words
from nexus_plugins.skills._used import mark_used

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core import Nexus, Request
    from nexus_core.plugin import CallResult, Loaded, RecordedCall, Settings
    from nexus_plugins.skills._capabilities import Capability

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
    """The guides of the skills in a directory, behind one tool.

    Args:
        nexus: Finds the skills, each time a guide is asked for.
        names: The only skills whose guides may be read, such as those of a worker; None for all.
    """

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
        """Return the guide of a skill below its name and path, and remember that it was used.

        Raises:
            UnknownNameError: There is no such skill.
            UsageError: The settings switch it off.
            FileError: It cannot be read any more.
        """
        loaded = self._nexus.load()
        capability = find_skill(name, loaded, self._nexus, self._names)
        text = format_guide(capability)
        with suppress(FileError):  # reading matters more than a memory of it
            mark_used(self._nexus.home, capability.guide.path)
        return text

    def run(self, call: RecordedCall) -> CallResult:
        """Return the result of a tool call, for `session.record`; what is wrong with it, the model is told."""
        name = None if call.is_broken else call.arguments.get("name")
        if call.name != NAME or not isinstance(name, str):
            return call.result(f"call {NAME} with the name of a skill", is_error=True)
        try:
            return call.result(self.read(name))
        except NexusError as error:
            return call.result(str(error), is_error=True)


SkillGuides = SkillGuideTool
"""The former name of `SkillGuideTool`."""


def is_skill_tool_offered(request: Request, settings: Settings) -> bool:
    """True if the model has the tool: the caller passes it, or the user's settings ask for it."""
    given = any(tool.name == NAME for tool in request.tools or ())
    return given or settings.get("plugins.skills.tool") is True


def find_skill(name: str, loaded: Loaded, nexus: Nexus, names: frozenset[str] | None = None) -> Capability:
    """Return a skill that the settings, and `names`, let an agent use.

    Raises:
        UnknownNameError: There is no such skill.
        UsageError: The settings switch it off.
    """
    guides = find_guides(loaded).guides
    usable = capabilities_of(guides, nexus.home, loaded.settings)
    found = {each.guide.name: each for each in usable if names is None or each.guide.name in names}
    if name in found:
        return found[name]
    if name in guides and name not in {each.guide.name for each in usable}:
        raise UsageError(
            f"skill {name!r} is switched off", hint="skills.enabled and skills.disabled in the settings decide"
        )
    raise UnknownNameError("skill", name, found)


def format_guide(capability: Capability) -> str:
    """Return the guide of a skill below its name, its path, and what it lacks.

    Raises:
        FileError: It cannot be read any more.
    """
    guide = capability.guide
    text = neutralise(read_words(guide))
    trust = "your own" if guide.layer.is_own else f"of the project, layer {guide.layer.name}"
    lines = [f"Skill: {guide.name} ({trust})", f"Source: {guide.path}"]
    if capability.missing:
        lines.append(f"Missing: {', '.join(capability.missing)}")
    return "\n".join([*map(visible_line, lines), "", text])
