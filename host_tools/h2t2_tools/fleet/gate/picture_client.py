"""Fetches pictures by URL from the hosts that a configuration allows: bounded in size and time, and without redirects."""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import httpx

from .. import failures
from ..calls import Calls, Limits
from ..failures import Later, Misconfigured, Refused
from .media import media_of

PORTS = {"http": 80, "https": 443}
LONGEST_URL = 2000  # characters
PLACE = re.compile(r"(\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[\w.-]+))(?P<bits>/\d{1,3})?(:(?P<port>\d{1,5}))?", re.ASCII)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


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
        self._allowed, self._limits = allowed, Limits(seconds=seconds, size=limit, repeat_s=wait)
        self._calls = Calls(failures.of_picture_status, trust_env=False)  # no proxy of the environment sees the request

    def fetch(self, url: str) -> tuple[bytes, str]:
        """(bytes, media type) of the picture at a URL.

        Raises:
            Refused: the address is not allowed, or what is there is no picture.
            Later: the picture may be there later.
            Misconfigured: its server wants a login, for example.
        """
        end = time.monotonic() + self._limits.seconds
        try:
            request = self._checked(url)
            limits = replace(self._limits, seconds=max(0.0, end - time.monotonic()))
            content = self._calls.call(request, limits).content
        except (Later, Misconfigured) as error:
            error.of_sample = True  # a message may name any picture of an allowed host
            raise
        try:
            return content, media_of(content)
        except ValueError as error:
            raise Refused(f"{url}: {error}") from None

    def close(self) -> None:
        """End the connections, and the calls under way."""
        self._calls.close()

    def _checked(self, url: str) -> httpx.Request:
        """The request for an allowed URL. A name that a network allows is asked at the address that was checked."""
        try:
            parts = httpx.URL(url[: LONGEST_URL + 1])
        except httpx.InvalidURL as error:
            raise Refused(f"{url[:80]}: {error}") from None
        if parts.scheme not in PORTS or not parts.host or parts.userinfo or len(url) > LONGEST_URL:
            raise Refused(f"{url[:80]}: want a short http:// or https:// URL with a host and without a user")
        usual = PORTS[parts.scheme]
        host, port = parts.host, parts.port or usual
        places = [place for place in self._allowed if port == (usual if place.port is None else place.port)]
        if any(place.host == host for place in places):
            return self._calls.request("GET", parts)
        networks = [place.network for place in places if place.network is not None]
        addresses = self._calls.addresses(host, port, self._limits.seconds) if networks else []
        inside = [any(ipaddress.ip_address(address) in network for network in networks) for address in addresses]
        if not all(inside) or not networks:
            raise Refused(f"{host}:{port}: not in picture_hosts")
        if not addresses:
            raise Later(f"{host}: nobody knows the address of this name")
        headers = {"Host": parts.netloc.decode("ascii")}
        extensions = {"sni_hostname": host}
        return self._calls.request("GET", parts.copy_with(host=addresses[0]), headers=headers, extensions=extensions)
