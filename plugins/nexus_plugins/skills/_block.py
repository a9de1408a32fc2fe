"""The section `Nexus Environment`: what the agent can do, in a few lines; the guides themselves are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import Section, Source
from nexus_core.plugin import strip_hidden, visible_line
from nexus_plugins.skills._guide import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_plugins.skills._capabilities import Capability

ORDER = 400
"""After who the agent is, before where it works."""
MOST_MISSING = 3  # names of what a guide needs
LONGEST_NAME = 64


def environment_section(capabilities: Sequence[Capability], wanted: Iterable[str] | None) -> Section | None:
    """The section about some capabilities; None where there is nothing to say.

    Args:
        capabilities: What there is, sorted by name.
        wanted: The names of those that this agent is told about; None for all.
    """
    names = None if wanted is None else dict.fromkeys(wanted)
    told = [each for each in capabilities if names is None or each.guide.name in names]
    unknown = sorted(set(names or ()) - {each.guide.name for each in told})
    if not told and not unknown:
        return None
    is_own = all(each.guide.layer.is_own for each in told)
    return Section(
        "nexus-environment",
        title="Nexus Environment",
        text=_text(told, unknown),
        order=ORDER,
        # Its names are those of a project, if only one of the guides is.
        source=Source(uri="plugin:skills", trust="user" if is_own else "project"),
        data=_data(told, unknown),
    )


def credentials(capabilities: Sequence[Capability]) -> tuple[int, list[str]]:
    """For how many guides all variables are set, and for which only some."""
    configured = sum(each.credentials == "configured" for each in capabilities)
    return configured, [each.guide.name for each in capabilities if each.credentials == "broken"]


def _text(told: Sequence[Capability], unknown: Sequence[str]) -> str:
    lines = ["The command `nexus` has a guide to each of these capabilities.", "", "### Capabilities"]
    categories = sorted({each.guide.category for each in told}, key=lambda name: (name == OTHER, name))
    lines += [f"{name}: {_listed([each for each in told if each.guide.category == name])}" for name in categories]
    if unknown:
        lines.append(f"Not here: {', '.join(visible_line(strip_hidden(name))[:LONGEST_NAME] for name in unknown)}")
    lines += ["", "### Using Skills", "Run `nexus skill use <name>` to get the whole guide to a capability."]
    return "\n".join([*lines, "", "### Credentials", _credentials_line(told)])


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
