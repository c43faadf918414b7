"""Reloading the configuration while clients are connected."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.admin import ask
from harness.behaviour import IMORI
from harness.broker import Broker
from harness.deadline import DEADLINE_S, wait_for
from harness.imori import BINARY
from harness.raw import RawClient
from harness.reloadable import Reloadable, free_port, listeners, running_reloadable

LOGIN = "CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0"
Start = Callable[[str], Reloadable]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Runs brokers until the end of the test."""
    with ExitStack() as stack:
        yield lambda text: stack.enter_context(running_reloadable(tmp_path, text))


def stomp(port: int) -> socket.socket:
    """Returns a STOMP client that is logged in."""
    client = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
    client.sendall(LOGIN.encode())
    assert client.recv(4096).startswith(b"CONNECTED\n")
    return client


def lives(client: socket.socket) -> bool:
    """Returns whether the broker still answers a client."""
    client.sendall(b"SEND\ndestination:/topic/t\nreceipt:r\n\nbody\0")
    return b"RECEIPT\n" in client.recv(4096)


def is_open(port: int) -> bool:
    """Returns whether a port accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S).close()
    except ConnectionRefusedError:
        return False
    return True


def test_listeners_open_and_close_and_connections_stay(start: Start) -> None:
    first, second, nats = free_port(), free_port(), free_port()
    imori = start(listeners(stomp=f"127.0.0.1:{first}"))
    with stomp(first) as client:
        told = imori.reload(listeners(stomp=f"127.0.0.1:{second}", nats=f"127.0.0.1:{nats}"))
        assert "changed=listeners.stomp, listeners.nats" in told.replace('"', "")
        assert "a listener is closed; its connections stay" in told
        wait_for(lambda: not is_open(first))
        stomp(second).close()
        with socket.create_connection(("127.0.0.1", nats), timeout=DEADLINE_S) as greeted:
            assert greeted.recv(4096).startswith(b"INFO {")
        assert lives(client)


def test_an_address_that_includes_the_old_one_takes_its_place(start: Start) -> None:
    port = free_port()
    imori = start(listeners(stomp=f"127.0.0.1:{port}"))
    with stomp(port) as client:
        wide = listeners(stomp=f"0.0.0.0:{port}") + '[broker]\naccept_plaintext = "stomp"\n'
        imori.reload(wide)
        with stomp(port) as other:
            assert lives(client)
            imori.reload(listeners(stomp=f"127.0.0.1:{port}"))
            with stomp(port) as third:
                assert lives(client)
                assert lives(other)
                assert lives(third)


def test_a_port_may_change_its_protocol(start: Start) -> None:
    port, other = free_port(), free_port()
    imori = start(listeners(stomp=f"127.0.0.1:{port}", nats=f"127.0.0.1:{other}"))
    with stomp(port) as client:
        imori.reload(listeners(stomp=f"127.0.0.1:{other}", nats=f"127.0.0.1:{port}"))
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as greeted:
            assert greeted.recv(4096).startswith(b"INFO {")
        stomp(other).close()
        assert lives(client)


def test_an_address_that_is_taken_leaves_everything_as_it_was(start: Start) -> None:
    port, other = free_port(), free_port()
    imori = start(listeners(stomp=f"127.0.0.1:{port}"))
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        taken = foreign.getsockname()[1]
        text = listeners(stomp=f"127.0.0.1:{other}", nats=f"127.0.0.1:{taken}")
        told = imori.reload(text + "[limits]\nqueues = 1\n")
        assert f"{imori.file}:3:1: cannot listen on `nats=127.0.0.1:{taken}`" in told, told
        assert "the configuration is not taken over; the one in force stays" in told
    stomp(port).close()
    assert not is_open(other)
    # A listener closed in favour of a wider one that cannot be bound is open again.
    with socket.create_server(("127.0.0.2", port)):
        text = listeners(stomp=f"0.0.0.0:{port}")
        told = imori.reload(text + '[broker]\naccept_plaintext = "stomp"\n')
        assert f"{imori.file}:2:1: cannot listen on `stomp=0.0.0.0:{port}`" in told, told
        stomp(port).close()


def test_a_wrong_file_is_told_of_by_line_and_changes_nothing(start: Start) -> None:
    port = free_port()
    begin = listeners(stomp=f"127.0.0.1:{port}")
    imori = start(begin)
    lines = begin.count("\n")
    for text, told in [
        ("[limits]\nqueues = 0\n", f"{imori.file}:{lines + 2}:1: `limits.queues` is `0`"),
        ("[limits\n", f"{imori.file}:{lines + 1}:8: not TOML"),
        (
            '[limits]\nqueues = 7\nmessage_bytes = "60MiB"\n',
            f"{imori.file}:{lines + 3}:1: a message of",
        ),
        ('[nats]\ntls = "offered"\n', f"{imori.file}:{lines + 2}:1: TLS needs both"),
        (
            '[tls]\ncertificate = "/nowhere/c.pem"\nkey = "/nowhere/k.pem"\n',
            f"{imori.file}:{lines + 2}:1: `tls.certificate`",
        ),
    ]:
        seen = imori.reload(begin + text)
        assert told in seen, seen
        assert "the one in force stays" in seen
    with stomp(port) as client:
        assert lives(client)


def test_limits_are_read_where_they_are_checked(start: Start) -> None:
    # SECURITY LIM-10.
    port = free_port()
    begin = listeners(stomp=f"127.0.0.1:{port}")
    imori = start(begin + "[limits]\nqueues = 1\nsubscriptions = 1\n")
    with RawClient(Broker("127.0.0.1", port, IMORI)) as raw:
        assert raw.login().command == "CONNECTED"

        def subscribe(number: int, kind: str) -> str:
            raw.send(
                "SUBSCRIBE",
                {"id": f"{kind}{number}", "destination": f"/{kind}/{number}", "receipt": "r"},
            )
            return raw.read().command

        assert [subscribe(1, "queue"), subscribe(1, "topic")] == ["RECEIPT", "RECEIPT"]
        told = imori.reload(begin + "[limits]\nqueues = 2\nsubscriptions = 2\nconnections = 1\n")
        assert "limits.connections, limits.subscriptions, limits.queues" in told
        assert [subscribe(2, "queue"), subscribe(2, "topic")] == ["RECEIPT", "RECEIPT"]
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as waits:
            waits.sendall(LOGIN.encode())
            waits.settimeout(0.3)
            with pytest.raises(TimeoutError):
                waits.recv(4096)
            waits.settimeout(DEADLINE_S)
            imori.reload(begin + "[limits]\nqueues = 2\nsubscriptions = 2\n")
            assert waits.recv(4096).startswith(b"CONNECTED\n")
        imori.reload(begin + '[limits]\nqueues = 2\nsubscriptions = 2\nmessage_bytes = "1KiB"\n')
        # A client keeps the larger limit that it was told; new clients get the new one.
        raw.send("SEND", {"destination": "/topic/x", "receipt": "r"}, b"x" * 2000)
        assert raw.read().command == "RECEIPT"
        with stomp(port) as newcomer:
            newcomer.sendall(b"SEND\ndestination:/topic/x\n\n" + b"x" * 2000 + b"\0")
            assert newcomer.recv(4096).startswith(b"ERROR\n")
        assert subscribe(3, "queue") == "ERROR"


def test_the_built_in_user_goes_and_comes(start: Start) -> None:
    # SECURITY AUTH-12.
    port = free_port()
    begin = listeners(stomp=f"127.0.0.1:{port}")
    imori = start(begin)
    with stomp(port) as client:
        imori.reload(begin + '[users]\nguest = "never"\n')
        client.settimeout(DEADLINE_S)
        assert b"ERROR\n" in client.recv(4096)
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as refused:
        refused.sendall(LOGIN.encode())
        assert refused.recv(4096).startswith(b"ERROR\n")
    imori.reload(begin)
    stomp(port).close()


def test_what_needs_a_restart_is_named_until_then(start: Start) -> None:
    port = free_port()
    begin = listeners(stomp=f"127.0.0.1:{port}")
    imori = start(begin)
    for _ in range(2):
        told = imori.reload(begin + "[cells]\nspin_us = 7\n[journal]\nfiles = 5\n")
        assert "keys=cells.spin_us, journal.files" in told.replace('"', ""), told
        assert "changed=nothing" in told.replace('"', "")


def test_a_thousand_connections_live_through_every_kind_of_change(start: Start) -> None:
    # SECURITY OPS-04, LIM-10.
    port, other = free_port(), free_port()
    begin = listeners(stomp=f"127.0.0.1:{port}")
    imori = start(begin)
    with ExitStack() as stack:
        clients = [stack.enter_context(stomp(port)) for _ in range(1000)]
        for text in [
            begin + "[limits]\nconnections = 10\nunauthenticated = 1\n",
            listeners(stomp=f"127.0.0.1:{other}") + "[broker]\nmemory_mark_percent = 1\n",
            begin + '[limits]\nunsent_bytes = "1MiB"\n[broker]\nproxy_from = "10.0.0.0/8"\n',
            begin,
        ]:
            assert "was read again" in imori.reload(text)
        assert all(lives(client) for client in clients)


def command(imori: Reloadable, *arguments: str) -> tuple[int, str, str]:
    """Runs `imori config` for this broker."""
    assert imori.admin is not None
    host, port = imori.admin
    environment = {
        **os.environ,
        "IMORI_ADMIN": f"http://{host}:{port}",
        "IMORI__BROKER__DATA_DIR": str(imori.file.parent / "data"),
    }
    run = subprocess.run(
        [BINARY, "config", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    return run.returncode, run.stdout, run.stderr


def test_the_command_reloads_and_tells_what_became_of_it(start: Start) -> None:
    begin = listeners(stomp=f"127.0.0.1:{free_port()}", admin="127.0.0.1:0")
    imori = start(begin)
    imori.file.write_text(begin + "[limits]\nqueues = 7\n[journal]\nfiles = 5\n")
    told = "taken over: limits.queues = 7\nwaits for a restart: journal.files = 5\n"
    told += "the configuration was read again\n"
    assert command(imori, "reload") == (0, told, "")
    keys = {key["key"]: key for key in ask(imori, "/v1/config").json()["keys"]}
    assert keys["limits.queues"]["value"] == "7"
    assert keys["limits.queues"]["set_by"] == f"{imori.file}:{begin.count(chr(10)) + 2}:1"
    # It has not taken effect, so that nothing has set the value in force.
    assert keys["journal.files"]["set_by"] is None
    assert keys["journal.file_bytes"]["set_by"] == (
        "environment variable `IMORI__JOURNAL__FILE_BYTES`"
    )
    assert keys["broker.data_dir"]["set_by"] == "option `--data-dir`"
    imori.file.write_text(begin + "[limits]\nqueues = 0\n")
    code, out, error = command(imori, "reload")
    line = begin.count("\n") + 2
    assert (code, out) == (1, ""), error
    assert f"refused: {imori.file}:{line}:1: `limits.queues` is `0`" in error
    # Nobody but an administrator may.
    assert ask(imori, "/v1/config/reload", method="POST", login="guest:guest").status == 403
    assert ask(imori, "/v1/config", login=None).status == 401


def test_the_command_tells_differences_as_diff_does(start: Start, tmp_path: Path) -> None:
    begin = listeners(stomp=f"127.0.0.1:{free_port()}", admin="127.0.0.1:0")
    # The harness's environment overrides the file, and is not part of the comparison.
    begin += '[journal]\nfile_bytes = "20MiB"\n'
    imori = start(begin)
    other = tmp_path / "other.toml"
    other.write_text(begin + "[limits]\nqueues = 7\n")
    data = f'broker.data_dir: "{tmp_path / "data"}" -> ".data"\n'
    for arguments, expected in [
        ((str(other),), (1, data + "limits.queues: 200000 -> 7\n")),
        ((str(other), str(other)), (0, "")),
        ((str(other), str(imori.file)), (1, "limits.queues: 7 -> 200000\n")),
        ((str(tmp_path / "none"),), (2, "")),
    ]:
        assert command(imori, "diff", *arguments)[:2] == expected, arguments
