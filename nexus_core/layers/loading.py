"""Discovers layers, reads their settings and texts through the plugins, and puts them together."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from nexus_core.config.merging import merge_configs
from nexus_core.config.nexus3 import strip_nexus3_settings
from nexus_core.config.servers import SETTING as SERVERS
from nexus_core.layers.guarding import ONLY_BUNDLED_POLICIES, guard_configs, list_plugin_guarded_settings
from nexus_core.layers.servers import find_servers, in_one_form
from nexus_core.layers.texts import choose_texts
from nexus_core.values.loaded import Loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.host.host import Host
    from nexus_core.trust.store import TrustStore
    from nexus_core.values.finding import Finding
    from nexus_core.values.layer import Layer, Skipped
    from nexus_core.values.request import Request
    from nexus_core.values.trust import ActivePart, Decision

T = TypeVar("T")


def load_layers(host: Host, request: Request) -> Loaded:
    """What the plugins find for a request; nothing is cached, so a second call sees changed files."""
    layers, skipped = host.layers(request)
    decisions = _Decisions(request)
    home = decisions.judge_home()
    if home is not None and home.decision != "allowed":
        layers = [replace(layer, from_repository=True) if layer.scope == "global" else layer for layer in layers]
    found = _gather(partial(host.layer_config, request=request), layers, skipped)
    found, foreign = strip_nexus3_settings(found)
    configs = in_one_form(found, skipped, lenient=request.lenient)
    guarded = guard_configs(configs, decisions.decide, *list_plugin_guarded_settings(host))
    settings = merge_configs(guarded.configs, host.merge_policies(ONLY_BUNDLED_POLICIES))
    chosen = choose_texts(_gather(partial(host.layer_texts, settings=settings), layers, skipped), settings)
    return Loaded(
        layers=tuple(layers),
        texts=tuple(chosen.texts),
        configs=tuple(guarded.configs),
        settings=settings,
        servers=find_servers(settings, guarded.configs, guarded.active),
        active=(*([home] if home is not None else ()), *map(decisions.complete, guarded.active)),
        skipped=(*skipped, *chosen.skipped),
        findings=(*foreign, *decisions.findings, *guarded.findings, *chosen.findings, *_find_mistakes(skipped)),
        repeated=tuple(chosen.repeated),
    )


def _find_mistakes(skipped: Iterable[Skipped]) -> Iterator[Finding]:
    """Return a finding for every part of a file that has no effect although somebody expects one."""
    mistakes = [each for each in skipped if each.is_mistake]
    if mistakes:
        from nexus_core.values.finding import Finding  # noqa: PLC0415 - most files have none

        for each in mistakes:
            yield Finding("ignored-field", f"not used: {each.reason}", each.path, each.line or 0)


class _Decisions:
    """What the user has decided; the store is opened when something asks for approval."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.findings: list[Finding] = []

    @cached_property
    def _store(self) -> TrustStore:
        from nexus_core.files.places import workspace_of  # noqa: PLC0415 - most projects need no approval
        from nexus_core.trust.store import TrustStore  # noqa: PLC0415 - as above
        from nexus_core.values.finding import Finding  # noqa: PLC0415 - as above

        store = TrustStore(self._request.home, workspace=workspace_of(self._request.cwd))
        if store.problem:
            self.findings.append(Finding("trust-store", store.problem))
        return store

    def decide(self, part: ActivePart) -> Decision:
        """Return the user's decision; the directories of servers are compared before a start only."""
        decision = self._store.decide(part, is_quick=part.pointer.startswith(f"/{SERVERS}/"))
        if decision == "changed":
            self._find_outdated(part)
        return decision

    def complete(self, part: ActivePart) -> ActivePart:
        """A part with the digests of its code, if all of it was looked at, so that a later change can be seen."""
        if part.decision != "allowed" or part.pointer.startswith(f"/{SERVERS}/"):
            return part
        return replace(part, content=self._store.approved_content(part) or part.content)

    def judge_home(self) -> ActivePart | None:
        """The user's own settings with the decision about them, where they may have come with a repository."""
        from nexus_core.files.places import home_repository  # noqa: PLC0415 - as above

        repository = home_repository(self._request.home)
        if repository is None:
            return None
        from nexus_core.trust.store import home_part  # noqa: PLC0415 - as above
        from nexus_core.values.finding import Finding  # noqa: PLC0415 - as above

        part = home_part(self._request.home)
        if part is None:
            return None
        part = replace(part, decision=self._store.decide(part))
        if part.decision != "allowed":
            changed = "; they have changed since you approved them" if part.decision == "changed" else ""
            message = (
                f"your home directory lies in the repository {repository}, so the settings in {part.path} may have "
                f"come with it, and count as those of a project{changed}; if they are yours, `nexus trust allow home` "
                "approves them as they are now, or set NEXUS_HOME to a directory outside the repository"
            )
            self.findings.append(Finding("home-in-repository", message, part.path))
        return part

    def _find_outdated(self, part: ActivePart) -> None:
        """Add a finding for an approval that was made before approvals covered code."""
        from nexus_core.trust.coverage import is_outdated  # noqa: PLC0415 - as above
        from nexus_core.trust.fingerprint import one_line  # noqa: PLC0415 - as above
        from nexus_core.values.finding import Finding  # noqa: PLC0415 - as above

        if is_outdated(self._store.approved_content(part) or "", part.content):
            message = (
                f"you approved {one_line(part.pointer)} before approvals covered all the code that a program of the "
                "project runs, so you are asked once more; `nexus trust allow` shows what is covered, and decides"
            )
            self.findings.append(Finding("outdated-approval", message, part.path, part.line))


def _gather(
    ask: Callable[[Layer], tuple[list[T], list[Skipped]]], layers: Iterable[Layer], skipped: list[Skipped]
) -> list[T]:
    """What is found in all layers; what is looked for in vain is added to `skipped`."""
    gathered: list[T] = []
    for layer in layers:
        found, in_vain = ask(layer)
        gathered += found
        skipped += in_vain
    return gathered
