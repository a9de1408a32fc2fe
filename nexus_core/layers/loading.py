"""Discovers layers, reads their settings and texts through the plugins, and puts them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.config.merging import merge_configs
from nexus_core.files.admission import repository_root
from nexus_core.layers.guarding import Guarded, guard_configs
from nexus_core.layers.servers import find_servers
from nexus_core.layers.texts import choose_texts
from nexus_core.trust.store import TrustStore
from nexus_core.values.finding import Finding
from nexus_core.values.loaded import Loaded

if TYPE_CHECKING:
    from nexus_core.host.host import Host
    from nexus_core.values.layer import Layer, LayerConfig, LayerText, Skipped
    from nexus_core.values.request import Request


def load_layers(host: Host, request: Request) -> Loaded:
    """What the plugins find for a request; nothing is cached, so a second call sees changed files."""
    layers, skipped = host.layers(request)
    configs = _read_configs(host, layers, skipped)
    store = TrustStore(request.home, workspace=repository_root(request.cwd) or request.cwd)
    guarded = guard_configs(configs, store.decide, host.active_settings())
    settings = merge_configs(guarded.configs, host.merge_policies())
    chosen = choose_texts(_read_texts(host, layers, skipped), settings)
    return Loaded(
        layers=tuple(layers),
        texts=tuple(chosen.texts),
        configs=tuple(guarded.configs),
        settings=settings,
        servers=find_servers(settings, guarded.configs, guarded.active),
        active=tuple(guarded.active),
        skipped=(*skipped, *chosen.skipped),
        findings=(*_store_findings(store, guarded), *guarded.findings, *chosen.findings),
    )


def _store_findings(store: TrustStore, guarded: Guarded) -> list[Finding]:
    # Nobody needs to know about the store while nothing asks for approval.
    return [Finding("trust-store", store.problem)] if store.problem and guarded.active else []


def _read_configs(host: Host, layers: list[Layer], skipped: list[Skipped]) -> list[LayerConfig]:
    configs: list[LayerConfig] = []
    for layer in layers:
        found, in_vain = host.layer_config(layer)
        configs += found
        skipped += in_vain
    return configs


def _read_texts(host: Host, layers: list[Layer], skipped: list[Skipped]) -> list[LayerText]:
    texts: list[LayerText] = []
    for layer in layers:
        found, in_vain = host.layer_texts(layer)
        texts += found
        skipped += in_vain
    return texts
