"""Streams whose messages are increments of counters."""

import json
from typing import Any

from harness.deadline import DEADLINE_S
from harness.nats.jetstream import Session, scenario

REFUSED_MISSING, REFUSED_DISABLED, REFUSED_PAYLOAD, REFUSED_INVALID = 10169, 10168, 10170, 10171


async def _add(run: Session, **options: Any) -> None:  # noqa: ANN401
    """Creates a stream of counters."""
    config = {
        "name": run.name,
        "subjects": [run.subject(">")],
        "allow_msg_counter": True,
        "allow_direct": True,
    }
    answer = await run.request(f"STREAM.CREATE.{run.name}", config | options)
    assert "error" not in answer, answer


async def _count(
    run: Session, token: str, increment: str, body: bytes = b"", **headers: str
) -> Any:  # noqa: ANN401
    """Publishes an increment; returns the answer."""
    named = {"Nats-" + name.replace("_", "-"): value for name, value in headers.items()}
    answer = await run.client.request(
        run.subject(token), body, headers={"Nats-Incr": increment} | named, timeout=DEADLINE_S
    )
    return json.loads(answer.data)


@scenario
async def test_increments_add_up_by_subject(run: Session) -> None:
    await _add(run)
    for token, increment, value in [
        ("a", "1", "1"),
        ("a", "+10", "11"),
        ("b", "-5", "-5"),
        ("a", "-12", "-1"),
        ("b", "0", "-5"),
        ("a", "99999999999999999999999999", "99999999999999999999999998"),
    ]:
        answer = await _count(run, token, increment)
        assert answer["val"] == value
    message = await run.js.get_msg(run.name, 2)
    assert message.data is not None
    assert json.loads(message.data) == {"val": "11"}
    assert message.headers is not None
    assert message.headers["Nats-Incr"] == "+10"


@scenario
async def test_a_counter_goes_on_from_the_message_before_a_deleted_one(run: Session) -> None:
    await _add(run)
    for value in ("1", "3", "6"):
        assert (await _count(run, "a", value))["val"] in ("1", "4", "10")
    await run.js.delete_msg(run.name, 3)
    assert (await _count(run, "a", "1"))["val"] == "5"
    await run.js.purge_stream(run.name)
    assert (await _count(run, "a", "7"))["val"] == "7"


@scenario
async def test_increments_are_checked(run: Session) -> None:
    await _add(run)
    for increment, body, headers, code in [
        ("x", b"", {}, REFUSED_INVALID),
        ("1", b"x", {}, REFUSED_PAYLOAD),
        ("1", b"", {"Expected_Last_Sequence": "0"}, REFUSED_INVALID),
        ("1", b"", {"Rollup": "sub"}, REFUSED_INVALID),
    ]:
        answer = await _count(run, "a", increment, body, **headers)
        assert answer["error"]["err_code"] == code, (increment, body, headers)
    answer = await run.client.request(run.subject("a"), b"x", timeout=DEADLINE_S)
    assert json.loads(answer.data)["error"]["err_code"] == REFUSED_MISSING


@scenario
async def test_other_streams_do_not_count(run: Session) -> None:
    await run.add()
    assert (await _count(run, "a", "1"))["error"]["err_code"] == REFUSED_DISABLED


@scenario
async def test_an_increment_with_an_id_counts_once(run: Session) -> None:
    await _add(run)
    for _ in range(2):
        answer = await _count(run, "a", "5", Msg_Id="one")
    assert answer["duplicate"] is True
    assert (await _count(run, "a", "1"))["val"] == "6"
