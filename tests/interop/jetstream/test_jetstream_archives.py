"""Snapshots and restores of streams, and archives that travel to nats-server and back."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from nats.js import api
from nats.js.errors import NotFoundError

from harness.deadline import DEADLINE_S
from harness.nats.archive import Copy, restore, snapshot
from harness.nats.behaviour import NATS_SERVER
from harness.nats.broker import LAME_DUCK_SIGNAL, NatsBroker
from harness.nats.jetstream import Session, bodies, running_jetstream, scenario, session
from harness.nats.server import BINARY, GUEST, running_nats_server

# Messages of a kilobyte: more than a piece of a snapshot, and several frames of an archive.
MANY = 300


async def fill(run: Session) -> None:
    """Makes a stream with gaps at both ends and in the middle, and a consumer that is behind."""
    await run.add(allow_direct=True)
    for number in range(1, MANY + 1):
        await run.js.publish(
            run.subject(f"pond{number % 3}"),
            f"newt {number} ".encode().ljust(1024, b"."),
            headers={"Colour": f"shade {number}"} if number % 2 else None,
        )
    for sequence in (1, 2, 7, 8, 100, MANY):
        await run.js.delete_msg(run.name, sequence)
    reader = await run.consumer("counter", filter_subject=run.subject("pond0"), ack_wait=600)
    first, second, third = await reader.fetch(3, timeout=DEADLINE_S)
    await first.ack_sync()
    await third.ack_sync()
    assert second.metadata.sequence.stream == 6


async def contents(run: Session) -> list[object]:
    """Returns sequence, subject, body, headers and time in microseconds of every message."""
    found: list[object] = []
    state = await run.state()
    for sequence in range(1, state.last_seq + 1):
        body = {"seq": sequence}
        answer = await run.request(f"STREAM.MSG.GET.{run.name}", body)
        if "error" in answer:
            continue
        message = answer["message"]
        found.append(
            (
                sequence,
                message["subject"],
                message.get("data"),
                message.get("hdrs"),
                # nats-server counts nanoseconds.
                message["time"].rstrip("Z")[: len("2026-01-02T03:04:05.678901")].rstrip("0"),
            )
        )
    return found


async def facts(run: Session) -> dict[str, object]:
    """Returns what a copy has to keep of a stream's state and its consumer."""
    info = await run.request(f"STREAM.INFO.{run.name}")
    consumer = await run.request(f"CONSUMER.INFO.{run.name}.counter")
    state = info["state"]
    kept = ("messages", "first_seq", "last_seq", "num_subjects", "num_deleted", "consumer_count")
    places = {
        place: {key: consumer[place][key] for key in ("consumer_seq", "stream_seq")}
        for place in ("delivered", "ack_floor")
    }
    counts = ("num_ack_pending", "num_pending", "num_redelivered")
    return {
        "state": {key: state.get(key) for key in kept},
        "config": info["config"]["subjects"],
        "places": places,
        "counts": {key: consumer[key] for key in counts},
    }


async def check_restored(run: Session, before: dict[str, object], copied: list[object]) -> None:
    """Checks that a stream is what it was, and that it and its consumer go on."""
    assert await facts(run) == before
    assert await contents(run) == copied
    ack = await run.js.publish(run.subject("pond0"), b"the next newt")
    assert ack.seq == MANY + 1
    reader = await run.bind("counter")
    await run.js.purge_stream(run.name, seq=MANY + 1)
    assert await bodies(reader, 1) == ["the next newt"]


@contextmanager
def brokers(kinds: tuple[str, ...], folder: Path) -> Iterator[list[NatsBroker]]:
    """Runs an Imori or a nats-server for each kind."""
    if not kinds:
        yield []
        return
    kind, *others = kinds
    path = folder / f"{len(others)}-{kind}"
    if kind == "nats-server":
        if not Path(BINARY).exists():
            pytest.skip(f"`{BINARY}` is missing")
        text = f'{GUEST}\njetstream: {{ store_dir: "{path / "streams"}" }}'
        with (
            running_nats_server(path, text, 0) as (server, port),
            brokers(tuple(others), folder) as more,
        ):
            yield [NatsBroker("127.0.0.1", port, NATS_SERVER, server, LAME_DUCK_SIGNAL), *more]
        return
    with running_jetstream(path) as broker, brokers(tuple(others), folder) as more:
        yield [broker, *more]


@pytest.mark.parametrize(
    ("source", "target"),
    [("imori", "imori"), ("nats-server", "imori"), ("imori", "nats-server")],
)
def test_a_stream_is_restored_from_an_archive(
    tmp_path: Path, name: str, source: str, target: str
) -> None:
    async def run(first: NatsBroker, second: NatsBroker) -> None:
        async with session(first, name) as run:
            await fill(run)
            before, copied = await facts(run), await contents(run)
            copy = await snapshot(run.client, run.name)
            # Without a whole piece there is no status.
            assert copy.status in {None, "204"}
            assert copy.state["last_seq"] == MANY
        async with session(second, name) as run:
            answer = await restore(run.client, copy)
            assert "error" not in answer, answer
            assert answer["type"] == "io.nats.jetstream.api.v1.stream_create_response"
            assert answer["state"]["messages"] == MANY - 6
            await check_restored(run, before, copied)

    with brokers((source, target), tmp_path) as (first, second):
        asyncio.run(run(first, second))


