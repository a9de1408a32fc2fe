"""Signing in to servers: the flow of the SDK against its own authorization server."""

from __future__ import annotations

import json
import logging
import stat
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from mcp.client.auth import OAuthTokenError
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from nexus_core import Nexus
from nexus_core.plugin.files import file_lock
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp._connections import ServerPool, ServerTimeouts
from nexus_plugins.mcp._errors import ServerError, ServerRefusedError
from nexus_plugins.mcp._launch import (
    TOKENS_DIRECTORY,
    delete_token_files,
    find_token_file,
    prepare_launch,
)
from nexus_plugins.mcp._oauth import CallbackListener, LoginAuth, StoredTokenAuth, TokenFile, sign_in
from tests.conftest import Cli
from tests.plugins.mcp.http_world import Handler, serving
from tests.plugins.mcp.oauth_world import OAuthWorld, signing_in
from tests.plugins.mcp.world import define, servers_of

SECONDS = 60


@pytest.fixture(scope="module")
def shared_world() -> Iterator[OAuthWorld]:
    with signing_in() as world:
        yield world


@pytest.fixture
def world(shared_world: OAuthWorld) -> OAuthWorld:
    """The server of this file, as if it had just been started."""
    issuer = shared_world.issuer
    issuer.forget_all()
    issuer.lifetime, issuer.refuses = 3600, False
    issuer.issued.clear()
    issuer.grants.clear()
    return shared_world


def browse(url: str) -> None:
    """Open a page as a browser does, and follow it to where it leads."""
    with urllib.request.urlopen(url, timeout=SECONDS) as page:  # noqa: S310 - on the loopback interface
        page.read()


def sign_in_here(nexus: Nexus, name: str = "web", visit: Any = browse) -> bool:
    request = nexus.request()
    launch = prepare_launch(servers_of(nexus)[name], nexus.load(request), request)

    results: list[bool] = []

    async def main() -> None:
        async with anyio.create_task_group() as tasks:

            def show(url: str) -> None:
                tasks.start_soon(anyio.to_thread.run_sync, partial(visit, url))

            results.append(await sign_in(launch, show, port=0, seconds=SECONDS))

    try:
        anyio.run(main)
        return results[0]
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def add(nexus: Nexus, name: str = "web") -> str:
    request = nexus.request()

    async def main() -> Any:
        async with ServerPool(nexus.load(request), request, ServerTimeouts(SECONDS, SECONDS)) as links:
            return await links.call(servers_of(nexus)[name], "add", {"a": 2, "b": 3})

    return str(anyio.run(main).content[0].text)


def token_file(nexus: Nexus, home: Path, name: str = "web") -> Path:
    return find_token_file(home, name, servers_of(nexus)[name].config.url)


def test_a_server_that_asks_for_signing_in_names_the_command_and_starts_nothing(
    make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld
) -> None:
    define(nexus_home, web={"url": world.url})

    with pytest.raises(ServerError, match=r"requires signing in \(OAuth, HTTP 401\)") as caught:
        add(make_nexus())

    assert caught.value.hint == "nexus mcp login web"
    assert world.issuer.grants == []
    assert not (nexus_home / TOKENS_DIRECTORY).exists()


