"""Lost definitions never open the broker: only the operator is let in until it decides."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from harness.admin import ask, read
from harness.deadline import DEADLINE_S
from harness.imori import BINARY, Imori, running_imori

COMMAND = "imori definitions recover --empty"

# A page of redb.
PAGE = 4096


def remove(data: Path) -> None:
    """Deletes the file."""
    (data / "definitions.redb").unlink()


def empty(data: Path) -> None:
    """Truncates the file."""
    (data / "definitions.redb").write_bytes(b"")


def behead(data: Path) -> None:
    """Overwrites its first sector."""
    overwrite(data, 0, b"?" * 512)


def fill(data: Path) -> None:
    """Overwrites all of it with noise."""
    noise = random.Random(7)
    file = data / "definitions.redb"
    file.write_bytes(noise.randbytes(file.stat().st_size))


def cut(data: Path) -> None:
    """Cuts off its second half."""
    file = data / "definitions.redb"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scribble(data: Path) -> None:
    """Overwrites every page after the header with noise, on which redb may panic."""
    noise = random.Random(8)
    size = (data / "definitions.redb").stat().st_size
    overwrite(data, PAGE, noise.randbytes(size - PAGE))


def turn(data: Path) -> None:
    """Damages the users, so that they do not verify."""
    file = data / "definitions.redb"
    content = file.read_bytes()
    assert b"administrator" in content
    file.write_bytes(content.replace(b"administrator", b"administratro"))


def strip(data: Path) -> None:
    """Leaves nothing but the store's number and the marker of its last run."""
    remove(data)
    shutil.rmtree(data / "journal")
    shutil.rmtree(data / "segments")


def clear(data: Path) -> None:
    """Leaves empty folders, as after a partial copy."""
    strip(data)
    (data / "journal").mkdir()
    (data / "segments").mkdir()


def overwrite(data: Path, at: int, content: bytes) -> None:
    with (data / "definitions.redb").open("r+b") as file:
        file.seek(at)
        file.write(content)


def start(folder: Path, **settings: object) -> AbstractContextManager[Imori]:
    """Starts a broker with a listener for every protocol."""
    chosen = {"users.guest": "always", **settings}
    return running_imori(folder, settings=chosen, admin=True, nats=True, amqp=True)


