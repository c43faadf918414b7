"""CONNECT, versions, credentials, virtual hosts, heart-beats, DISCONNECT."""

import pytest

from harness.broker import Broker
from harness.fixtures import Connect, ConnectRaw
from harness.frame import BrokerError

VERSIONS = ["1.0", "1.1", "1.2"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_asked_for_is_spoken(connect: Connect, version: str) -> None:
    connected = connect(version=version).connected
    assert connected["version"] == version
    assert connected["session"]
    assert connected["server"]


def test_a_connect_without_headers_of_1_1_gets_1_0(connect_raw: ConnectRaw) -> None:
    raw = connect_raw()
    raw.send("CONNECT", {"login": "guest", "passcode": "guest"})
    connected = raw.read()
    assert (connected.command, connected["version"]) == ("CONNECTED", "1.0")


@pytest.mark.parametrize(
    ("offered", "chosen"), [("1.0,1.1,1.2", "1.2"), ("1.1,1.0", "1.1"), ("1.2,2.0", "1.2")]
)
def test_the_highest_common_version_is_chosen(
    connect_raw: ConnectRaw, offered: str, chosen: str
) -> None:
    assert connect_raw().login(version=offered)["version"] == chosen


def test_no_common_version_is_an_error_that_lists_ours(connect_raw: ConnectRaw) -> None:
    answer = connect_raw().login(version="1.3,2.0")
    assert answer.command == "ERROR"
    assert answer["message"] == "Version mismatch"
    assert answer["version"] == "1.0,1.1,1.2"
    assert answer.body.strip() == b"Supported versions are 1.0,1.1,1.2"


def test_nuls_and_line_ends_between_frames_say_nothing(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.write(b"\0\n\0\r\n")
    assert raw.login().command == "CONNECTED"
    raw.write(b"\0\n\0\r\n")
    raw.send("SEND", {"destination": f"/queue/{name}", "receipt": "r"}, b"x")
    assert raw.read()["receipt-id"] == "r"


@pytest.mark.parametrize("command", ["CONNECT", "STOMP"])
def test_both_opening_commands_are_understood(connect_raw: ConnectRaw, command: str) -> None:
    raw = connect_raw()
    headers = {"accept-version": "1.2", "host": "/", "login": "guest", "passcode": "guest"}
    raw.send(command, headers)
    assert raw.read().command == "CONNECTED"


@pytest.mark.parametrize(
    ("login", "passcode"), [("guest", "wrong"), ("nobody", "guest"), ("guest", "")]
)
def test_wrong_credentials_are_refused(connect: Connect, login: str, passcode: str) -> None:
    with pytest.raises(BrokerError):
        connect(login=login, passcode=passcode)


def test_an_unknown_user_and_a_wrong_passcode_look_alike(connect_raw: ConnectRaw) -> None:
    answers = []
    for login in ("guest", "nobody"):
        answer = connect_raw().login(headers={"login": login, "passcode": "wrong"})
        body = answer.body.replace(login.encode(), b"USER")
        answers.append((answer.command, answer["message"], body))
    assert answers[0] == answers[1]


def test_a_frame_before_connect_is_refused(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.send("SEND", {"destination": f"/queue/{name}"}, b"too early")
    assert raw.read().command == "ERROR"


def test_the_root_host_is_the_default(connect_raw: ConnectRaw) -> None:
    raw = connect_raw()
    raw.send("CONNECT", {"accept-version": "1.2", "login": "guest", "passcode": "guest"})
    assert raw.read().command == "CONNECTED"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_name_of_this_machine_means_the_root_host(
    connect_raw: ConnectRaw, broker: Broker, host: str
) -> None:
    expected = "CONNECTED" if broker.behaviour.own_host_names_mean_root else "ERROR"
    assert connect_raw().login(headers={"host": host}).command == expected


def test_an_unknown_host_is_refused_by_name(connect_raw: ConnectRaw) -> None:
    answer = connect_raw().login(headers={"host": "no-such-host"})
    assert answer.command == "ERROR"
    assert b"no-such-host" in answer.body


def test_heartbeats_have_a_floor_of_a_second(connect_raw: ConnectRaw) -> None:
    connected = connect_raw().login(headers={"heart-beat": "100,100"})
    assert connected["heart-beat"] == "1000,1000"


def test_no_heartbeats_are_agreed_unless_asked_for(connect: Connect) -> None:
    assert connect().connected.headers.get("heart-beat", "0,0") == "0,0"


def test_heartbeats_keep_an_idle_connection_both_ways(connect: Connect, name: str) -> None:
    client = connect(heartbeats=(1000, 1000))
    client.wait_heartbeats(3)
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", b"still here")
    assert client.receive().body == b"still here"


def test_a_client_that_promised_heartbeats_and_is_silent_is_cut(connect_raw: ConnectRaw) -> None:
    raw = connect_raw()
    assert raw.login(headers={"heart-beat": "1000,0"}).command == "CONNECTED"
    raw.read_until_closed()


@pytest.mark.parametrize("version", VERSIONS)
def test_disconnect_gives_its_receipt_and_closes(connect: Connect, version: str) -> None:
    connect(version=version).disconnect()


def test_disconnect_without_a_receipt_closes(connect_raw: ConnectRaw) -> None:
    raw = connect_raw()
    raw.login()
    raw.send("DISCONNECT", {})
    assert raw.read_until_closed() == []


def test_what_was_sent_before_disconnect_is_done(
    connect: Connect, connect_raw: ConnectRaw, name: str
) -> None:
    raw = connect_raw()
    raw.login()
    for number in range(100):
        raw.send("SEND", {"destination": f"/queue/{name}"}, str(number).encode())
    raw.send("DISCONNECT", {"receipt": "bye"})
    assert [frame["receipt-id"] for frame in raw.read_until_closed()] == ["bye"]
    client = connect()
    client.subscribe(f"/queue/{name}")
    assert client.receive_bodies(100) == [str(number).encode() for number in range(100)]
