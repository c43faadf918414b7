"""What a publish to a stream is answered: sequences, duplicates, expectations, limits."""

import asyncio

import pytest
from nats.js import api
from nats.js.errors import NoStreamResponseError

from harness.deadline import DEADLINE_S, until
from harness.nats.jetstream import Session, error_code, scenario

WRONG_LAST_SEQUENCE, WRONG_LAST_ID, WRONG_STREAM, TOO_LARGE = 10071, 10070, 10060, 10054
STORE_FAILED = 10077


@scenario
async def test_a_publish_is_answered_with_its_sequence(run: Session) -> None:
    await run.add()
    ack = await run.js.publish(run.subject("a"), b"1")
    assert (ack.stream, ack.seq, ack.duplicate) == (run.name, 1, None)
    assert await run.publish("b", "2", "3") == [2, 3]
    state = await run.state()
    assert (state.messages, state.first_seq, state.last_seq) == (3, 1, 3)


@scenario
async def test_without_a_stream_nobody_answers(run: Session) -> None:
    with pytest.raises(NoStreamResponseError):
        await run.publish("a", "1")


@scenario
async def test_a_repeated_id_is_stored_once(run: Session) -> None:
    await run.add()
    for expected in (None, True, True):
        ack = await run.js.publish(run.subject("a"), b"x", headers={"Nats-Msg-Id": "id"})
        assert (ack.seq, ack.duplicate) == (1, expected)
    assert await run.publish("a", "y", Msg_Id="other") == [2]
    assert (await run.state()).messages == 2


@scenario
async def test_an_id_is_forgotten_after_the_window(run: Session) -> None:
    await run.add(duplicate_window=0.1)
    assert await run.publish("a", "1", Msg_Id="id") == [1]

    async def sequence() -> int | None:
        ack = await run.js.publish(run.subject("a"), b"2", headers={"Nats-Msg-Id": "id"})
        return None if ack.duplicate else ack.seq

    assert await until(sequence, "the end of the window") == 2


@scenario
async def test_a_publish_may_expect_what_is_last(run: Session) -> None:
    await run.add()
    await run.publish("a", "1", Msg_Id="one")
    await run.publish("b", "2", Msg_Id="two")
    for header, value, expected in (
        ("Expected_Stream", "other", WRONG_STREAM),
        ("Expected_Last_Sequence", "1", WRONG_LAST_SEQUENCE),
        ("Expected_Last_Msg_Id", "one", WRONG_LAST_ID),
        ("Expected_Last_Subject_Sequence", "2", WRONG_LAST_SEQUENCE),
        ("Expected_Last_Subject_Sequence", "0", WRONG_LAST_SEQUENCE),
    ):
        refused = run.publish("a", "x", **{header: value})
        assert await error_code(refused) == expected, (header, value)
    assert (await run.state()).messages == 2
    assert await run.publish("a", "3", Expected_Stream=run.name) == [3]
    assert await run.publish("a", "4", Expected_Last_Sequence="3", Msg_Id="four") == [4]
    assert await run.publish("a", "5", Expected_Last_Msg_Id="four") == [5]
    assert await run.publish("b", "6", Expected_Last_Subject_Sequence="2") == [6]
    assert await run.publish("c", "7", Expected_Last_Subject_Sequence="0") == [7]


@scenario
async def test_old_messages_make_room_under_each_limit(run: Session) -> None:
    body = "x" * 1000
    for options, left in (
        ({"max_msgs": 3}, range(8, 11)),
        ({"max_bytes": 3500}, range(8, 11)),
        ({"max_msgs_per_subject": 2}, range(9, 11)),
    ):
        name = f"{run.name}-{next(iter(options))}"
        await run.js.add_stream(name=name, subjects=[name], **options)  # type: ignore[arg-type]
        for _ in range(10):
            await run.js.publish(name, body.encode())
        state = (await run.js.stream_info(name)).state
        assert (state.first_seq, state.last_seq) == (left[0], 10), options
        assert state.messages == len(left), options


@scenario
async def test_a_limit_per_subject_counts_each_subject(run: Session) -> None:
    await run.add(max_msgs_per_subject=1)
    await run.publish("a", "1", "2")
    await run.publish("b", "3", "4")
    await run.publish("a", "5")
    info = await run.js.stream_info(run.name, subjects_filter=">")
    assert info.state.subjects == {run.subject("a"): 1, run.subject("b"): 1}
    assert (await run.js.get_last_msg(run.name, run.subject("b"))).data == b"4"


