"""A nats-server process, the reference for NATS clients."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.deadline import DEADLINE_S
from harness.imori import REPOSITORY
from harness.process import lines_of

BINARY = os.environ.get("NATS_SERVER_BIN", str(REPOSITORY / ".tools/bin/nats-server"))

# Like a new Imori: clients without a name are `guest`, and a wrong name is refused.
GUEST = """
authorization { users: [{ user: guest, password: guest }] }
no_auth_user: guest
"""


@contextmanager
def running_nats_server(
    folder: Path, settings: str, port: int
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Starts a server with the configuration text `settings`; yields process and port."""
    assert Path(BINARY).exists(), f"`{BINARY}` is missing; run `ci/setup.sh reference`"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "nats-server.conf"
    file.write_text(f'listen: "127.0.0.1:{port or -1}"\n{settings}\n')
    command = [BINARY, "--config", str(file)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process, _port(process)
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[str]) -> int:
    """Reads the log up to the line that reports readiness."""
    assert process.stderr is not None
    lines = lines_of(process.stderr)
    port = 0
    log: list[str] = []
    while True:
        line = lines.get(timeout=DEADLINE_S)
        assert line is not None, "nats-server ended before it was ready:\n" + "\n".join(log)
        log.append(line)
        if "Listening for client connections on" in line:
            port = int(line.rsplit(":", 1)[1])
        if line.endswith("Server is ready"):
            assert port, "nats-server is ready but names no port"
            return port
