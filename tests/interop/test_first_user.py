"""The first user besides `admin` ends the login `guest`, and the operator hears what that ends."""

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pika
import pika.exceptions
import pytest

from harness.admin import ask, read
from harness.deadline import DEADLINE_S, wait_for
from harness.gateway import running_gateway
from harness.imori import BINARY, Imori, running_imori

ROUTES = """
[gateway]
user = "guest"

[[route]]
path = "/one/{name}"
publish = { queue = "{name}" }

[[route]]
path = "/two/{name}"
publish = { queue = "{name}" }

[[route]]
path = "/caller"
user = "caller"
publish = { queue = "q" }
"""

ENDED = (
    "the login `guest` with 2 connections and 2 routes of the gateway; "
    '`users.guest = "always"` keeps it'
)


@pytest.fixture
def imori(tmp_path: Path) -> Iterator[Imori]:
    """A broker with a gateway, AMQP and operators."""
    with running_gateway(tmp_path, ROUTES, admin=True, amqp=True) as gateway:
        yield gateway.imori


@contextmanager
def two_guests(imori: Imori) -> Iterator[list[pika.BlockingConnection]]:
    assert imori.amqp is not None
    host, port = imori.amqp
    with ExitStack() as stack:
        guests = [
            pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=0))
            for _ in range(2)
        ]
        for guest in guests:
            stack.callback(close, guest)
        yield guests


def close(guest: pika.BlockingConnection) -> None:
    """Closes a connection that the broker may have ended."""
    with suppress(pika.exceptions.AMQPError):
        guest.close()


def command(imori: Imori, *arguments: str) -> list[str]:
    assert imori.admin is not None
    host, port = imori.admin
    data = str(imori.log.parent / "data")
    options = ["--admin", f"http://{host}:{port}", "--data-dir", data]
    return [BINARY, "user", "set", *arguments, *options]


def on_terminal(imori: Imori, typed: str, *arguments: str) -> tuple[int, str, str]:
    """Runs the command with a terminal as its input, in which this is typed."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed.encode())
        done = subprocess.run(
            command(imori, *arguments),
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return done.returncode, done.stdout, done.stderr


def users(imori: Imori) -> set[str]:
    return {user["name"] for user in read(imori, "/api/users")}


def test_on_a_terminal_the_command_asks_before(imori: Imori) -> None:
    with two_guests(imori) as guests:
        for no in ("n\n", "\n", "\x04"):
            code, said, asked = on_terminal(imori, f"secret\n{no}", "first")
            assert (code, said) == (1, "")
            assert f"user `first` ends {ENDED}\ngo on? [y/N] " in asked
            assert "nothing is changed" in asked
            assert users(imori) == {"admin"}
        guests[0].process_data_events()
        code, said, _ = on_terminal(imori, "secret\ny\n", "first")
        assert (code, said) == (0, f"user `first` is set\nit has ended {ENDED}\n")
        assert users(imori) == {"admin", "first"}
        wait_for(lambda: not read(imori, "/api/connections"), "the end of the guests")
    # The second user ends nothing, so that nothing is asked.
    assert on_terminal(imori, "secret\n", "second")[:2] == (0, "user `second` is set\n")
    assert "a new user ends the login `guest`" in imori.log.read_text()
    assert "2 connections and 2 routes" in imori.log.read_text()


def test_without_a_terminal_the_command_acts_and_says_what_ended(imori: Imori) -> None:
    with two_guests(imori):
        done = subprocess.run(
            command(imori, "first"),
            input="secret\n",
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert (done.returncode, done.stdout) == (
            0,
            f"user `first` is set\nit has ended {ENDED}\n",
        )


@pytest.mark.parametrize("api", ["/api", "/v1"])
def test_the_api_tells_it_before_and_after(imori: Imori, api: str) -> None:
    with two_guests(imori):
        assert read(imori, "/v1/users/admin/ends") == {}
        assert read(imori, "/v1/users/first/ends") == {"guest": ENDED}
        body: object = {"password": "p", "tags": [] if api == "/v1" else ""}
        made = ask(imori, f"{api}/users/first", method="PUT", body=body)
        assert (made.status, made.json()) == (201, {"guest": ENDED})
        assert read(imori, "/v1/users/second/ends") == {}
        again = ask(imori, f"{api}/users/second", method="PUT", body=body)
        assert (again.status, again.body) == (201, "")


def test_a_guest_that_stays_is_not_told_of(tmp_path: Path) -> None:
    with running_imori(tmp_path, admin=True, settings={"users.guest": "always"}) as imori:
        assert read(imori, "/v1/users/first/ends") == {}
        body: object = {"password": "p", "tags": ""}
        assert ask(imori, "/api/users/first", method="PUT", body=body).body == ""
        assert on_terminal(imori, "secret\n", "second")[:2] == (0, "user `second` is set\n")
        assert imori.stop() == 0
