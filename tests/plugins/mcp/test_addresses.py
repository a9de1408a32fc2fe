from __future__ import annotations

import pytest

from nexus_plugins.mcp._running.addresses import fault_of

REFUSED = [
    "http://example.com/mcp",
    "http://169.254.169.254/latest/meta-data/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[fe80::1]/mcp",
    "https://[::ffff:169.254.169.254]/mcp",
    "https://0.0.0.0/mcp",
    "https://[::]/mcp",
    "https://127.0.0.2/mcp",
    "https://[::ffff:127.0.0.1]/mcp",
    "https://224.0.0.1/mcp",
    "http://192.168.0.1/mcp",
    "http://10.0.0.1/mcp",
    "ftp://example.com/mcp",
    "file:///etc/passwd",
    "gopher://example.com",
    "javascript:alert(1)",
    "//example.com/mcp",
    "https://",
    "https://example.com:99999/mcp",
    "http://[::1",
]


@pytest.mark.acceptance("T23")
@pytest.mark.parametrize("url", REFUSED)
def test_a_project_does_not_lead_to_what_only_this_machine_can_reach(url: str) -> None:
    assert fault_of(url, own=False)


@pytest.mark.parametrize("url", ["https://93.184.216.34/mcp", "http://localhost:9000", "http://127.0.0.1:9000/mcp"])
def test_an_encrypted_address_and_this_machine_by_its_own_name_are_fine(url: str) -> None:
    assert fault_of(url, own=False) == ""


def test_the_user_may_connect_to_the_network_at_home() -> None:
    assert fault_of("http://192.168.0.1/mcp", own=True) == ""


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://", "nonsense"])
def test_what_is_no_address_is_none_for_anybody(url: str) -> None:
    assert fault_of(url, own=True)
