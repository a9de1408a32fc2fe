"""The section `Nexus Environment`: what the agent can do, in a few lines; the guides themselves are asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from nexus_core import Section, Source
from nexus_core.plugin import neutralise, strip_hidden, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_plugins.skills._capabilities import Capability
    from nexus_plugins.skills._guide import Guide

ORDER = 400
"""After who the agent is, before where it works."""
OTHER = "Other"
"""The category of a guide that names none."""
LONGEST_DESCRIPTION = 1024
MOST_MISSING = 3  # names of what a guide needs
LONGEST_NAME = 64
MAX_DESCRIPTIONS = 16_000
"""Characters of all descriptions together, about 4,000 tokens: a prompt is not to consist of them."""
LENGTHS = (4 * LONGEST_DESCRIPTION, 512, 256, 128, 64, 32)
"""Characters of one description; the first is enough for a whole one, escapes included."""

NONE = "None: this agent has no skills."
COMMAND = "The command `nexus` has a guide to each of these capabilities."
USE_COMMAND = "Run `nexus skill use <name>` to get the whole guide to a capability."
USE_TOOL = "Call the tool `read_skill` with a name to get the whole guide to a capability."


def environment_section(
    capabilities: Sequence[Capability], wanted: Iterable[str] | None, *, with_tool: bool = False
) -> Section:
    """Return the section about some capabilities.

    Args:
        capabilities: All there are, sorted by name.
        wanted: The names of those that this agent has; None for all.
        with_tool: True if the model reads guides with the tool `read_skill`, not with the command.
    """
    names = None if wanted is None else dict.fromkeys(wanted)
    listed = [each for each in capabilities if names is None or each.guide.name in names]
    unknown = sorted(set(names or ()) - {each.guide.name for each in listed})
    if not listed and not unknown:
        return empty_section()
    is_own = all(each.guide.layer.is_own for each in listed)
    # Names and descriptions are those of a project, if only one of the guides is.
    section = _section(
        _text(listed, unknown, with_tool=with_tool), listed, unknown, trust="user" if is_own else "project"
    )
    read = "the tool `read_skill`" if with_tool else "`nexus skill use {name}`"
    return replace(section, files={each.guide.path: read.format(name=each.guide.name) for each in listed})


def empty_section() -> Section:
    """Return the section for an agent without skills."""
    return _section(f"### Capabilities\n{NONE}\n\n### Credentials\n{_credentials_line(())}", (), (), trust="user")


def _section(
    text: str, listed: Sequence[Capability], unknown: Sequence[str], *, trust: Literal["user", "project"]
) -> Section:
    return Section(
        "nexus-environment",
        title="Nexus Environment",
        text=text,
        order=ORDER,
        source=Source(uri="plugin:skills", trust=trust),
        data=_data(listed, unknown),
    )


def credentials(capabilities: Sequence[Capability]) -> tuple[int, list[str]]:
    """For how many guides all variables are set, and for which only some."""
    configured = sum(each.credentials == "configured" for each in capabilities)
    return configured, [each.guide.name for each in capabilities if each.credentials == "broken"]


def _text(listed: Sequence[Capability], unknown: Sequence[str], *, with_tool: bool) -> str:
    first = "There is a guide to each of these capabilities." if with_tool else COMMAND
    lines = [first, "", "### Capabilities"]
    categories = sorted({each.guide.category for each in listed}, key=lambda name: (name == OTHER, name))
    lines += [f"{name}: {_listed([each for each in listed if each.guide.category == name])}" for name in categories]
    if unknown:
        lines.append(f"Not here: {', '.join(visible_line(strip_hidden(name))[:LONGEST_NAME] for name in unknown)}")
    lines += ["", "### Using Skills", USE_TOOL if with_tool else USE_COMMAND, *_descriptions(listed)]
    return "\n".join([*lines, "", "### Credentials", _credentials_line(listed)])


def _descriptions(listed: Sequence[Capability]) -> list[str]:
    """Return a line for each skill with a description, which tells a model when to use it.

    Where all of them together would be too long, every one is cut at the same length.
    """
    described = {each.guide.name: _safe_description(each.guide) for each in listed if each.guide.description}
    fits = (most for most in LENGTHS if sum(min(len(text), most) for text in described.values()) <= MAX_DESCRIPTIONS)
    most = next(fits, 0)
    return (
        []
        if not most
        else [f"- {name}: {text if len(text) <= most else text[:most] + '…'}" for name, text in described.items()]
    )


def _safe_description(guide: Guide) -> str:
    """Return a description in one line; one of a project can pass neither for a line of Nexus nor hide anything."""
    text = visible_line(guide.description)
    return text if guide.layer.is_own else neutralise(text)


def _listed(capabilities: Sequence[Capability]) -> str:
    """Capabilities of one category by how things stand with them: `a, b ✅ | c ⭐ (ready) | d 🔧 (needs KEY)`."""
    used = ", ".join(each.guide.name for each in capabilities if each.status == "used")
    ready = ", ".join(each.guide.name for each in capabilities if each.status == "ready")
    unready = [f"{each.guide.name} 🔧 (needs {needs(each)})" for each in capabilities if each.status == "unready"]
    return " | ".join([*([f"{used} ✅"] if used else []), *([f"{ready} ⭐ (ready)"] if ready else []), *unready])


def needs(capability: Capability) -> str:
    """What a guide lacks, in a few words."""
    rest = len(capability.missing) - MOST_MISSING
    return ", ".join(capability.missing[:MOST_MISSING]) + (f" and {rest} more" if rest > 0 else "")


def _credentials_line(told: Sequence[Capability]) -> str:
    configured, broken = credentials(told)
    return f"{configured} configured" + (f" | {len(broken)} broken ({', '.join(broken)})" if broken else "")


def _data(told: Sequence[Capability], unknown: Sequence[str]) -> dict[str, object]:
    configured, broken = credentials(told)
    skills = {
        "capabilities": [each.facts for each in told],
        "credentials": {"configured": configured, "broken": broken},
        "unknown": list(unknown),
    }
    return {"nexusEnv": {"capabilityCount": len(told)}, "skills": skills}
