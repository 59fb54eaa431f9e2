"""Fetches and unpacks npm packages without their dependencies, because the packages that we use have none. It needs no npm."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ...common.errors import Failure
from . import download
from .debian import run

REGISTRY = "https://registry.npmjs.org"  # unless npm's own variable names another


@dataclass(frozen=True)
class Package:
    """A version of an npm package, and the SHA-512 of its archive in the registry (`npm view NAME dist.integrity`)."""

    name: str
    version: str
    sha512: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def path(self) -> str:
        """The archive's place in a registry."""
        return f"{self.name}/-/{self.name.rpartition('/')[2]}-{self.version}.tgz"


RP2040JS = Package(
    "rp2040js",
    "1.4.1",
    "633af9c46ed9c1bb40e74218014d64fe84a84b20c084fb53e6a0bf436785029a"
    "0bb80604f0341b3c830fb3fd2487821eb5de0fd0ea4a93708891f36a8dcaf9ea",
)


def unpack(package: Package, target: Path) -> None:
    """Unpack a package into the folder `package` below `target`. Raise Failure without a network, or if its digest differs."""
    url = f"{os.environ.get('NPM_CONFIG_REGISTRY', REGISTRY).rstrip('/')}/{package.path}"
    content = download.content(url)
    if hashlib.sha512(content).hexdigest() != package.sha512:
        raise Failure(f"{url}: another file than {package}, by its SHA-512")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix="h2t2-npm-", suffix=".tgz") as archive:
        archive.write(content)
        archive.flush()
        run(["tar", "-xzf", archive.name, "-C", str(target)], target)