@pytest.mark.acceptance("T10")
def test_who_has_signed_in_uses_the_server_and_nobody_else_can_read_the_tokens(
    make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld
) -> None:
    define(nexus_home, web={"url": world.url})
    nexus = make_nexus()

    signed_in = sign_in_here(nexus)
    first, second = add(nexus), add(nexus)

    path = token_file(nexus, nexus_home)
    assert (signed_in, first, second) == (True, "5", "5")
    assert world.issuer.grants == ["code"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.slow
def test_a_token_that_has_expired_is_renewed_and_stored(
    make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld
) -> None:
    define(nexus_home, web={"url": world.url})
    nexus = make_nexus()
    world.issuer.lifetime = 1  # less than the leeway: expired at once
    sign_in_here(nexus)
    world.issuer.lifetime = 3600

    answers = [add(nexus), add(nexus)]

    stored = json.loads(token_file(nexus, nexus_home).read_text())
    assert answers == ["5", "5"]
    assert world.issuer.grants == ["code", "refresh"]
    assert stored["tokens"]["access_token"] == world.issuer.issued[-2]
    assert stored["expires_at"] > time.time() + 1800


@pytest.mark.slow
def test_a_token_that_is_refused_before_its_time_is_renewed(
    make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld
) -> None:
    define(nexus_home, web={"url": world.url})
    nexus = make_nexus()
    sign_in_here(nexus)
    world.issuer.forget_access()

    assert add(nexus) == "5"
    assert world.issuer.grants == ["code", "refresh"]


@pytest.mark.slow
def test_connections_that_renew_at_the_same_time_send_the_refresh_token_once(
    make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(nexus_home, web={"url": world.url})
    nexus = make_nexus()
    world.issuer.lifetime = 1  # less than the leeway: expired at once
    sign_in_here(nexus)
    world.issuer.lifetime = 3600
    all_expired = threading.Barrier(3)

    def meet(lock: Path) -> AbstractContextManager[None]:
        all_expired.wait(SECONDS)
        return file_lock(lock)

    monkeypatch.setattr("nexus_plugins.mcp._oauth.file_lock", meet)

    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda _: add(nexus), range(3)))

    stored = json.loads(token_file(nexus, nexus_home).read_text())
    assert answers == ["5", "5", "5"]
    assert world.issuer.grants == ["code", "refresh"]
    assert stored["tokens"]["refresh_token"] == world.issuer.issued[-1]


