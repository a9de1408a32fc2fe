"""The prompt section `Nexus Environment`: the skills of an agent in a few lines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from nexus_core import Section, Source
from nexus_core.plugin.text import neutralize, strip_hidden, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_plugins.skills._guides import SkillCapability, SkillGuide

SECTION_ORDER = 400
"""After the identity of the agent, before its environment."""
DEFAULT_CATEGORY = "Other"
"""The category of a guide that names none."""
MAX_DESCRIPTION_CHARACTERS = 1024
MAX_MISSING_NAMES = 3
MAX_NAME_CHARACTERS = 64
MAX_DESCRIPTIONS_CHARACTERS = 16_000
"""Characters of all descriptions together, about 4,000 tokens, so that they do not dominate the prompt."""
DESCRIPTION_LENGTHS = (4 * MAX_DESCRIPTION_CHARACTERS, 512, 256, 128, 64, 32)
"""Limits of one description in characters; the first fits a complete one with escapes."""

NO_SKILLS_TEXT = "None: this agent has no skills."
COMMAND_TEXT = "The command `nexus` has a guide to each of these capabilities."
USE_COMMAND_TEXT = "Run `nexus skill show <name>` to get the whole guide to a capability."
USE_TOOL_TEXT = "Call the tool `read_skill` with a name to get the whole guide to a capability."


def build_environment_section(
    capabilities: Sequence[SkillCapability], wanted: Iterable[str] | None, *, with_tool: bool = False
) -> Section:
    """Return the prompt section about skills.

    Args:
        capabilities: All skills, sorted by name.
        wanted: The names of the skills that this agent has; None for all.
        with_tool: True if the model reads guides with the tool `read_skill`, not with the command.
    """
    names = None if wanted is None else dict.fromkeys(wanted)
    listed = [each for each in capabilities if names is None or each.guide.name in names]
    unknown = sorted(set(names or ()) - {each.guide.name for each in listed})
    if not listed and not unknown:
        return build_empty_section()
    is_own = all(each.guide.layer.is_own for each in listed)
    # One guide of a project makes the whole section a project's.
    section = _build_section(
        _format_text(listed, unknown, with_tool=with_tool), listed, unknown, trust="user" if is_own else "project"
    )
    read = "the tool `read_skill`" if with_tool else "`nexus skill show {name}`"
    return replace(section, files={each.guide.path: read.format(name=each.guide.name) for each in listed})


def build_empty_section() -> Section:
    """Return the section for an agent without skills."""
    return _build_section(
        f"### Capabilities\n{NO_SKILLS_TEXT}\n\n### Credentials\n{_format_credentials(())}", (), (), trust="user"
    )


def _build_section(
    text: str, listed: Sequence[SkillCapability], unknown: Sequence[str], *, trust: Literal["user", "project"]
) -> Section:
    return Section(
        "nexus-environment",
        title="Nexus Environment",
        text=text,
        order=SECTION_ORDER,
        source=Source(uri="plugin:skills", trust=trust),
        data=_build_data(listed, unknown),
    )


def count_credentials(capabilities: Sequence[SkillCapability]) -> tuple[int, list[str]]:
    """Return how many skills have all their variables, and the names of those that have only some."""
    configured = sum(each.credentials == "configured" for each in capabilities)
    return configured, [each.guide.name for each in capabilities if each.credentials == "broken"]


def _format_text(listed: Sequence[SkillCapability], unknown: Sequence[str], *, with_tool: bool) -> str:
    first = "There is a guide to each of these capabilities." if with_tool else COMMAND_TEXT
    lines = [first, "", "### Capabilities"]
    categories = sorted({each.guide.category for each in listed}, key=lambda name: (name == DEFAULT_CATEGORY, name))
    lines += [
        f"{name}: {_format_category([each for each in listed if each.guide.category == name])}" for name in categories
    ]
    if unknown:
        lines.append(
            f"Not here: {', '.join(visible_line(strip_hidden(name))[:MAX_NAME_CHARACTERS] for name in unknown)}"
        )
    lines += ["", "### Using Skills", USE_TOOL_TEXT if with_tool else USE_COMMAND_TEXT, *_format_descriptions(listed)]
    return "\n".join([*lines, "", "### Credentials", _format_credentials(listed)])


def _format_descriptions(listed: Sequence[SkillCapability]) -> list[str]:
    """Return a line for each skill with a description, by which a model decides when to use it.

    If all of them together are too long, each is truncated at the same length.
    """
    described = {each.guide.name: _neutralize_description(each.guide) for each in listed if each.guide.description}
    fitting = (
        limit
        for limit in DESCRIPTION_LENGTHS
        if sum(min(len(text), limit) for text in described.values()) <= MAX_DESCRIPTIONS_CHARACTERS
    )
    limit = next(fitting, 0)
    return (
        []
        if not limit
        else [f"- {name}: {text if len(text) <= limit else text[:limit] + '…'}" for name, text in described.items()]
    )


def _neutralize_description(guide: SkillGuide) -> str:
    """Return a description in one line. A project's cannot imitate a line of Nexus or hide text."""
    text = visible_line(guide.description)
    return text if guide.layer.is_own else neutralize(text)


def _format_category(capabilities: Sequence[SkillCapability]) -> str:
    """Return the skills of one category by status: `a, b ✅ | c ⭐ (ready) | d 🔧 (needs KEY)`."""
    used = ", ".join(each.guide.name for each in capabilities if each.status == "used")
    ready = ", ".join(each.guide.name for each in capabilities if each.status == "ready")
    unready = [
        f"{each.guide.name} 🔧 (needs {format_missing(each)})" for each in capabilities if each.status == "unready"
    ]
    return " | ".join([*([f"{used} ✅"] if used else []), *([f"{ready} ⭐ (ready)"] if ready else []), *unready])


def format_missing(capability: SkillCapability) -> str:
    """Return the missing requirements of a skill, shortened."""
    rest = len(capability.missing) - MAX_MISSING_NAMES
    return ", ".join(capability.missing[:MAX_MISSING_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _format_credentials(listed: Sequence[SkillCapability]) -> str:
    configured, broken = count_credentials(listed)
    return f"{configured} configured" + (f" | {len(broken)} broken ({', '.join(broken)})" if broken else "")


def _build_data(listed: Sequence[SkillCapability], unknown: Sequence[str]) -> dict[str, object]:
    configured, broken = count_credentials(listed)
    skills = {
        "capabilities": [each.facts for each in listed],
        "credentials": {"configured": configured, "broken": broken},
        "unknown": list(unknown),
    }
    return {"nexusEnv": {"capabilityCount": len(listed)}, "skills": skills}
