"""Streams are created, changed, listed and deleted, with their messages, as nats-py asks."""

import dataclasses
import json
import os
from typing import Any

import pytest
from nats.js import api
from nats.js.errors import NotFoundError

from harness.deadline import DEADLINE_S, until
from harness.nats.jetstream import Session, error_code, scenario, status_of

NAME_IN_USE, SUBJECTS_OVERLAP, NO_STREAM, NO_MESSAGE = 10058, 10065, 10059, 10037
NO_CONSUMER, MESSAGE_DELETION_DENIED, INVALID_CONFIGURATION = 10014, 10057, 10052


@scenario
async def test_a_new_stream_is_empty_and_has_its_settings(run: Session) -> None:
    info = await run.add(max_msgs=10, max_age=60.0, description="of ponds")
    assert info.config.name == run.name
    assert info.config.subjects == [run.subject(">")]
    assert (info.config.max_msgs, info.config.max_age) == (10, 60.0)
    assert info.config.description == "of ponds"
    assert info.config.duplicate_window == 60.0
    assert (info.state.messages, info.state.first_seq, info.state.last_seq) == (0, 0, 0)
    assert info.state.consumer_count == 0


@scenario
async def test_the_same_stream_may_be_created_again_but_no_other_of_the_name(run: Session) -> None:
    await run.add()
    await run.publish("a", "1")
    again = await run.add()
    assert again.state.messages == 1
    assert await error_code(run.add(max_msgs=10)) == NAME_IN_USE


@scenario
async def test_two_streams_do_not_share_a_subject(run: Session) -> None:
    await run.add()
    other = run.js.add_stream(name=f"{run.name}-other", subjects=[run.subject("a")])
    assert await error_code(other) == SUBJECTS_OVERLAP


@scenario
async def test_an_update_changes_limits_and_subjects(run: Session) -> None:
    await run.add(subjects=[run.subject("a")])
    await run.publish("a", "1", "2", "3")
    config = api.StreamConfig(
        name=run.name, subjects=[run.subject("a"), run.subject("b")], max_msgs=2
    )
    info = await run.js.update_stream(config)
    assert (info.state.messages, info.state.first_seq) == (2, 2)
    assert await run.publish("b", "4") == [4]
    assert (await run.state()).first_seq == 3


@scenario
async def test_an_update_of_a_missing_stream_is_refused(run: Session) -> None:
    update = run.js.update_stream(name=run.name, subjects=[run.subject("a")])
    assert await error_code(update) == NO_STREAM


@scenario
async def test_streams_are_found_by_name_and_by_subject(run: Session) -> None:
    names = [f"{run.name}-{number}" for number in range(3)]
    for name in names:
        await run.js.add_stream(name=name, subjects=[f"{name}.>"])
    listed = [info.config.name for info in await run.js.streams_info()]
    assert [name for name in listed if name in names] == names
    answer = await run.request("STREAM.NAMES", {"subject": f"{names[1]}.x"})
    assert answer["streams"] == [names[1]]
    assert await run.js.find_stream_name_by_subject(f"{names[2]}.a.b") == names[2]


@scenario
async def test_a_list_of_names_comes_in_pages(run: Session) -> None:
    for number in range(3):
        await run.js.add_stream(name=f"{run.name}-{number}", subjects=[f"{run.name}-{number}"])
    first = await run.request("STREAM.NAMES", {"offset": 0})
    rest = await run.request("STREAM.NAMES", {"offset": 1})
    assert first["total"] == rest["total"] >= 3
    assert first["streams"][1:] == rest["streams"]


@scenario
async def test_a_deleted_stream_is_gone_with_its_messages(run: Session) -> None:
    await run.add()
    await run.publish("a", "1", "2")
    assert await run.js.delete_stream(run.name)
    assert await error_code(run.js.stream_info(run.name)) == NO_STREAM
    assert await error_code(run.js.delete_stream(run.name)) == NO_STREAM
    info = await run.add()
    assert (info.state.messages, info.state.last_seq) == (0, 0)
    assert await run.publish("a", "3") == [1]


@scenario
async def test_information_counts_the_subjects(run: Session) -> None:
    await run.add()
    await run.publish("a", "1", "2")
    await run.publish("b.c", "3")
    info = await run.js.stream_info(run.name, subjects_filter=">")
    assert info.state.subjects == {run.subject("a"): 2, run.subject("b.c"): 1}
    info = await run.js.stream_info(run.name, subjects_filter=run.subject("b.*"))
    assert info.state.subjects == {run.subject("b.c"): 1}


@scenario
async def test_a_purge_removes_all_messages_but_no_sequence(run: Session) -> None:
    await run.add()
    await run.publish("a", "1", "2", "3")
    assert await run.js.purge_stream(run.name)
    state = await run.state()
    assert (state.messages, state.first_seq, state.last_seq) == (0, 4, 3)
    assert await run.publish("a", "4") == [4]


@scenario
async def test_a_purge_keeps_what_it_is_told_to_keep(run: Session) -> None:
    rows: list[tuple[dict[str, Any], list[str]]] = [
        ({"subject": "a"}, ["b1", "b2", "b3"]),
        ({"seq": 4}, ["b2", "a3", "b3"]),
        ({"keep": 2}, ["a3", "b3"]),
        ({"subject": "b", "keep": 1}, ["a1", "a2", "a3", "b3"]),
        ({"subject": "a", "seq": 4}, ["b1", "b2", "a3", "b3"]),
    ]
    for number, (options, left) in enumerate(rows):
        row = dataclasses.replace(run, name=f"{run.name}-{number}")
        await row.add()
        for body in ("a1", "b1", "a2", "b2", "a3", "b3"):
            await row.publish(body[0], body)
        if "subject" in options:
            options["subject"] = row.subject(options["subject"])
        await row.js.purge_stream(row.name, **options)
        assert await contents(row) == left, options


