"""Finds, starts and stops the brokers that Imori is measured beside.

Nothing is installed: a broker that is absent is said to be absent, and how to get it.
Each start gets a fresh folder, its own ports on loopback, and ends what it started.

    python3 bench/peers.py                     what is on this machine
    python3 bench/peers.py rabbitmq            run it until Ctrl-C
    python3 bench/peers.py imori nats          run it with its NATS listener
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 120.0
STOP_SECONDS = 60.0

STOMP = "stomp"
NATS = "nats"


class PeerAbsentError(Exception):
    """A broker is not on this machine; the text says how to get it."""


@dataclass
class Running:
    """A broker that accepts connections."""

    name: str
    protocol: str
    url: str
    style: str
    reply: str
    pid: int
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


class Peer(ABC):
    """A kind of broker."""

    name: str
    speaks: tuple[str, ...] = (STOMP,)
    """Protocols, the one to run it with by default first."""
    only: str | None = None
    """The one scenario that it can do, if it cannot do all."""
    style = "rabbitmq"
    reply = "temp-queue"

    @abstractmethod
    def version(self) -> str:
        """Say which version is here, or raise `PeerAbsentError`."""

    @abstractmethod
    def launch(self, folder: Path, protocol: str, port: int) -> Running:
        """Start it with everything it writes in `folder`, this protocol on loopback at `port`."""

    def settle(self, running: Running) -> None:
        """Wait for what comes after the first accepted connection; most brokers need nothing."""
        return

    def tear_down(self, running: Running) -> None:
        """End what `launch` started beside the broker itself; most brokers start nothing."""
        return

    @contextmanager
    def run(self, protocol: str) -> Iterator[Running]:
        """Run it in a fresh folder; what it left there is removed at the end."""
        folder = Path(tempfile.mkdtemp(prefix=f"imori-bench-{self.name}-"))
        try:
            running = self.launch(folder, protocol, free_port())
            try:
                wait_until_it_answers(running)
                self.settle(running)
                yield running
            finally:
                for process in running.processes:
                    stop(process)
                self.tear_down(running)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Imori(Peer):
    """This project's broker, built with `make release`."""

    name = "imori"
    speaks = (STOMP, NATS)

    def __init__(self, program: Path | None = None) -> None:
        self.program = (program or ROOT / "target" / "release" / "imori").resolve()

    def version(self) -> str:
        if not self.program.exists():
            raise PeerAbsentError(f"`{self.program}` is absent; build it with `cargo build --release`")
        return output_of([str(self.program), "--version"]).strip()

    def launch(self, folder: Path, protocol: str, port: int) -> Running:
        command = [str(self.program), "serve", "--listen", f"{protocol}=127.0.0.1:{port}"]
        command += ["--data-dir", str(folder / "data")]
        process = spawn(command, folder, dict(os.environ))
        return running(self, process, folder, protocol, port)