@scenario
async def test_a_full_stream_may_refuse_new_messages(run: Session) -> None:
    new = api.DiscardPolicy.NEW
    for options in (
        {"max_msgs": 2},
        {"max_bytes": 2500},
        {"max_msgs_per_subject": 2, "discard_new_per_subject": True, "max_msgs": 10},
    ):
        name = f"{run.name}-{next(iter(options))}"
        await run.js.add_stream(name=name, subjects=[name], discard=new, **options)  # type: ignore[arg-type]
        for _ in range(2):
            await run.js.publish(name, b"x" * 1000)
        refused = run.js.publish(name, b"x" * 1000)
        assert await error_code(refused) == STORE_FAILED, options
        await run.js.delete_msg(name, 1)
        assert (await run.js.publish(name, b"x" * 1000)).seq == 3, options


@scenario
async def test_a_message_over_the_size_is_refused(run: Session) -> None:
    await run.add(max_msg_size=100)
    assert await run.publish("a", "x" * 100) == [1]
    assert await error_code(run.publish("a", "x" * 101)) == TOO_LARGE


@scenario
async def test_headers_and_bodies_are_kept(run: Session) -> None:
    await run.add()
    sent = {"Odd!#$%&'*+.^_": "a:b;c", "lower-case": "kept", "Text": "größe"}
    every_byte = bytes(range(256)) * 16
    await run.js.publish(run.subject("a"), every_byte, headers=dict(sent))
    await run.js.publish(run.subject("a"), b"")
    consumer = await run.consumer()
    first, second = await consumer.fetch(2)
    assert first.data == every_byte
    assert first.headers == sent
    assert (second.data, second.headers) == (b"", None)


@scenario
async def test_a_thousand_publishes_at_once_are_all_answered(run: Session) -> None:
    await run.add()
    acks = [
        await run.js.publish_async(run.subject("a"), str(number).encode()) for number in range(1000)
    ]
    answers = await asyncio.gather(*acks)
    assert [answer.seq for answer in answers] == list(range(1, 1001))
    assert (await run.state()).messages == 1000


@scenario
async def test_a_stream_also_takes_publishes_that_want_no_answer(run: Session) -> None:
    await run.add()
    plain = await run.client.subscribe(run.subject("a"))
    await run.fence()
    await run.client.publish(run.subject("a"), b"1")
    assert (await plain.next_msg(DEADLINE_S)).data == b"1"
    await run.fence()
    assert (await run.state()).messages == 1


@scenario
async def test_a_stream_without_acks_stores_silently(run: Session) -> None:
    await run.add(no_ack=True)
    inbox = await run.client.subscribe(run.client.new_inbox())
    await run.client.publish(run.subject("a"), b"1", reply=inbox.subject)
    await run.fence()
    assert (await run.state()).messages == 1
    # An answer would come before what another publisher sends there afterwards.
    await run.client.publish(inbox.subject, b"last")
    assert (await inbox.next_msg(DEADLINE_S)).data == b"last"


@scenario
async def test_a_rollup_replaces_what_is_before_it(run: Session) -> None:
    await run.add(allow_rollup_hdrs=True)
    await run.publish("a", "1", "2")
    await run.publish("b", "3")
    await run.publish("a", "4", Rollup="sub")
    info = await run.js.stream_info(run.name, subjects_filter=">")
    assert info.state.subjects == {run.subject("a"): 1, run.subject("b"): 1}
    await run.publish("a", "5", Rollup="all")
    state = await run.state()
    assert (state.messages, state.first_seq) == (1, 5)
    with_rollup = await run.js.get_msg(run.name, 5)
    assert with_rollup.data == b"5"


@scenario
async def test_a_message_with_a_time_to_live_goes_alone(run: Session) -> None:
    await run.add(allow_msg_ttl=True)
    await run.js.publish(run.subject("a"), b"1", msg_ttl=1.0)
    await run.publish("a", "2")
    await run.gone(1)
    state = await run.state()
    assert (state.messages, state.first_seq) == (1, 2)
