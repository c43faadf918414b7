"""Commands over the admin API: messages, readers, events, contexts, completions."""

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from harness.deadline import DEADLINE_S
from harness.imori import BINARY, Imori, running_imori


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker with an admin listener, for AMQP."""
    with running_imori(tmp_path_factory.mktemp("tools"), amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


@pytest.fixture
def environment(imori: Imori, tmp_path: Path) -> dict[str, str]:
    """An environment with a context for the broker's operator."""
    assert imori.admin is not None
    host, port = imori.admin
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("IMORI_")
    }
    environment |= {"XDG_CONFIG_HOME": str(tmp_path), "SECRET": imori.operator_password()}
    address = f"http://operator@{host}:{port}"
    told = run(
        environment, "context", "add", "here", "--admin", address, "--password-env", "SECRET"
    )
    assert told == "context `here` is kept\n"
    return environment


def run(environment: dict[str, str], *arguments: str, code: int = 0) -> str:
    """Runs a command; returns its output, or its error if it must fail."""
    done = subprocess.run(
        [BINARY, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == code, (arguments, done.stdout, done.stderr)
    return done.stderr if code else done.stdout


def connect(imori: Imori) -> pika.BlockingConnection:
    """Opens a pika connection."""
    assert imori.amqp is not None
    host, port = imori.amqp
    return pika.BlockingConnection(pika.ConnectionParameters(host, port, socket_timeout=DEADLINE_S))


def test_messages_are_looked_at_moved_and_retried(
    imori: Imori, environment: dict[str, str]
) -> None:
    with connect(imori) as connection:
        channel = connection.channel()
        channel.queue_declare("dead")
        channel.queue_declare("kept")
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.queue_declare("work", arguments=arguments)
    for body in ("a", "b", "c"):
        run(environment, "queue", "publish", "work", body)
    peeked = run(environment, "queue", "peek", "work", "--count", "2", "--offset", "1")
    assert [line.strip() for line in peeked.splitlines()[1::2]] == ["b", "c"]
    run(environment, "queue", "take", "work", "--count", "2", "--outcome", "reject")
    planned = run(environment, "queue", "retry", "dead", "--dry-run")
    assert planned.startswith("2 would move, 2 wait in queue `dead`")
    moved = json.loads(run(environment, "queue", "retry", "dead", "--json"))
    assert (moved["moved"], moved["targets"][0]["routing_key"]) == (2, "work")
    told = run(environment, "queue", "move", "work", "--to", "kept", "--count", "2")
    assert told.startswith("2 moved, 1 wait in queue `work`")
    told = run(environment, "queue", "move", "work", "--to", "nowhere", code=1)
    assert "no queue would get the message" in told
    assert run(environment, "queue", "purge", "kept", "--dry-run").startswith("2 messages")
    taken = json.loads(run(environment, "queue", "take", "kept", "--count", "9", "--json"))
    assert [message["payload"] for message in taken["messages"]] == ["c", "a"]
    run(environment, "queue", "move", "work", code=2)


def test_readers_are_listed_and_ended(imori: Imori, environment: dict[str, str]) -> None:
    connection = connect(imori)
    channel = connection.channel()
    channel.queue_declare("read")
    cancelled: list[str] = []
    channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    tag = channel.basic_consume("read", lambda *_: None)
    (consumer,) = json.loads(run(environment, "consumer", "ls", "read", "--json"))
    (session,) = json.loads(run(environment, "session", "ls", "--json"))
    assert session["connection"] == consumer["connection"]
    run(environment, "consumer", "close", consumer["connection"], consumer["id"])
    connection.process_data_events(time_limit=DEADLINE_S)
    assert cancelled == [tag]
    assert "there is no consumer" in run(
        environment, "consumer", "close", consumer["connection"], consumer["id"], code=1
    )
    top = run(environment, "top", "--once")
    assert "1 connections" in top
    assert consumer["connection"] in top
    connection.close()


def test_events_and_stalls_are_told(imori: Imori, environment: dict[str, str]) -> None:
    with connect(imori) as connection:
        connection.channel().queue_declare("told")
    lines = run(
        environment, "events", "--replay", "--kinds", "connection.opened", "--count", "1", "--json"
    )
    assert json.loads(lines)["kind"] == "connection.opened"
    assert "no events of the kind" in run(environment, "events", "--kinds", "x", code=1)
    assert run(environment, "stalls").startswith("BEGAN")


# SECURITY OPS-02
def test_contexts_are_kept_where_only_their_owner_reads_them(environment: dict[str, str]) -> None:
    kept = Path(environment["XDG_CONFIG_HOME"]) / "imori" / "contexts.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    run(environment, "context", "add", "other", "--admin", "http://ann:secret@192.0.2.1:1")
    listed = run(environment, "context", "ls")
    assert listed.splitlines()[1] == "  other  http://ann@192.0.2.1:1"
    assert "secret" not in listed
    assert run(environment, "queue", "ls", "--context", "here").startswith("VHOST")
    run(environment, "context", "use", "other")
    assert run(environment, "context", "ls").splitlines()[1].startswith("* other")
    assert "there is no context `x`" in run(environment, "queue", "ls", "--context", "x", code=1)
    run(environment, "context", "delete", "other")
    without = {name: value for name, value in environment.items() if name != "SECRET"}
    assert "`SECRET`" in run(without, "queue", "ls", "--context", "here", code=1)


def test_shells_and_man_read_what_is_made_of_the_commands(
    environment: dict[str, str], tmp_path: Path
) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = tmp_path / f"imori.{shell}"
        script.write_text(run(environment, "completions", shell))
        assert "peek" in script.read_text()
        if (program := shutil.which(shell)) is not None:
            subprocess.run([program, "-n", script], check=True)
    bash = (
        'source "$1"; COMP_WORDS=(imori queue pe); COMP_CWORD=2; '
        '_imori imori pe queue; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", bash, "bash", tmp_path / "imori.bash"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["peek"]
    run(environment, "man", str(tmp_path / "man"))
    page = (tmp_path / "man" / "imori-queue-move.1").read_text()
    assert "dry\\-run" in page