class RabbitMQ(Peer):
    """RabbitMQ of the distribution, with its STOMP plugin."""

    name = "rabbitmq"
    places = (Path("/usr/lib/rabbitmq/bin"), Path("/usr/local/lib/rabbitmq/bin"), Path("/opt/rabbitmq/sbin"))

    def scripts(self) -> Path:
        for place in self.places:
            if (place / "rabbitmq-server").exists():
                return place
        raise PeerAbsentError(
            "`rabbitmq-server` is absent; install the package `rabbitmq-server` of the distribution"
        )

    def version(self) -> str:
        self.scripts()
        plugins = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"))
        found = re.search(r"rabbitmq_server-(.+)$", str(plugins[-1])) if plugins else None
        return f"RabbitMQ {found.group(1) if found else 'of unknown version'}"

    def launch(self, folder: Path, protocol: str, port: int) -> Running:
        amqp, distribution, epmd = free_port(), free_port(), free_port()
        for name in ("data", "log", "home"):
            (folder / name).mkdir()
        (folder / "enabled_plugins").write_text("[rabbitmq_stomp].\n")
        (folder / "rabbitmq-env.conf").write_text("")
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{amqp}\n"
            f"stomp.listeners.tcp.1 = 127.0.0.1:{port}\n"
            "log.file.level = warning\n"
        )
        environment = dict(os.environ) | {
            "HOME": str(folder / "home"),
            "RABBITMQ_NODENAME": f"imori-bench-{port}@localhost",
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_NODE_PORT": str(amqp),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(epmd),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        process = spawn([str(self.scripts() / "rabbitmq-server")], folder, environment)
        started = running(self, process, folder, protocol, port)
        started.environment = environment
        return started

    def settle(self, running: Running) -> None:
        pid_file = running.folder / "pid"
        if pid_file.exists():
            running.pid = int(pid_file.read_text())

    def tear_down(self, running: Running) -> None:
        # The node leaves its port mapper behind, which listens on a port of this run only.
        for epmd in Path("/usr/lib/erlang").glob("erts-*/bin/epmd"):
            command = [str(epmd), "-port", running.environment["ERL_EPMD_PORT"], "-kill"]
            subprocess.run(command, env=running.environment, capture_output=True, check=False)
            break


class Artemis(Peer):
    """ActiveMQ Artemis from its binary archive."""

    name = "artemis"
    style = "artemis"
    reply = "named"

    def archive(self) -> Path:
        repository = Path.home() / ".m2" / "repository" / "org" / "apache"
        found = [
            path
            for group in ("artemis", "activemq")
            for path in (repository / group / "apache-artemis").glob("*/apache-artemis-*-bin.tar.gz")
        ]
        if not found:
            raise PeerAbsentError(
                "the archive of Artemis is absent; get it with `mvn dependency:get -Dtransitive=false "
                "-Dartifact=org.apache.artemis:apache-artemis:2.56.0:tar.gz:bin`"
            )
        return max(found, key=lambda path: [int(part) for part in re.findall(r"\d+", path.parent.name)])

    def version(self) -> str:
        if shutil.which("java") is None:
            raise PeerAbsentError("`java` is absent; Artemis needs a JRE of version 17 or later")
        java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
        return f"Artemis {self.archive().parent.name}, {java.splitlines()[0]}"

    def launch(self, folder: Path, protocol: str, port: int) -> Running:
        home = self.unpacked()
        instance = folder / "instance"
        create = [str(home / "bin" / "artemis"), "create", str(instance), "--silent"]
        create += ["--user", "guest", "--password", "guest", "--allow-anonymous"]
        create += ["--host", "127.0.0.1", "--default-port", str(port), "--http-port", str(free_port())]
        create += ["--no-autotune", "--relax-jolokia", "--no-web"]
        create += [f"--no-{protocol}-acceptor" for protocol in ("amqp", "hornetq", "mqtt", "stomp")]
        output_of(create)
        configuration = instance / "etc" / "broker.xml"
        # The acceptor of all protocols listens everywhere whatever `--host` says.
        configuration.write_text(configuration.read_text().replace("tcp://0.0.0.0:", "tcp://127.0.0.1:"))
        process = spawn([str(instance / "bin" / "artemis"), "run"], folder, dict(os.environ))
        return running(self, process, folder, protocol, port)

    def unpacked(self) -> Path:
        archive = self.archive()
        target = ROOT / "bench" / "out" / "peers"
        home = target / archive.name.removesuffix("-bin.tar.gz")
        if not (home / "bin" / "artemis").exists():
            target.mkdir(parents=True, exist_ok=True)
            with tarfile.open(archive) as content:
                content.extractall(target, filter="data")
        return home


class NatsServer(Peer):
    """nats-server, with what it does by default and without JetStream."""

    name = "nats-server"
    speaks = (NATS,)
    wanted = "2.15.2"

    def program(self) -> str:
        """Where it is: among our tools, in the path, or where Go puts what it installs."""
        go = Path(os.environ.get("GOPATH", Path.home() / "go")) / "bin" / self.name
        for place in (
            ROOT / ".tools/peers" / self.name,
            ROOT / ".tools/bin" / self.name,
            shutil.which(self.name),
            go,
        ):
            if place is not None and Path(place).exists():
                return str(place)
        raise PeerAbsentError(
            f"`nats-server` is absent; get it with `GOBIN={ROOT}/.tools/bin go install "
            f"github.com/nats-io/nats-server/v2@v{self.wanted}`"
        )

    def version(self) -> str:
        return output_of([self.program(), "--version"]).strip()

    def launch(self, folder: Path, protocol: str, port: int) -> Running:
        configuration = folder / "nats-server.conf"
        configuration.write_text(f'listen: "127.0.0.1:{port}"\n')
        process = spawn([self.program(), "--config", str(configuration)], folder, dict(os.environ))
        return running(self, process, folder, protocol, port)


class Relay(Peer):
    """No broker: it passes bytes on, for what the machine and the load tool can do at most."""

    name = "relay"
    speaks = (STOMP, NATS)
    only = "rpc"
    reply = "named"

    def __init__(self, program: Path | None = None) -> None:
        self.program = (program or ROOT / "target" / "release" / "examples" / self.name).resolve()

    def version(self) -> str:
        if not self.program.exists():
            raise PeerAbsentError(
                f"`{self.program}` is absent; build it with `cargo build --release -p imori-bench --examples`"
            )
        return "relay of this tree"

    def launch(self, folder: Path, protocol: str, port: int) -> Running:
        process = spawn([str(self.program), f"127.0.0.1:{port}", protocol], folder, dict(os.environ))
        return running(self, process, folder, protocol, port)


def peers(imori: Path | None = None, relay: Path | None = None) -> dict[str, Peer]:
    """All kinds of brokers, by name."""
    known = (Imori(imori), RabbitMQ(), Artemis(), NatsServer(), Relay(relay))
    return {peer.name: peer for peer in known}


def running(peer: Peer, process: subprocess.Popen[bytes], folder: Path, protocol: str, port: int) -> Running:
    login = "guest:guest@" if protocol == STOMP else ""
    return Running(
        name=peer.name,
        protocol=protocol,
        url=f"{protocol}://{login}127.0.0.1:{port}",
        style=peer.style,
        reply=peer.reply,
        pid=process.pid,
        folder=folder,
        processes=[process],
    )


def spawn(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with (folder / "output.log").open("wb") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process group that we started, politely first."""
    for kind, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 10.0)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        try:
            process.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            continue


def wait_until_it_answers(running: Running) -> None:
    """Wait until a login succeeds."""
    port = int(running.url.rsplit(":", 1)[1])
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if any(process.poll() is not None for process in running.processes):
            break
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                if LOGINS[running.protocol](connection):
                    return
        except OSError:
            pass
        time.sleep(0.25)
    log = (running.folder / "output.log").read_text(errors="replace")
    raise RuntimeError(f"{running.name} does not answer; its output ends with:\n{log[-2000:]}")


def log_in_by_stomp(connection: socket.socket) -> bool:
    connection.sendall(
        b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\nheart-beat:0,0\n\n\0"
    )
    return connection.recv(4096).lstrip().startswith(b"CONNECTED")


def log_in_by_nats(connection: socket.socket) -> bool:
    connection.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
    heard = b""
    while b"PONG\r\n" not in heard:
        more = connection.recv(4096)
        if not more:
            return False
        heard += more
    return heard.startswith(b"INFO ")


LOGINS: dict[str, Callable[[socket.socket], bool]] = {STOMP: log_in_by_stomp, NATS: log_in_by_nats}


def end_in_order() -> None:
    """Let SIGTERM end us as Ctrl-C does, so that no broker of ours is left behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def output_of(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a broker for measurements, or list what is here.")
    parser.add_argument("peer", nargs="?", choices=sorted(peers()))
    parser.add_argument("protocol", nargs="?", choices=(STOMP, NATS))
    parser.add_argument("--imori", type=Path, help="the program `imori`")
    arguments = parser.parse_args()
    known = peers(arguments.imori)
    end_in_order()
    if arguments.peer is None:
        for name, peer in known.items():
            try:
                print(f"{name:12} {peer.version()}, {' and '.join(peer.speaks)}")
            except PeerAbsentError as absent:
                print(f"{name:12} absent: {absent}")
        return 0
    peer = known[arguments.peer]
    with peer.run(arguments.protocol or peer.speaks[0]) as broker:
        print(f"--url {broker.url} --pid {broker.pid} --destination-style {broker.style}", flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
