"""Other AMQP 1.0 brokers, installed by `make peers` and started by `imori bench`."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.imori import BINARY, REPOSITORY

PEERS = REPOSITORY / ".tools/peers"
# Artemis accepts no messages on a disk that is 90 % full; the tests write little.
MEMORY = "/dev/shm"
# Makes Broker-J use its default virtual host for clients that name no host.
OPTIONS = {"broker-j": "?amqp.vhost="}


def is_installed(kind: str) -> bool:
    """Returns whether `make peers` has installed a broker."""
    return any(PEERS.glob(f"apache-*{kind}-*"))


@contextmanager
def running_peer(kind: str) -> Iterator[str]:
    """Starts a broker and yields its URL; it ends once its standard input is closed."""
    command = [BINARY, "bench", "peers", f"{kind}:amqp10", "--peers-dir", str(PEERS)]
    environment = {**os.environ, "TMPDIR": MEMORY} if Path(MEMORY).exists() else None
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"@([\d.]+:\d+)", process.stdout.readline())
            assert found is not None, f"`{kind}` did not start"
            yield f"amqp://{found[1]}{OPTIONS.get(kind, '')}"
        finally:
            process.communicate()