def run(imori: Imori, *arguments: str) -> tuple[int, str, str]:
    """Runs the command as the operator."""
    assert imori.admin is not None
    host, port = imori.admin
    command = [BINARY, *arguments, "--admin", f"http://{host}:{port}"]
    command += ["--data-dir", str(imori.log.parent / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    return done.returncode, done.stdout, done.stderr


def may_enter(imori: Imori, user: str, password: str) -> set[str]:
    """Returns the protocols over which a user can log in."""
    assert imori.nats is not None
    assert imori.amqp is not None
    ports = {
        "stomp": imori.addresses[0][1],
        "nats": imori.nats[1],
        "amqp": imori.amqp[1],
        "amqp10": imori.amqp[1],
    }
    entered = set()
    for scheme, port in ports.items():
        url = f"{scheme}://{user}:{password}@127.0.0.1:{port}"
        destination = "greet" if scheme == "nats" else "/topic/greet"
        command = [BINARY, "pub", "--url", url, destination, "hello"]
        done = subprocess.run(command, capture_output=True, timeout=DEADLINE_S)
        if done.returncode == 0:
            entered.add(scheme)
    if ask(imori, "/api/whoami", login=f"{user}:{password}").status == 200:
        entered.add("http")
    return entered


MESSAGING = {"stomp", "nats", "amqp", "amqp10"}


def ready(imori: Imori) -> list[int]:
    """Returns the number of messages in each queue, ordered by name."""
    return [queue["messages_ready"] for queue in read(imori, "/api/queues")]


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a user, a durable queue with a message, and a document of both."""
    folder = tmp_path_factory.mktemp("whole")
    with start(folder) as imori:
        user = {"password": "secret", "tags": "administrator"}
        assert ask(imori, "/api/users/ann", method="PUT", body=user).status == 201
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        assert ask(imori, "/api/permissions/%2F/ann", method="PUT", body=rights).status == 201
        queue = {"durable": True}
        assert ask(imori, "/api/queues/%2F/orders", method="PUT", body=queue).status == 201
        message = {
            "routing_key": "orders",
            "payload": "one",
            "payload_encoding": "string",
            "properties": {"delivery_mode": 2},
        }
        path = "/api/exchanges/%2F/amq.default/publish"
        assert ask(imori, path, method="POST", body=message).json()["routed"]
        assert may_enter(imori, "ann", "secret") == {*MESSAGING, "http"}
        assert may_enter(imori, "guest", "guest") == MESSAGING
        document = ask(imori, "/api/definitions")
        (folder / "definitions.json").write_text(document.body)
        assert imori.stop() == 0
    return folder


@pytest.mark.parametrize(
    "damage",
    [remove, empty, behead, fill, cut, scribble, turn, strip, clear],
    ids=lambda way: way.__name__,
)
def test_only_the_operator_is_let_in_until_he_recovers(
    tmp_path: Path, left_behind: Path, damage: Callable[[Path], None]
) -> None:
    shutil.copytree(left_behind / "data", tmp_path / "data")
    damage(tmp_path / "data")
    expected = [] if damage in (strip, clear) else [1]
    for _ in range(2):
        with start(tmp_path) as imori:
            for user, password in [("guest", "guest"), ("ann", "secret"), ("admin", "admin")]:
                assert may_enter(imori, user, password) == set(), user
            assert may_enter(imori, "operator", imori.operator_password()) == {*MESSAGING, "http"}
            assert ready(imori) == expected
            lines = imori.log_lines()
            assert len([line for line in lines if COMMAND in line]) == 1, lines
            assert not [line for line in lines if "panic" in line], lines
            assert imori.stop() == 0
    with start(tmp_path) as imori:
        code, said, errors = run(imori, "definitions", "recover", "--empty")
        assert (code, errors) == (0, "")
        *made, last = said.splitlines()
        assert last == "the definitions are recovered, users may log in again"
        assert may_enter(imori, "guest", "guest") == MESSAGING
        # Other users remain if only some rows do not verify.
        for line in made:
            made_password = line.removeprefix("created user admin with password ")
            assert may_enter(imori, "admin", made_password) == {*MESSAGING, "http"}
        assert ready(imori) == expected
        code, _, errors = run(imori, "definitions", "recover", "--empty")
        assert (code, errors) == (
            1,
            "imori: refused: no definitions are lost; "
            "`imori definitions import` takes a document over\n",
        )
        assert imori.stop() == 0
    with start(tmp_path) as imori:
        assert may_enter(imori, "guest", "guest") == MESSAGING
        assert not [line for line in imori.log_lines() if COMMAND in line]
        assert ready(imori) == expected


def test_a_document_brings_the_users_back(tmp_path: Path, left_behind: Path) -> None:
    shutil.copytree(left_behind / "data", tmp_path / "data")
    remove(tmp_path / "data")
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"users": [{"name": ""}]}))
    with start(tmp_path, **{"users.guest": "until-users"}) as imori:
        code, _, errors = run(imori, "definitions", "recover", "--from", str(wrong))
        assert code == 1
        assert errors
        assert may_enter(imori, "guest", "guest") == set(), "a refused document opens nothing"
        document = left_behind / "definitions.json"
        code, said, errors = run(imori, "definitions", "recover", "--from", str(document))
        assert (code, said, errors) == (
            0,
            "the definitions are recovered, users may log in again\n",
            "",
        )
        assert may_enter(imori, "ann", "secret") == {*MESSAGING, "http"}
        assert may_enter(imori, "guest", "guest") == set()
        # The document declares the queue anew.
        assert sorted(ready(imori)) == [0, 1]
        assert imori.stop() == 0
    with start(tmp_path, **{"users.guest": "until-users"}) as imori:
        assert may_enter(imori, "ann", "secret") == {*MESSAGING, "http"}
        assert may_enter(imori, "guest", "guest") == set()


def test_a_new_folder_is_no_lost_one(tmp_path: Path) -> None:
    with start(tmp_path) as imori:
        assert may_enter(imori, "guest", "guest") == MESSAGING
        assert not [line for line in imori.log_lines() if COMMAND in line]


def test_one_way_to_go_on_has_to_be_named(tmp_path: Path) -> None:
    with start(tmp_path) as imori:
        assert run(imori, "definitions", "recover")[0] == 2
        assert run(imori, "definitions", "recover", "--empty", "--from", "x")[0] == 2
