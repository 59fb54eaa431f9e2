"""Sends the jobs of sweep() to a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from ...common.errors import Failure, UserError

PATIENCE_S = 10  # a scheduler that has not answered by then is not there


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Run every sweep() of the block on a Dask cluster.

    Args:
        address: The scheduler's address, such as tcp://host:8786; None: the cores of this machine.

    Raises:
        UserError: No scheduler answers at the address, or the address is none.
        Failure: The cluster has no worker, or a worker has another version of h2t2.
    """
    if address is None:
        yield
        return
    import distributed
    import joblib

    try:
        client = distributed.Client(address, timeout=PATIENCE_S)
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"--dask {address}: no scheduler answers there ({reason}); `dask scheduler` starts one") from None
    with client:
        try:
            versions = client.run(_version)
        except ModuleNotFoundError as error:
            raise Failure(
                f"--dask {address}: a worker lacks {error.name}: install 'h2t2-edge[cluster]' on all of them"
            ) from None
        _check_workers(address, versions)
        with joblib.parallel_config(backend="dask"):
            yield


def _version() -> str:
    """The version of h2t2-edge where this runs."""
    return metadata.version("h2t2-edge")


def _check_workers(address: str, versions: dict[str, str]) -> None:
    if not versions:
        raise Failure(f"--dask {address}: the cluster has no worker; `dask worker {address}` starts one")
    for worker, version in versions.items():
        if version != _version():
            raise Failure(
                f"--dask {address}: the worker {worker} has h2t2 {version}, this machine {_version()}; install the same"
            )