@scenario
async def test_a_deleted_message_leaves_a_gap(run: Session) -> None:
    await run.add()
    await run.publish("a", "1", "2", "3")
    assert await run.js.delete_msg(run.name, 2)
    assert await contents(run) == ["1", "3"]
    assert await error_code(run.js.get_msg(run.name, 2)) == NO_MESSAGE
    assert await error_code(run.js.delete_msg(run.name, 2)) is not None
    state = await run.state()
    assert (state.messages, state.first_seq, state.last_seq, state.num_deleted) == (2, 1, 3, 1)
    answer = await run.request(f"STREAM.INFO.{run.name}", {"deleted_details": True})
    assert answer["state"]["deleted"] == [2]


@scenario
async def test_a_stream_may_forbid_deletion(run: Session) -> None:
    await run.add(deny_delete=True, deny_purge=True)
    await run.publish("a", "1")
    assert await error_code(run.js.delete_msg(run.name, 1)) == MESSAGE_DELETION_DENIED
    assert await error_code(run.js.purge_stream(run.name)) is not None
    assert await contents(run) == ["1"]


async def read_in_each_way(run: Session, *, direct: bool) -> None:
    """Reads messages by the API, or by direct requests."""
    await run.add(allow_direct=True)
    await run.publish("a", "1", Msg_Id="x")
    await run.publish("b", "2")
    await run.publish("a", "3")
    message = await run.js.get_msg(run.name, 1, direct=direct)
    assert (message.subject, message.seq, message.data) == (run.subject("a"), 1, b"1")
    assert message.headers is not None
    assert message.headers["Nats-Msg-Id"] == "x"
    message = await run.js.get_last_msg(run.name, run.subject("a"), direct=direct)
    assert (message.seq, message.data) == (3, b"3")
    message = await run.js.get_msg(run.name, 2, subject=run.subject("a"), next=True, direct=direct)
    assert message.seq == 3
    for missing in (
        run.js.get_msg(run.name, 9, direct=direct),
        run.js.get_last_msg(run.name, run.subject("c"), direct=direct),
    ):
        with pytest.raises(NotFoundError):
            await missing


@scenario
async def test_a_message_is_read_by_sequence_and_by_subject(run: Session) -> None:
    await read_in_each_way(run, direct=False)


@scenario
async def test_a_message_is_read_directly(run: Session) -> None:
    await read_in_each_way(run, direct=True)


@scenario
async def test_a_direct_request_for_several_subjects_ends_with_a_status(run: Session) -> None:
    await run.add(allow_direct=True)
    await run.publish("a", "1", "2")
    await run.publish("b", "3")
    inbox = run.client.new_inbox()
    answers = await run.client.subscribe(inbox)
    request = {"multi_last": [run.subject("*")]}
    await run.client.publish(
        f"$JS.API.DIRECT.GET.{run.name}", json.dumps(request).encode(), reply=inbox
    )
    for expected in (b"2", b"3"):
        assert (await answers.next_msg(DEADLINE_S)).data == expected
    assert status_of(await answers.next_msg(DEADLINE_S)) == "204 EOB"


@scenario
async def test_the_account_counts_streams_consumers_and_bytes(run: Session) -> None:
    before = await run.js.account_info()
    await run.add()
    await run.publish("a", "x" * 1000)
    await run.consumer()
    after = await run.js.account_info()
    assert after.streams == before.streams + 1
    assert after.consumers == before.consumers + 1
    assert after.storage - before.storage >= 1000


@scenario
async def test_consumers_are_listed_and_deleted(run: Session) -> None:
    await run.add()
    for consumer in ("one", "two"):
        await run.consumer(consumer)
    listed = await run.js.consumers_info(run.name)
    assert sorted(info.name for info in listed) == ["one", "two"]
    answer = await run.request(f"CONSUMER.NAMES.{run.name}")
    assert sorted(answer["consumers"]) == ["one", "two"]
    assert (await run.state()).consumer_count == 2
    assert await run.js.delete_consumer(run.name, "one")
    assert await error_code(run.js.consumer_info(run.name, "one")) == NO_CONSUMER
    assert (await run.state()).consumer_count == 1


@pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="one broker of Imori speaks all protocols"
)
@scenario
async def test_a_stream_with_what_is_missing_is_refused(run: Session) -> None:
    mirror = api.StreamSource(name="elsewhere")
    assert await error_code(run.add(mirror=mirror, subjects=None)) == INVALID_CONFIGURATION


async def contents(run: Session) -> list[str]:
    """Returns the bodies in the stream, in order."""
    state = await run.state()
    found = []
    for sequence in range(state.first_seq, state.last_seq + 1):
        try:
            found.append(await run.js.get_msg(run.name, sequence))
        except NotFoundError:
            continue
    return [(message.data or b"").decode() for message in found]


@scenario
async def test_a_message_grows_old_and_goes(run: Session) -> None:
    await run.add(max_age=0.3)
    await run.publish("a", "1", "2")

    async def is_empty() -> bool:
        return (await run.state()).messages == 0

    await until(is_empty, "the end of both messages")
    state = await run.state()
    assert (state.first_seq, state.last_seq) == (3, 2)
