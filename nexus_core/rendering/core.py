"""What Nexus itself brings: one renderer and one role; plugins add others."""

from __future__ import annotations

from nexus_core.rendering.current import render_current
from nexus_core.rendering.labelled import render_system
from nexus_core.values.rendering import AgentRole, Renderer

LABELLED = Renderer(name="labelled", system=render_system, current=render_current)
"""Sections under headings; what was said stays where it was said, so that each call begins with the one before."""

UNIFIED = AgentRole(name="unified")
"""An agent that does everything by itself and talks to nobody but its user."""
