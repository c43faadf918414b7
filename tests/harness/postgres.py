"""A PostgreSQL server of this machine, in a temporary folder and on a free port."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.deadline import DEADLINE_S, wait_for

INSTALLED = sorted(
    Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
)


class PostgresServer:
    """A server that can be ended and started again."""

    def __init__(self, folder: Path) -> None:
        self.bin = INSTALLED[-1].parent
        self.folder = folder
        # The server refuses to run as root.
        self.user = "postgres" if os.geteuid() == 0 else None
        self.password = secrets.token_hex(8)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        secret = folder / "secret"
        secret.write_text(self.password)
        if self.user is not None:
            shutil.chown(folder, self.user)
            shutil.chown(secret, self.user)
        make = [
            str(self.bin / "initdb"),
            "-D",
            str(folder / "data"),
            "-U",
            "imori",
            "-A",
            "scram-sha-256",
        ]
        make += ["--pwfile", str(secret), "-E", "UTF8", "--locale", "C", "--no-sync"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, user=self.user, cwd="/")
        self.start()

    def start(self) -> None:
        """Starts the server and waits until it takes connections."""
        command = [
            str(self.bin / "postgres"),
            "-D",
            str(self.folder / "data"),
            "-p",
            str(self.port),
        ]
        command += ["-k", "", "-c", "fsync=on", "-c", "listen_addresses=127.0.0.1"]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, user=self.user, cwd="/", start_new_session=True
            )
        ready = [str(self.bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        process = self.process

        def is_ready() -> bool:
            assert process.poll() is None, (self.folder / "log").read_text()
            return subprocess.run(ready, check=False).returncode == 0

        wait_for(is_ready, "the server of PostgreSQL")

    def crash(self) -> None:
        """Ends the server at once, without an answer to what is under way."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(DEADLINE_S)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Runs a statement; returns the rows, a line for each."""
        command = [str(self.bin / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        command += ["-d", self.url(database), "-c", statement]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def database(self) -> str:
        """Makes an empty database; returns its name."""
        name = f"store_{secrets.token_hex(4)}"
        self.sql(f"CREATE DATABASE {name}")
        return name

    def url(self, database: str) -> str:
        """The address of a database, with user and password."""
        return f"postgres://imori:{self.password}@127.0.0.1:{self.port}/{database}"


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Starts a server, and ends it in any case."""
    folder = Path(tempfile.mkdtemp(prefix="imori-postgres-"))
    try:
        server = PostgresServer(folder)
        try:
            yield server
        finally:
            if server.process.poll() is None:
                server.crash()
    finally:
        shutil.rmtree(folder)
