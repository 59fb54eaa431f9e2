"""npm's packages come from a registry that the user may choose, and only with the digest that we know."""

import hashlib
import io
import tarfile

import pytest
from http_server import serving_folder

from h2t2_tools.boards.emulators import npm
from h2t2_tools.common.errors import Failure


def archive(text):
    """A package's archive with one file, as npm writes it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("package/index.js")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


@pytest.mark.parametrize("trouble", ["", "changed", "absent"])
def test_a_package_is_unpacked_if_it_is_the_one_we_know(trouble, tmp_path, monkeypatch):
    content = archive(b"export {}")
    package = npm.Package("@some/chip", "1.2.3", hashlib.sha512(content).hexdigest())
    place = tmp_path / "registry/@some/chip/-/chip-1.2.3.tgz"
    place.parent.mkdir(parents=True)
    if trouble != "absent":
        place.write_bytes(content + b"x" * (trouble == "changed"))
    with serving_folder(tmp_path / "registry") as registry:
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", registry + "/")
        if trouble:
            with pytest.raises(Failure, match="404" if trouble == "absent" else "another file than @some/chip@1.2.3"):
                npm.unpack(package, tmp_path / "cache")
            assert not (tmp_path / "cache").exists()
        else:
            npm.unpack(package, tmp_path / "cache")
            assert (tmp_path / "cache/package/index.js").read_bytes() == b"export {}"