@pytest.mark.slow
def test_a_connection_waits_for_the_process_that_renews_and_uses_its_tokens(
    make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(nexus_home, web={"url": world.url})
    nexus = make_nexus()
    world.issuer.lifetime = 1
    sign_in_here(nexus)
    path, waits, events = token_file(nexus, nexus_home), threading.Event(), list[str]()

    @contextmanager
    def announce(lock: Path) -> Iterator[None]:
        waits.set()
        with file_lock(lock):
            events.append("connection holds the lock")
            yield

    monkeypatch.setattr("nexus_plugins.mcp._oauth.file_lock", announce)
    with ThreadPoolExecutor(1) as threads:
        with file_lock(path.with_suffix(".lock")):
            # What another process does: the old refresh token is spent, and the new one not stored yet.
            stored = json.loads(path.read_text())
            world.issuer.lifetime = 3600
            renewed = world.issuer.rotate(stored["tokens"]["refresh_token"])
            answer = threads.submit(add, nexus)
            assert waits.wait(SECONDS)
            stored |= {"tokens": renewed.model_dump(mode="json"), "expires_at": time.time() + 3600}
            path.write_text(json.dumps(stored))
            events.append("tokens are stored")

        assert answer.result(SECONDS) == "5"
    assert events == ["tokens are stored", "connection holds the lock"]
    assert world.issuer.grants == ["code", "refresh"]
    assert json.loads(path.read_text())["tokens"]["refresh_token"] == renewed.refresh_token


def store_tokens(
    path: Path, token: str, *, expires_at: float | None = None, url: str = "https://example.org/mcp"
) -> TokenFile:
    """Store a login as another process would, and return its file."""
    storage = TokenFile(path, "web", url)
    storage.login.tokens = OAuthToken(access_token=token, refresh_token=f"refresh-{token}")
    storage.login.expires_at = expires_at
    storage.login.client = OAuthClientInformationFull.model_validate(
        {"client_id": "nexus", "redirect_uris": ["http://127.0.0.1/callback"]}
    )
    storage.save()
    return storage


def test_a_token_that_is_refused_is_not_renewed_if_another_process_has_stored_a_newer_one(tmp_path: Path) -> None:
    async def main() -> list[str]:
        request = httpx2.Request("POST", "https://example.org/mcp")
        flow = StoredTokenAuth(store_tokens(tmp_path / "web.json", "old")).async_auth_flow(request)
        sent = [(await anext(flow)).headers["Authorization"]]
        store_tokens(tmp_path / "web.json", "new")
        again = await flow.asend(httpx2.Response(401, request=request))
        sent += [f"{again.url} {again.headers['Authorization']}"]
        await flow.aclose()
        return sent

    assert anyio.run(main) == ["Bearer old", "https://example.org/mcp Bearer new"]


def test_tokens_that_another_process_has_deleted_are_neither_sent_nor_renewed(tmp_path: Path) -> None:
    path = tmp_path / "web.json"

    async def main() -> httpx2.Request:
        auth = StoredTokenAuth(store_tokens(path, "old", expires_at=1.0))
        path.unlink()
        flow = auth.async_auth_flow(httpx2.Request("POST", "https://example.org/mcp"))
        sent = await anext(flow)
        await flow.aclose()
        return sent

    sent = anyio.run(main)

    assert (str(sent.url), "Authorization" in sent.headers) == ("https://example.org/mcp", False)
    assert not path.exists()


def test_a_lock_that_cannot_be_created_is_an_error_with_its_path(make_nexus: MakeNexus, nexus_home: Path) -> None:
    url = "http://127.0.0.1:9/mcp"
    define(nexus_home, web={"url": url})
    nexus = make_nexus()
    path = token_file(nexus, nexus_home)
    store_tokens(path, "old", expires_at=1.0, url=url)
    lock = path.with_suffix(".lock")
    lock.mkdir()

    with pytest.raises(ServerError) as caught:
        add(nexus)

    assert f"cannot lock: Is a directory ({str(lock)[:100]}" in str(caught.value)  # a long path is cut


def test_logging_out_deletes_tokens_that_a_process_stores_while_it_holds_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = find_token_file(tmp_path, "web", "https://example.org/mcp")
    store_tokens(path, "old")

    @contextmanager
    def wait_for_renewal(lock: Path) -> Iterator[None]:
        with file_lock(lock):
            store_tokens(path, "renewed")
        with file_lock(lock):
            yield

    monkeypatch.setattr("nexus_plugins.mcp._launch.file_lock", wait_for_renewal)

    assert delete_token_files(tmp_path, "web") == 1
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.acceptance("T10")
def test_a_login_that_cannot_be_renewed_asks_for_another_and_repeats_no_token(
    make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld, caplog: pytest.LogCaptureFixture
) -> None:
    define(nexus_home, web={"url": world.url})
    nexus = make_nexus()
    caplog.set_level(logging.DEBUG)
    sign_in_here(nexus)
    world.issuer.forget_all()

    with pytest.raises(ServerError, match="does not accept your login, or it has expired") as caught:
        add(nexus)

    text = f"{caught.value}\n{caplog.text}"
    assert caught.value.hint == "nexus mcp login web"
    assert [token for token in world.issuer.issued if token in text] == []


def test_whoever_refuses_is_told_and_nothing_is_stored(
    make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld
) -> None:
    define(nexus_home, web={"url": world.url})
    world.issuer.refuses = True

    with pytest.raises(ServerError, match="was not signed in to: 'access_denied'"):
        sign_in_here(make_nexus())

    assert not (nexus_home / TOKENS_DIRECTORY).exists()


def test_a_browser_that_comes_back_from_another_attempt_is_refused_and_the_login_waits_on(
    make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld
) -> None:
    define(nexus_home, web={"url": world.url})

    def visit(url: str) -> None:
        callback = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            browse(callback.replace("/callback", "/other"))
        for forged in ("code=forged&state=forged", "error=forged", "code=forged&state=%C3%A9"):
            with pytest.raises(urllib.error.HTTPError, match="400"):
                browse(f"{callback}?{forged}")
        browse(url)

    assert sign_in_here(make_nexus(), visit=visit) is True
    assert world.issuer.grants == ["code"]


@pytest.mark.slow
@pytest.mark.acceptance("T10")
def test_tokens_are_not_sent_to_another_address_nor_where_a_server_redirects_to(
    make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld
) -> None:
    heard: list[str] = []

    def listen(handler: Handler, _: object) -> None:
        heard.append(str(handler.headers).lower())
        handler.reply(401)

    define(nexus_home, web={"url": world.url})
    sign_in_here(make_nexus())
    login = json.loads(find_token_file(nexus_home, "web", world.url).read_text())
    with (
        serving("anything", listen) as other,
        serving("anything", lambda handler, _: handler.reply(307, b"", {"location": other.url})) as moved,
    ):
        define(nexus_home, web={"url": other.url}, moved={"url": moved.url})
        nexus = make_nexus()
        # A login for the server that redirects.
        token_file(nexus, nexus_home, "moved").write_text(json.dumps(login | {"url": moved.url}))
        for name in ("web", "moved"):
            with pytest.raises(ServerError):
                add(nexus, name)

    assert heard
    assert [text for text in heard if "authorization" in text] == []


def test_an_authorization_server_elsewhere_must_be_encrypted(make_nexus: MakeNexus, nexus_home: Path) -> None:
    def lead_away(handler: Handler, _: object) -> None:
        if handler.command == "POST":
            handler.server.at = "GET"
            handler.reply(401, b"", {"www-authenticate": "Bearer"})
        else:
            document = {"resource": handler.server.url, "authorization_servers": ["http://auth.example"]}
            handler.reply(200, json.dumps(document).encode())

    with serving("anything", lead_away) as world:
        define(nexus_home, web={"url": world.url})

        with pytest.raises(ServerError, match=r"'auth\.example' is local, or not encrypted"):
            sign_in_here(make_nexus())


def test_a_server_without_oauth_is_named_as_such(make_nexus: MakeNexus, nexus_home: Path) -> None:
    def refuse(handler: Handler, _: object) -> None:
        is_server = handler.path == urlsplit(handler.server.url).path
        handler.server.at = "GET"
        handler.reply(401 if is_server else 404)

    with serving("anything", refuse) as world:
        define(nexus_home, web={"url": world.url})

        with pytest.raises(ServerError, match="it does not offer OAuth"):
            sign_in_here(make_nexus())


@pytest.mark.parametrize("token", ["", "two words", "a\r\nX-Other: b", "é"])
def test_a_token_that_is_not_visible_ascii_is_not_stored(tmp_path: Path, token: str) -> None:
    storage = TokenFile(tmp_path / "tokens.json", "web", "https://x.example/mcp")

    for fields in ({"access_token": token}, {"access_token": "good", "refresh_token": token}):
        with pytest.raises(OAuthTokenError) as caught:
            anyio.run(storage.set_tokens, OAuthToken.model_validate(fields))
        assert not token or token not in str(caught.value)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("server", "page", "is_shown"),
    [
        ("https://x.example/mcp", "https://auth.example/", True),
        ("http://127.0.0.1:1/mcp", "http://localhost:2/", True),
        ("https://x.example/mcp", "http://localhost:2/", False),
        ("http://127.0.0.1:1/mcp", "http://auth.example/", False),
        ("http://127.0.0.1:1/mcp", "file://localhost/etc/hosts", False),
    ],
)
def test_a_page_for_signing_in_is_encrypted_or_as_local_as_its_server(
    tmp_path: Path, server: str, page: str, is_shown: bool
) -> None:
    shown: list[str] = []

    async def main() -> None:
        storage = TokenFile(tmp_path / "tokens.json", "web", server)
        auth = LoginAuth(storage, CallbackListener("web", 1), shown.append)
        assert auth.context.redirect_handler is not None
        await auth.context.redirect_handler(f"{page}?state=1")

    with nullcontext() if is_shown else pytest.raises(ServerError, match="not encrypted"):
        anyio.run(main)

    assert shown == ([f"{page}?state=1"] if is_shown else [])


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_the_command_refuses_a_port_that_cannot_be(cli: Cli, port: str) -> None:
    outcome = cli("mcp", "login", "web", "--port", port)

    assert outcome.code == 2
    assert "Invalid value for '--port'" in outcome.err


