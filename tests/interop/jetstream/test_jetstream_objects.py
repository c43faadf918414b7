"""Object stores as nats-py uses them."""

import hashlib
import io
import random
from typing import Any

import pytest
from nats.js import api
from nats.js.errors import BucketNotFoundError, ObjectNotFoundError
from nats.js.object_store import ObjectStore

from harness.deadline import DEADLINE_S
from harness.nats.jetstream import Session, scenario

LARGE_BYTES = 5 << 20


async def update(watcher: ObjectStore.ObjectWatcher) -> Any:  # noqa: ANN401
    """Returns the next change; `None` marks the end of the objects there were."""
    return await watcher.updates(timeout=DEADLINE_S)  # type: ignore[no-untyped-call]


@scenario
async def test_an_object_is_put_and_read(run: Session) -> None:
    store = await run.js.create_object_store(run.name)
    meta = api.ObjectMeta(description="of a newt", headers={"kind": "picture"})
    info = await store.put("newt", b"a newt", meta=meta)
    assert (info.name, info.size, info.chunks) == ("newt", 6, 1)
    result = await store.get("newt")
    assert result.data == b"a newt"
    assert result.info.description == "of a newt"
    assert result.info.headers == {"kind": "picture"}
    assert result.info.digest == info.digest
    with pytest.raises(ObjectNotFoundError):
        await store.get("frog")


@scenario
async def test_a_large_object_comes_back_whole(run: Session) -> None:
    store = await run.js.create_object_store(run.name)
    body = random.Random(1).randbytes(LARGE_BYTES)
    info = await store.put("large", io.BytesIO(body))
    assert (info.size, info.chunks) == (LARGE_BYTES, LARGE_BYTES // (128 << 10))
    out = io.BytesIO()
    await store.get("large", writeinto=out)
    assert hashlib.sha256(out.getvalue()).digest() == hashlib.sha256(body).digest()
    status = await store.status()
    assert status.size >= LARGE_BYTES


@scenario
async def test_a_new_version_replaces_the_chunks(run: Session) -> None:
    store = await run.js.create_object_store(run.name)
    await store.put("object", b"x" * 300_000)
    await store.put("object", b"short")
    assert (await store.get("object")).data == b"short"
    state = (await run.js.stream_info(f"OBJ_{run.name}")).state
    assert state.messages == 2, "one chunk and the description"


@scenario
async def test_a_deleted_object_is_gone_with_its_chunks(run: Session) -> None:
    store = await run.js.create_object_store(run.name)
    await store.put("one", b"1" * 200_000)
    await store.put("two", b"2")
    await store.delete("one")
    with pytest.raises(ObjectNotFoundError):
        await store.get("one")
    assert [info.name for info in await store.list(ignore_deletes=True)] == ["two"]
    state = (await run.js.stream_info(f"OBJ_{run.name}")).state
    assert state.messages == 3, "the mark of the deletion, and a chunk and its description"


@scenario
async def test_a_watcher_sees_objects_then_an_end_then_changes(run: Session) -> None:
    store = await run.js.create_object_store(run.name)
    await store.put("one", b"1")
    watcher = await store.watch()
    assert (await update(watcher)).name == "one"
    assert await update(watcher) is None
    await store.put("two", b"2")
    assert (await update(watcher)).name == "two"
    await store.delete("one")
    deleted = await update(watcher)
    assert (deleted.name, deleted.deleted) == ("one", True)


@scenario
async def test_a_description_is_changed_without_the_body(run: Session) -> None:
    store = await run.js.create_object_store(run.name)
    await store.put("object", b"body")
    await store.update_meta("object", api.ObjectMeta(name="object", description="new"))
    result = await store.get("object")
    assert (result.data, result.info.description) == (b"body", "new")


@scenario
async def test_a_sealed_store_is_only_read(run: Session) -> None:
    store = await run.js.create_object_store(run.name)
    await store.put("object", b"body")
    await store.seal()  # type: ignore[no-untyped-call]
    assert (await store.status()).sealed
    assert (await store.get("object")).data == b"body"
    with pytest.raises(Exception, match=r"sealed|No response|timeout"):
        await store.put("other", b"x")


@scenario
async def test_a_store_is_deleted(run: Session) -> None:
    await run.js.create_object_store(run.name)
    assert await run.js.delete_object_store(run.name)
    with pytest.raises(BucketNotFoundError):
        await (await run.js.object_store(run.name)).status()
