"""A network that nobody else is in, for what listens on fixed ports or has to be slow."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def network() -> Iterator[list[str]]:
    """A network of its own with nothing but loopback; gives how to run a command in it.

    Who is not root is root there, in a user namespace.
    """
    is_root = os.geteuid() == 0
    script = "ip link set lo up && echo up && exec sleep 1000"
    with subprocess.Popen(
        ["unshare", "-n" if is_root else "-rn", "sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "up\n"
            user = [] if is_root else ["-U", "--preserve-credentials"]
            yield ["nsenter", "-t", str(holder.pid), "-n", *user]
        finally:
            holder.kill()
