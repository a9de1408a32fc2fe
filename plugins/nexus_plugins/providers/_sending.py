"""One attempt: a request goes out, and what comes back is read as far as one may.

Nothing is raised. An exception would carry along the frames of whoever had the key in hand.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from nexus_plugins.providers._addresses import is_encrypted

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2

    from nexus_plugins.providers._secrets import Secret, Secrets

LARGEST = 8 * 1024 * 1024
"""Bytes of an answer; the longest summary has a tenth of that."""
LARGEST_REFUSAL = 64 * 1024
"""Bytes that are read of an answer that says what went wrong."""
CONNECTING = 10.0
"""Seconds in which a connection must stand."""


class Reply(NamedTuple):
    """What came back: status, headers with names in small letters, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def masked(self, secrets: Secrets) -> Reply:
        """The same without what was sent in secret, because some send it back."""
        headers = {name: secrets.mask(value) for name, value in self.headers.items()}
        # Latin-1 is the one encoding in which every byte is a character.
        return Reply(self.status, headers, secrets.mask(self.body.decode("latin-1")).encode("latin-1"))


class Silence(NamedTuple):
    """That nothing came back which could be read.

    Attributes:
        why: What happened, for a sentence that begins with the endpoint.
        again: Whether another attempt may have more luck.
    """

    why: str
    again: bool

    def masked(self, secrets: Secrets) -> Silence:
        """As for an answer."""
        return Silence(secrets.mask(self.why), self.again)


class Outgoing(NamedTuple):
    """A request.

    Attributes:
        url: Where it goes.
        body: What it says, as JSON.
        headers: What is sent besides; secrets are revealed when it goes out.
    """

    url: str
    body: bytes
    headers: Mapping[str, str | Secret]


def send(outgoing: Outgoing, seconds: float) -> Reply | Silence:
    """What comes back within so many seconds.

    Redirects are not followed, because they would carry the key elsewhere. Certificates are always checked. A proxy
    from the environment is used for encrypted connections only: it could read along with any other.
    """
    import httpx2  # noqa: PLC0415 - only who asks a model pays for it

    deadline = time.monotonic() + seconds
    timeout = httpx2.Timeout(seconds, connect=min(CONNECTING, seconds))
    try:
        with httpx2.Client(timeout=timeout, follow_redirects=False, trust_env=is_encrypted(outgoing.url)) as client:
            headers = {name: _revealed(value) for name, value in outgoing.headers.items()}
            with client.stream("POST", outgoing.url, content=outgoing.body, headers=headers) as response:
                return _read(response, deadline) or _late(seconds)
    except (httpx2.ReadTimeout, httpx2.WriteTimeout):
        return _late(seconds)
    except httpx2.TransportError as error:
        return Silence(f"could not be reached: {_named(error)}", again="CERTIFICATE_VERIFY_FAILED" not in str(error))
    except Exception as error:  # noqa: BLE001 - see above; a proxy that cannot be used is an ImportError, for instance
        return Silence(f"could not be asked: {_named(error)}", again=False)


def _read(response: httpx2.Response, deadline: float) -> Reply | Silence | None:
    """An answer as a whole; None where its end does not come in time."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    if headers.get("content-encoding", "identity").lower() != "identity":
        return Silence("compressed its answer, which it was not asked to do", again=False)
    chunks: list[bytes] = []
    size = 0
    for chunk in response.iter_raw():
        chunks.append(chunk)
        size += len(chunk)
        if not response.is_success and size > LARGEST_REFUSAL:
            break
        if size > LARGEST:
            return Silence(f"answered with more than {LARGEST // 1024 // 1024} MiB", again=False)
        if time.monotonic() > deadline:
            return None
    return Reply(response.status_code, headers, b"".join(chunks))


def _late(seconds: float) -> Silence:
    # Whoever writes for so long would write as long again, and charge twice.
    return Silence(f"gave no answer in {seconds:.3g} seconds", again=False)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _revealed(value: str | Secret) -> str:
    return value if isinstance(value, str) else value.reveal()