def test_a_restored_stream_outlives_the_broker(tmp_path: Path, name: str) -> None:
    async def before(broker: NatsBroker) -> tuple[dict[str, object], list[object]]:
        async with session(broker, name) as run:
            await fill(run)
            copy = await snapshot(run.client, run.name, chunk_size=4096)
            found = await facts(run), await contents(run)
            await run.js.delete_stream(run.name)
            answer = await restore(run.client, copy)
            assert "error" not in answer, answer
            return found

    async def after(broker: NatsBroker, found: tuple[dict[str, object], list[object]]) -> None:
        async with session(broker, name) as run:
            await check_restored(run, *found)

    with running_jetstream(tmp_path) as broker:
        found = asyncio.run(before(broker))
        broker.process.kill()
        broker.process.wait()
    with running_jetstream(tmp_path) as broker:
        asyncio.run(after(broker, found))


@scenario
async def test_a_snapshot_without_consumers_has_none(run: Session) -> None:
    await fill(run)
    copy = await snapshot(run.client, run.name, no_consumers=True)
    await run.js.delete_stream(run.name)
    answer = await restore(run.client, copy)
    assert answer["state"]["consumer_count"] == 0


@scenario
async def test_an_empty_stream_keeps_its_numbers(run: Session) -> None:
    await run.add()
    await run.publish("north", "one newt", "two newts")
    await run.js.purge_stream(run.name)
    copy = await snapshot(run.client, run.name)
    await run.js.delete_stream(run.name)
    await restore(run.client, copy)
    assert await run.publish("north", "three newts") == [3]


@scenario
async def test_the_messages_of_a_work_queue_stay_until_they_are_acknowledged(run: Session) -> None:
    for retention in (api.RetentionPolicy.WORK_QUEUE, api.RetentionPolicy.INTEREST):
        await run.add(retention=retention)
        reader = await run.consumer()
        await run.publish("north", "one newt", "two newts", "three newts")
        (first,) = await reader.fetch(1, timeout=DEADLINE_S)
        await first.ack_sync()
        copy = await snapshot(run.client, run.name)
        await run.js.delete_stream(run.name)
        answer = await restore(run.client, copy)
        assert answer["state"]["messages"] == 2, retention
        assert await bodies(await run.bind(), 2) == ["two newts", "three newts"]
        await run.js.delete_stream(run.name)


def damaged(copy: Copy, at: int) -> Copy:
    """Returns a copy with one wrong byte."""
    archive = bytearray(copy.archive)
    archive[at] ^= 1
    return replace(copy, archive=bytes(archive))


@pytest.mark.parametrize(
    "damage",
    [
        lambda copy: damaged(copy, 0),
        lambda copy: damaged(copy, len(copy.archive) // 2),
        lambda copy: replace(copy, archive=copy.archive[: len(copy.archive) // 2]),
        lambda copy: replace(copy, archive=b""),
        lambda copy: replace(copy, archive=b"garbage " * 1000),
    ],
)
def test_a_damaged_archive_leaves_no_stream(
    jetstream: NatsBroker, name: str, damage: Callable[[Copy], Copy]
) -> None:
    if jetstream.behaviour is NATS_SERVER:
        pytest.skip("nats-server keeps the part of the stream that came")

    async def run() -> None:
        async with session(jetstream, name) as run:
            await fill(run)
            copy = await snapshot(run.client, run.name)
            await run.js.delete_stream(run.name)
            answer = await restore(run.client, damage(copy))
            assert answer["error"]["err_code"] == 10062, answer
            with pytest.raises(NotFoundError):
                await run.js.stream_info(run.name)
            # The name is free for the whole archive.
            answer = await restore(run.client, copy)
            assert answer["state"]["messages"] == MANY - 6

    asyncio.run(run())


@scenario
async def test_requests_for_copies_are_refused_as_by_nats_server(run: Session) -> None:
    await run.add()
    snapshot_of = f"STREAM.SNAPSHOT.{run.name}"
    restore_of = f"STREAM.RESTORE.{run.name}"
    config = {"name": run.name, "subjects": [run.subject(">")]}
    for subject, body, code in (
        (snapshot_of, None, 10003),
        (snapshot_of, {"deliver_subject": "a.>"}, 10015),
        ("STREAM.SNAPSHOT.absent", {"deliver_subject": "a"}, 10059),
        (restore_of, None, 10003),
        (restore_of, {"config": {"name": "other"}, "state": {}}, 10056),
        (restore_of, {"config": config, "state": {}}, 10130),
    ):
        answer = await run.request(subject, body)
        assert answer["error"]["err_code"] == code, (subject, body, answer)


@scenario
async def test_a_snapshot_without_a_reader_ends(run: Session) -> None:
    await run.add()
    await run.publish("north", "one newt")
    ends = await run.client.subscribe(f"$JS.EVENT.ADVISORY.STREAM.SNAPSHOT_COMPLETE.{run.name}")
    answer = await run.request(f"STREAM.SNAPSHOT.{run.name}", {"deliver_subject": run.subject("x")})
    assert "error" not in answer
    advisory = json.loads((await ends.next_msg(DEADLINE_S)).data)
    assert advisory["type"] == "io.nats.jetstream.advisory.v1.snapshot_complete"
    assert advisory["stream"] == run.name
