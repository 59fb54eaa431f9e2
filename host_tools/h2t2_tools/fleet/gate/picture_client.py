"""Fetches pictures by URL from the hosts that a configuration allows: bounded in size and time, and without redirects."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from .message import media_of

PORTS = {"http": 80, "https": 443}
LONGEST_URL = 2000  # characters
ABSENT = (404, 503)  # status of a picture that its server may have later
PAUSE_S = 0.2  # between two requests for it
PLACE = re.compile(r"(\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[\w.-]+))(?P<bits>/\d{1,3})?(:(?P<port>\d{1,5}))?", re.ASCII)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Unreadable(ValueError):
    """A picture that cannot be had: its address is not allowed, or what is there is no picture."""


class Absent(Unreadable):
    """The server has no such picture, or not yet."""


@dataclass(frozen=True)
class Allowed:
    """A place that pictures may come from.

    Attributes:
        host: a name or an address; "" for a network.
        network: addresses; a name is allowed where all its addresses are inside.
        port: None: the usual port of http or https.
    """

    host: str = ""
    network: Network | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Allowed:
        """The place in HOST, HOST:PORT, NETWORK/BITS or NETWORK/BITS:PORT. IPv6 stands in [ ]. ValueError for anything else."""
        match = PLACE.fullmatch(text)
        if not match:
            raise ValueError(f"{text}: want HOST, HOST:PORT, NETWORK/BITS or NETWORK/BITS:PORT")
        host, bits, port = (match["six"] or match["host"]).lower(), match["bits"], match["port"]
        try:
            network = ipaddress.ip_network(host + bits) if bits else None
        except ValueError as error:
            raise ValueError(f"{text}: {error}") from None
        return cls("" if bits else host, network, int(port) if port else None)


class PictureClient:
    """Fetches pictures, for several threads.

    Args:
        allowed: where they may come from.
        limit: bytes of a picture.
        seconds: of a request, until its last byte.
        wait: seconds in which a picture may appear that the server does not have yet.
    """

    def __init__(self, allowed: Sequence[Allowed], limit: int, seconds: float, wait: float = 0.0) -> None:
        self._allowed, self._limit, self._seconds, self._wait = allowed, limit, seconds, wait
        self._closed = threading.Event()
        # no redirect may lead elsewhere, no proxy of the environment sees the request, no compressed answer may expand
        headers = {"Accept-Encoding": "identity", "User-Agent": "h2t2"}
        self._http = httpx.Client(follow_redirects=False, trust_env=False, headers=headers)

    def fetch(self, url: str) -> tuple[bytes, str]:
        """(bytes, media type) of the picture at a URL.

        Raises:
            Unreadable: the address is not allowed, or there is no picture.
        """
        request = self._checked(url)
        latest = time.monotonic() + self._wait
        while True:
            try:
                content = self._content(url, request)
                break
            except Absent:
                if time.monotonic() >= latest or self._closed.wait(PAUSE_S):
                    raise
        try:
            return content, media_of(content)
        except ValueError as error:
            raise Unreadable(f"{url}: {error}") from None

    def close(self) -> None:
        """End the connections."""
        self._closed.set()
        self._http.close()

    def _content(self, url: str, request: httpx.Request) -> bytes:
        """The bytes at a URL. Absent where its server has none; Unreadable for another failure."""
        end = time.monotonic() + self._seconds
        content = bytearray()
        try:
            answer = self._http.send(request, stream=True)
            with contextlib.closing(answer):
                if answer.status_code in ABSENT:
                    raise Absent(f"{url}: status {answer.status_code}")
                if answer.status_code != 200:
                    raise Unreadable(f"{url}: status {answer.status_code}")
                if answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise Unreadable(f"{url}: it is compressed, which the request forbids")
                for chunk in answer.iter_raw():
                    content += chunk
                    if len(content) > self._limit:
                        raise Unreadable(f"{url}: more than {self._limit:,} bytes")
                    if time.monotonic() > end:
                        raise Unreadable(f"{url}: no whole picture in {self._seconds:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unreadable(f"{url}: {error or type(error).__name__}") from None
        return bytes(content)

    def _checked(self, url: str) -> httpx.Request:
        """The request for an allowed URL. A name that a network allows is asked at the address that was checked."""
        try:
            parts = httpx.URL(url[: LONGEST_URL + 1])
        except httpx.InvalidURL as error:
            raise Unreadable(f"{url[:80]}: {error}") from None
        if parts.scheme not in PORTS or not parts.host or parts.userinfo or len(url) > LONGEST_URL:
            raise Unreadable(f"{url[:80]}: want a short http:// or https:// URL with a host and without a user")
        usual = PORTS[parts.scheme]
        host, port = parts.host, parts.port or usual
        places = [place for place in self._allowed if port == (usual if place.port is None else place.port)]
        timeout = httpx.Timeout(self._seconds).as_dict()
        if any(place.host == host for place in places):
            return self._http.build_request("GET", parts, extensions={"timeout": timeout})
        networks = [place.network for place in places if place.network is not None]
        address = _address(host, port, networks) if networks else ""
        if not address:
            raise Unreadable(f"{host}:{port}: not in picture_hosts")
        extensions = {"timeout": timeout, "sni_hostname": host}
        headers = {"Host": parts.netloc.decode("ascii")}
        return self._http.build_request("GET", parts.copy_with(host=address), headers=headers, extensions=extensions)


def _address(host: str, port: int, networks: Sequence[Network]) -> str:
    """An address of a host whose addresses all lie in the networks; "" for another host."""
    try:
        addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return ""
    inside = [any(ipaddress.ip_address(address) in network for network in networks) for address in addresses]
    return addresses[0] if addresses and all(inside) else ""
