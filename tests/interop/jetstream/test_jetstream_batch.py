"""Atomic batches: all messages of a batch are stored, or none."""

import asyncio
import json
from typing import Any

from harness.deadline import DEADLINE_S
from harness.nats.jetstream import Session, bodies, nothing, scenario

DISABLED, NO_SEQUENCE, INCOMPLETE = 10174, 10175, 10176
UNSUPPORTED, INVALID_ID, TOO_LARGE, INVALID_COMMIT, DUPLICATE = 10177, 10179, 10199, 10200, 10201


async def _add(run: Session, **options: Any) -> None:  # noqa: ANN401
    """Creates a stream that takes batches."""
    config = {"name": run.name, "subjects": [run.subject(">")], "allow_atomic": True}
    answer = await run.request(f"STREAM.CREATE.{run.name}", config | options)
    assert "error" not in answer, answer


async def _send(
    run: Session,
    batch: str,
    sequence: int | str | None,
    body: str = "",
    *,
    commit: str | None = None,
    token: str = "a",
    **headers: str,
) -> Any:  # noqa: ANN401
    """Publishes a message of a batch; returns the answer, `None` for an empty one."""
    named = {"Nats-" + name.replace("_", "-"): value for name, value in headers.items()}
    named["Nats-Batch-Id"] = batch
    if sequence is not None:
        named["Nats-Batch-Sequence"] = str(sequence)
    if commit is not None:
        named["Nats-Batch-Commit"] = commit
    subject = run.subject(token)
    answer = await run.client.request(subject, body.encode(), headers=named, timeout=DEADLINE_S)
    return json.loads(answer.data) if answer.data else None


def _code(answer: Any) -> int:  # noqa: ANN401
    """Returns the code of a refusal."""
    code: int = answer["error"]["err_code"]
    return code


@scenario
async def test_a_batch_is_stored_when_it_is_committed(run: Session) -> None:
    await _add(run)
    consumer = await run.consumer()
    assert await _send(run, "b", 1, "1") is None
    assert await _send(run, "b", 2, "2", token="x") is None
    assert await nothing(run)
    assert (await run.state()).messages == 0
    answer = await _send(run, "b", 3, "3", commit="1")
    assert (answer["seq"], answer["batch"], answer["count"]) == (3, "b", 3)
    assert await bodies(consumer, 3) == ["1", "2", "3"]
    message = await run.js.get_msg(run.name, 2)
    assert message.headers is not None
    assert message.headers["Nats-Batch-Id"] == "b"
    assert message.headers["Nats-Batch-Sequence"] == "2"


@scenario
async def test_the_end_of_a_batch_can_be_a_message_of_its_own(run: Session) -> None:
    await _add(run)
    assert await _send(run, "b", 1, "1") is None
    answer = await _send(run, "b", 2, "not stored", commit="eob")
    assert (answer["seq"], answer["count"]) == (1, 1)
    assert (await run.state()).messages == 1
    assert _code(await _send(run, "c", 1, commit="eob")) == INCOMPLETE


@scenario
async def test_a_gap_ends_a_batch(run: Session) -> None:
    await _add(run)
    assert await _send(run, "b", 1, "1") is None
    assert _code(await _send(run, "b", 3, "3")) == INCOMPLETE
    assert _code(await _send(run, "b", 2, "2", commit="1")) == INCOMPLETE
    assert (await run.state()).messages == 0


@scenario
async def test_headers_of_batches_are_checked(run: Session) -> None:
    await _add(run)
    assert _code(await _send(run, "x" * 65, 1)) == INVALID_ID
    assert _code(await _send(run, "b", None)) == NO_SEQUENCE
    assert _code(await _send(run, "b", 1, commit="x")) == INVALID_COMMIT
    assert _code(await _send(run, "b", 1001)) == TOO_LARGE
    assert _code(await _send(run, "b", 5)) == INCOMPLETE
    answer = await _send(run, "b", 1, commit="1", Expected_Last_Msg_Id="x")
    assert _code(answer) == UNSUPPORTED
    assert (await run.state()).messages == 0


@scenario
async def test_a_batch_with_a_wrong_expectation_is_not_stored(run: Session) -> None:
    await _add(run)
    await run.publish("a", "0")
    assert await _send(run, "b", 1, "1") is None
    answer = await _send(
        run, "b", 2, "2", commit="1", token="x", Expected_Last_Subject_Sequence="7"
    )
    assert _code(answer) == 10071
    assert (await run.state()).messages == 1
    assert await _send(run, "c", 1, "1", Expected_Last_Sequence="1") is None
    answer = await _send(run, "c", 2, "2", commit="1", Expected_Last_Subject_Sequence="1")
    assert _code(answer) == 10164
    assert await _send(run, "d", 1, "1", Expected_Last_Sequence="1") is None
    answer = await _send(run, "d", 2, "2", commit="1", token="x")
    assert answer["seq"] == 3


@scenario
async def test_ids_of_a_batch_are_new(run: Session) -> None:
    await _add(run)
    assert await _send(run, "b", 1, "1", Msg_Id="i") is None
    assert _code(await _send(run, "b", 2, "2", commit="1", Msg_Id="i")) == DUPLICATE
    assert (await run.state()).messages == 0
    await run.publish("a", "0", Msg_Id="i")
    assert _code(await _send(run, "c", 1, "1", commit="1", Msg_Id="i")) == DUPLICATE
    assert (await _send(run, "d", 1, "1", commit="1", Msg_Id="j"))["seq"] == 2
    assert (await run.js.publish(run.subject("a"), b"", headers={"Nats-Msg-Id": "j"})).duplicate


@scenario
async def test_other_streams_take_no_batches(run: Session) -> None:
    await run.add()
    assert _code(await _send(run, "b", 1, "1")) == DISABLED


@scenario
async def test_batches_do_not_mix(run: Session) -> None:
    await _add(run)
    for number in (1, 2):
        await asyncio.gather(
            *(_send(run, batch, number, f"{batch}{number}") for batch in ("b", "c"))
        )
    await run.publish("a", "between")
    assert (await _send(run, "c", 3, "c3", commit="1"))["seq"] == 4
    assert (await _send(run, "b", 3, "b3", commit="1"))["seq"] == 7
    consumer = await run.consumer()
    expected = ["between", "c1", "c2", "c3", "b1", "b2", "b3"]
    assert await bodies(consumer, 7) == expected


@scenario
async def test_counters_and_batches(run: Session) -> None:
    await _add(run, allow_msg_counter=True)
    assert await _send(run, "b", 1, Incr="2") is None
    assert (await _send(run, "b", 2, commit="1", Incr="3"))["seq"] == 2
    message = await run.js.get_msg(run.name, 2)
    assert message.data is not None
    assert json.loads(message.data) == {"val": "5"}
