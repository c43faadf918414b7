"""Other brokers of AMQP 1.0, as `make peers` installs them and `imori bench` starts them."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.imori import BINARY, REPOSITORY

PEERS = REPOSITORY / ".tools/peers"
# Artemis takes no messages where a disk is nine tenths full; a test writes little.
MEMORY = "/dev/shm"
# Broker-J gives its default virtual host to clients that name no host.
OPTIONS = {"broker-j": "?amqp.vhost="}


def is_installed(kind: str) -> bool:
    """Tells whether `make peers` has put a broker here."""
    return any(PEERS.glob(f"apache-*{kind}-*"))


@contextmanager
def running_peer(kind: str) -> Iterator[str]:
    """Starts a broker and gives its URL; it ends with what it reads."""
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
