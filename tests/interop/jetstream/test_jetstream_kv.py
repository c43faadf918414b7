"""Key-value buckets as nats-py uses them."""

import asyncio
from typing import Any

import pytest
from nats.js.errors import (
    BucketNotFoundError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NoKeysError,
)
from nats.js.kv import KeyValue

from harness.deadline import DEADLINE_S, until
from harness.nats.jetstream import Session, error_code, scenario

WRONG_LAST_SEQUENCE = 10071


async def history(bucket: KeyValue, key: str) -> list[tuple[bytes | None, str | None]]:
    """Returns values and operations of a key, in order."""
    return [(entry.value, entry.operation) for entry in await bucket.history(key)]


async def update(watcher: KeyValue.KeyWatcher) -> Any:  # noqa: ANN401
    """Returns the next change; `None` marks the end of the values there were."""
    return await watcher.updates(timeout=DEADLINE_S)  # type: ignore[no-untyped-call]


@scenario
async def test_a_value_is_put_and_read(run: Session) -> None:
    bucket = await run.js.create_key_value(bucket=run.name)
    assert await bucket.put("pond.north", b"newt") == 1
    assert await bucket.put("pond.north", b"frog") == 2
    entry = await bucket.get("pond.north")
    assert (entry.key, entry.value, entry.revision) == ("pond.north", b"frog", 2)
    with pytest.raises(KeyNotFoundError):
        await bucket.get("pond.south")
    # The default keeps one value of a key.
    with pytest.raises(KeyNotFoundError):
        await bucket.get("pond.north", revision=1)


@scenario
async def test_an_update_needs_the_last_revision(run: Session) -> None:
    bucket = await run.js.create_key_value(bucket=run.name)
    revision = await bucket.create("key", b"1")
    with pytest.raises(KeyWrongLastSequenceError):
        await bucket.create("key", b"x")
    with pytest.raises(KeyWrongLastSequenceError):
        await bucket.update("key", b"x", last=revision + 1)
    assert await bucket.update("key", b"2", last=revision) == revision + 1
    assert (await bucket.get("key")).value == b"2"
    assert await error_code(bucket.delete("key", last=revision)) == WRONG_LAST_SEQUENCE


@scenario
async def test_only_one_of_many_creators_succeeds(run: Session) -> None:
    bucket = await run.js.create_key_value(bucket=run.name)
    answers = await asyncio.gather(
        *(bucket.create("lock", str(number).encode()) for number in range(20)),
        return_exceptions=True,
    )
    winners = [number for number, answer in enumerate(answers) if isinstance(answer, int)]
    assert len(winners) == 1
    assert (await bucket.get("lock")).value == str(winners[0]).encode()


@scenario
async def test_a_deleted_key_leaves_a_mark(run: Session) -> None:
    bucket = await run.js.create_key_value(bucket=run.name, history=5)
    await bucket.put("key", b"1")
    await bucket.delete("key")
    # nats-py tells both as missing, and the history distinguishes them.
    with pytest.raises(KeyNotFoundError):
        await bucket.get("key")
    assert await history(bucket, "key") == [(b"1", None), (b"", "DEL")]
    assert await bucket.create("key", b"2") == 3
    assert (await bucket.get("key")).value == b"2"


@scenario
async def test_a_purge_forgets_the_history(run: Session) -> None:
    bucket = await run.js.create_key_value(bucket=run.name, history=5)
    for value in (b"1", b"2", b"3"):
        await bucket.put("key", value)
    await bucket.put("other", b"4")
    assert await history(bucket, "key") == [(b"1", None), (b"2", None), (b"3", None)]
    await bucket.purge("key")
    assert await history(bucket, "key") == [(b"", "PURGE")]
    assert (await bucket.get("other")).value == b"4"
    await bucket.purge_deletes(olderthan=-1)
    assert (await bucket.status()).values == 1


@scenario
async def test_the_history_is_limited(run: Session) -> None:
    bucket = await run.js.create_key_value(bucket=run.name, history=3)
    for number in range(10):
        await bucket.put("key", str(number).encode())
    assert [value for value, _ in await history(bucket, "key")] == [b"7", b"8", b"9"]
    assert (await bucket.get("key", revision=9)).value == b"8"


@scenario
async def test_keys_are_listed_without_the_deleted(run: Session) -> None:
    bucket = await run.js.create_key_value(bucket=run.name)
    with pytest.raises(NoKeysError):
        await bucket.keys()
    for key in ("a", "b.c", "b.d", "e"):
        await bucket.put(key, b"x")
    await bucket.delete("e")
    assert sorted(await bucket.keys()) == ["a", "b.c", "b.d"]
    assert sorted(await bucket.keys(filters=["b."])) == ["b.c", "b.d"]


@scenario
async def test_a_watcher_sees_values_then_an_end_then_changes(run: Session) -> None:
    bucket = await run.js.create_key_value(bucket=run.name)
    await bucket.put("a.x", b"1")
    await bucket.put("b.x", b"2")
    watcher = await bucket.watch("a.*")
    entry = await update(watcher)
    assert (entry.key, entry.value, entry.delta) == ("a.x", b"1", 0)
    assert await update(watcher) is None
    await bucket.put("b.x", b"3")
    await bucket.put("a.y", b"4")
    await bucket.delete("a.x")
    seen = []
    for _ in range(2):
        entry = await update(watcher)
        seen.append((entry.key, entry.value, entry.operation))
    assert seen == [("a.y", b"4", None), ("a.x", b"", "DEL")]


@scenario
async def test_a_watcher_of_an_empty_bucket_has_an_end_at_once(run: Session) -> None:
    bucket = await run.js.create_key_value(bucket=run.name)
    watcher = await bucket.watchall()
    assert await update(watcher) is None
    await bucket.put("key", b"1")
    assert (await update(watcher)).value == b"1"


@scenario
async def test_a_value_expires_with_the_bucket(run: Session) -> None:
    bucket = await run.js.create_key_value(bucket=run.name, ttl=0.4)
    watcher = await bucket.watchall()
    assert await update(watcher) is None
    await bucket.put("key", b"1")
    assert (await update(watcher)).value == b"1"

    async def is_gone() -> bool:
        try:
            await bucket.get("key")
        except KeyNotFoundError:
            return True
        return False

    await until(is_gone, "the end of the value")


@scenario
async def test_a_value_is_read_directly_or_through_the_api(run: Session) -> None:
    for direct in (False, True):
        name = f"{run.name}-{direct}"
        bucket = await run.js.create_key_value(bucket=name, direct=direct)
        await bucket.put("key", b"1")
        assert (await bucket.get("key")).value == b"1", direct


@scenario
async def test_a_bucket_is_found_described_and_deleted(run: Session) -> None:
    with pytest.raises(BucketNotFoundError):
        await run.js.key_value(run.name)
    await run.js.create_key_value(bucket=run.name, history=4, ttl=60.0)
    bucket = await run.js.key_value(run.name)
    await bucket.put("key", b"1")
    status = await bucket.status()
    assert (status.bucket, status.values, status.history, status.ttl) == (run.name, 1, 4, 60.0)
    assert await run.js.delete_key_value(run.name)
    with pytest.raises(BucketNotFoundError):
        await run.js.key_value(run.name)