@pytest.mark.parametrize("seconds", ["-3", "0", "nan", "inf", "1e300"])
def test_the_command_refuses_a_timeout_that_cannot_be(cli: Cli, seconds: str) -> None:
    outcome = cli("mcp", "login", "web", "--timeout", seconds)

    assert outcome.code == 2
    assert "--timeout must be a number of seconds, not" in outcome.err


def test_a_project_signs_in_only_after_its_server_is_approved(
    make_nexus: MakeNexus, work: Path, world: OAuthWorld
) -> None:
    write_files(work, {".nexus3/mcp.json": json.dumps({"servers": [{"name": "web", "url": world.url}]})})

    with pytest.raises(ServerRefusedError, match="is not approved"):
        sign_in_here(make_nexus())


def test_a_damaged_token_file_is_as_good_as_none(make_nexus: MakeNexus, nexus_home: Path, world: OAuthWorld) -> None:
    define(nexus_home, web={"url": world.url})
    nexus = make_nexus()
    write_files(nexus_home, {f"{TOKENS_DIRECTORY}/{token_file(nexus, nexus_home).name}": '{"tokens": 7'})

    with pytest.raises(ServerError, match="requires signing in"):
        add(nexus)


def test_a_server_that_does_not_ask_is_used_as_before(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving() as plain:
        define(nexus_home, web={"url": plain.url})

        assert sign_in_here(make_nexus()) is False

    assert not (nexus_home / TOKENS_DIRECTORY).exists()


@pytest.mark.parametrize(
    ("server", "what"),
    [
        ({"command": ["x"]}, "is a program, which needs no signing in"),
        ({"url": "https://x.example", "headers": {"Authorization": "Bearer ${HOME}"}}, "has a header Authorization"),
    ],
)
def test_the_command_refuses_servers_that_need_no_signing_in(
    cli: Cli, nexus_home: Path, server: dict[str, Any], what: str
) -> None:
    define(nexus_home, web=server)

    outcome = cli("mcp", "login", "web")

    assert outcome.code != 0
    assert what in outcome.err


@pytest.mark.slow
def test_the_command_prints_the_page_and_logging_out_deletes_the_tokens(
    cli: Cli, nexus_home: Path, world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(nexus_home, web={"url": world.url})
    opened: list[str] = []

    def open_page(url: str) -> None:
        opened.append(url)
        threading.Thread(target=browse, args=(url,), daemon=True).start()

    monkeypatch.setattr("webbrowser.open", open_page)

    login = cli("mcp", "login", "web", "--browser")
    shown = "".join(cli(*command).out for command in (("mcp", "export"), ("mcp", "list", "--json"), ("show",)))
    outcomes = [cli("mcp", "logout", "web").err for _ in range(2)]

    assert login.out.splitlines() == opened
    assert login.err.splitlines()[-1] == "Signed in to web; `nexus mcp logout web` deletes its tokens."
    assert [token for token in world.issuer.issued if token in shown + login.out + login.err] == []
    assert outcomes == ["Deleted the tokens of web.\n", "There are no tokens of web.\n"]
    left = list((nexus_home / TOKENS_DIRECTORY).iterdir())
    assert [(each.suffix, each.stat().st_size) for each in left] == [(".lock", 0)]


def test_the_command_does_not_wait_longer_than_it_is_told(cli: Cli, nexus_home: Path, world: OAuthWorld) -> None:
    define(nexus_home, web={"url": world.url})

    outcome = cli("mcp", "login", "web", "--timeout", "0.001")

    assert outcome.code != 0
    assert "was not signed in to within 0.001 seconds" in outcome.err
