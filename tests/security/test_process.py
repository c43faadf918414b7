"""The process: its output, its end, and its behaviour when the system runs out of resources."""

import json
import re
import signal
import socket
import subprocess
import tomllib
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.deadline import DEADLINE_S, wait_for
from harness.fixtures import ConnectRaw, StartImori
from harness.frame import frame_bytes
from harness.imori import BINARY, REPOSITORY
from harness.monitor import page


def test_without_descriptors_accepting_waits_and_recovers(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-15.
    imori = start_imori(files_max=64)
    before = connect_raw(imori)
    before.login()
    flood = [connect_raw(imori) for _ in range(200)]
    before.send("SEND", {"destination": "/queue/q", "receipt": "r"}, b"kept")
    assert before.read().command == "RECEIPT", "who is inside goes on"
    for raw in flood:
        raw.close()
    after = connect_raw(imori)
    assert after.login().command == "CONNECTED"
    after.send("SUBSCRIBE", {"id": "s", "destination": "/queue/q"})
    assert after.read().body == b"kept"
    complaints = [line for line in imori.log_lines() if "cannot be accepted" in line]
    assert 0 < len(complaints) < 20


def test_the_memory_of_password_checks_goes_back(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY AUTH-09: 19 MiB for the password of `admin`, which the first start creates, and for
    # each thread that checks one.
    settings = {"cells.count": 2}
    imori = start_imori(settings=settings, admin=True, nats=True, amqp=True, monitor=True)
    for _ in range(2):
        raw = connect_raw(imori)
        raw.login(headers={"login": "eve", "passcode": "wrong"})
        raw.close()
    assert imori.anonymous_bytes() > IDLE_BYTES, "a password was just checked"
    wait_for(lambda: imori.anonymous_bytes() < IDLE_BYTES)


def test_a_line_of_json_has_each_key_once_and_numbers_as_numbers(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    imori = start_imori(settings={"log.format": "json"}, monitor=True)
    raws = [connect_raw(imori) for _ in range(3)]
    for raw in raws:
        raw.login()
    numbers = [row["cid"] for row in page(imori, "/connz?sort=cid")["connections"]]
    raws[1].write(b"NONSENSE\n\n\0")
    raws[1].read_until_closed()
    assert imori.stop() == 0
    lines = [json.loads(line, object_pairs_hook=once) for line in imori.log_lines()]
    (refused,) = [line for line in lines if line["message"] == "client was refused"]
    assert refused["cid"] == numbers[1]
    assert refused["reason"] == "Bad command"
    (read,) = [line for line in lines if line["message"] == "the journal is read"]
    assert isinstance(read["took_ms"], int)
    words = [value for line in lines for value in line.values() if isinstance(value, str)]
    assert not [word for word in words if word.isdigit()]


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a JSON object, after checking that its keys are unique."""
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), keys
    return dict(pairs)


# Memory of an idle broker without the pages of its program, of which a debug build has more.
IDLE_BYTES = 18 * 1024 * 1024

NAMES = [
    b"a\\nINFO forged line",
    b"a\\r\\n2026-01-01 ERROR forged",
    b"\x1b[31mred\x1b[0m",
    b"\xc2\x9b31m",
]
NAMES += [b"\x07\x08\x7f", b"\xe2\x80\xae", b"\\n" * 50, b"x" * 5000]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_what_clients_write_stays_on_one_line_of_the_log(
    start_imori: StartImori, connect_raw: ConnectRaw, log_format: str
) -> None:
    # SECURITY LIM-17, OPS-02.
    for name in NAMES:
        imori = start_imori(settings={"log.format": log_format, "log.level": "trace"})
        before = len(imori.log_lines())
        raw = connect_raw(imori)
        raw.login()
        raw.write(b"SEND\ndestination:/nowhere/" + name + b"\n\n\0")
        raw.read_until_closed()
        other = connect_raw(imori)
        other.login(headers={"login": "eve", "passcode": "s3cret"})
        raw.close()
        other.close()
        assert imori.stop() == 0
        text = imori.log.read_bytes()
        lines = text.decode().splitlines()
        # Two clients are refused; the second is logged separately if it came a second later.
        assert len([line for line in lines[before:] if "client was refused" in line]) in (1, 2)
        assert all(line.startswith("{" if log_format == "json" else "20") for line in lines)
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", text)
        assert b"s3cret" not in text
        assert len(text) < 10_000


def test_headers_that_no_broker_knows_are_logged_once_a_connection(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    imori = start_imori()
    raw = connect_raw(imori)
    raw.login()
    for number in range(2):
        headers = {"id": str(number), "destination": "/queue/a", "receipt": str(number)}
        raw.send("SUBSCRIBE", {**headers, "x-prioritty": "9", "x-priority": "9", "colour": "red"})
        assert raw.read()["receipt-id"] == str(number)
    assert imori.stop() == 0
    lines = [line for line in imori.log_lines() if "what has no effect" in line]
    assert len(lines) == 1
    assert "x-prioritty" in lines[0]
    assert "x-priority`" not in lines[0]
    assert "colour" not in lines[0]


@pytest.mark.parametrize(
    ("listener", "first", "hint"),
    [
        ("stomp", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "it speaks HTTP"),
        (
            "stomp",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(20),
            "it begins with TLS",
        ),
        ("stomp", b'CONNECT {"verbose":false}\r\nPING\r\n', "it speaks NATS"),
        ("stomp", b"", "it said nothing"),
        ("nats", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "it speaks HTTP"),
        ("nats", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(20), "it begins with TLS"),
        ("nats", b"CONNECT\naccept-version:1.2\nhost:/\n\n\0", "it speaks STOMP"),
        ("nats", b'CONNECT {"user":"guest","pass":"wrong"}\r\n', "check `user` and `pass`"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_log_says_what_a_client_at_the_wrong_port_speaks(
    start_imori: StartImori, listener: str, first: bytes, hint: str
) -> None:
    imori = start_imori(settings={"limits.login_timeout_s": 1}, protocol=listener)
    with socket.create_connection(imori.addresses[0], DEADLINE_S) as client:
        client.sendall(first)
        # Data that the broker did not read turns the close into a reset.
        with suppress(ConnectionResetError):
            while client.recv(4096):
                pass
    assert imori.stop() == 0
    lines = [line for line in imori.log_lines() if "client was refused" in line]
    assert len(lines) == 1
    assert hint in lines[0]


def test_a_flood_of_complaints_makes_few_lines(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-17: at most ten per second, from any number of sources.
    imori = start_imori()
    for number in range(600):
        raw = connect_raw(imori, source=f"127.0.{number % 50}.1")
        raw.write(b"nonsense\n\n\0")
        raw.read_until_closed()
    lines = [line for line in imori.log_lines() if "client was refused" in line]
    assert lines
    assert max(Counter(line[:19] for line in lines).values()) <= 2 * 8, (
        "two windows meet in a second"
    )


def test_clients_are_told_that_the_broker_stops(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    imori = start_imori(settings={"broker.shutdown_deadline_s": 5})
    clients = [connect_raw(imori) for _ in range(20)]
    for client in clients[:15]:
        client.login()
    clients[0].send("SUBSCRIBE", {"id": "s", "destination": "/topic/t"})
    assert clients[0].fence() == []
    imori.process.send_signal(signal.SIGTERM)
    for client in clients[:15]:
        errors = client.read_until_closed()
        assert [frame["message"] for frame in errors] == ["Server shutting down"]
        client.close()
    for client in clients[15:]:
        client.close()
    assert imori.process.wait(DEADLINE_S) == 0


def test_clients_that_do_not_go_do_not_hold_the_broker(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    imori = start_imori(settings={"broker.shutdown_deadline_s": 1})
    stopped = connect_raw(imori, receive_buffer_bytes=4096)
    stopped.login()
    stopped.send("SUBSCRIBE", {"id": "s", "destination": "/topic/t"})
    frame = frame_bytes("SEND", {"destination": "/topic/t"}, b"x" * 100_000)
    stopped.write(frame * 20)
    imori.process.send_signal(signal.SIGTERM)
    assert imori.process.wait(DEADLINE_S) == 0


def test_a_second_signal_ends_it_at_once(start_imori: StartImori, connect_raw: ConnectRaw) -> None:
    imori = start_imori(settings={"broker.shutdown_deadline_s": 3600})
    raw = connect_raw(imori)
    raw.login()
    imori.process.send_signal(signal.SIGTERM)
    assert raw.read_until_closed()[0].command == "ERROR"
    imori.process.send_signal(signal.SIGINT)
    assert imori.process.wait(DEADLINE_S) == 0


def test_a_signal_right_after_ready_is_obeyed(start_imori: StartImori) -> None:
    for _ in range(5):
        assert start_imori(settings={"cells.count": 8}).stop() == 0


def test_a_port_in_use_is_named(start_imori: StartImori) -> None:
    imori = start_imori()
    port = imori.addresses[0][1]
    command = [BINARY, "serve", "--listen", f"stomp=127.0.0.1:{port}"]
    second = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert second.returncode == 1
    assert f"stomp=127.0.0.1:{port}" in second.stderr
    assert "choose another port" in second.stderr
    assert second.stdout == ""


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_ipv6_loopback_is_loopback(start_imori: StartImori, connect_raw: ConnectRaw) -> None:
    # SECURITY AUTH-09: `guest` may log in from there.
    imori = start_imori(listen=("[::1]:0", "127.0.0.1:0"))
    assert imori.addresses[0][0] == "::1"
    raw = connect_raw(imori)
    assert raw.login().command == "CONNECTED"
    assert raw.fence() == []


def test_the_workspace_forbids_unsafe_code() -> None:
    # SECURITY OPS-05.
    workspace = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())
    assert workspace["workspace"]["lints"]["rust"]["unsafe_code"] == "forbid"
    for manifest in sorted((REPOSITORY / "crates").glob("*/Cargo.toml")):
        crate = tomllib.loads(manifest.read_text())
        if manifest.parent.name == "imori-ruby":
            # One file of it calls C; ci/tree.py looks for others (decision 0128).
            assert crate["lints"]["rust"]["unsafe_code"] == "deny", manifest
        else:
            assert crate["lints"] == {"workspace": True}, manifest
    assert workspace["profile"]["release"]["overflow-checks"] is True, "SECURITY LIM-16"


def test_every_fuzz_target_is_run() -> None:
    # SECURITY OPS-06, OPS-07.
    table = (REPOSITORY / "fuzz/fuzz_targets.rs").read_text()
    listed = re.findall(r'^    \("(\w+)", \1::test_one_input\),$', table, re.MULTILINE)
    files = sorted(file.stem for file in (REPOSITORY / "fuzz/fuzz_targets").glob("*.rs"))
    assert sorted(listed) == files
    makefile = (REPOSITORY / "Makefile").read_text()
    assert "ci/fuzz.sh" in makefile
    assert "cargo-deny" in makefile


def test_the_signals_of_log_rotation_and_reload_leave_it_running(
    start_imori: StartImori, connect_raw: ConnectRaw, tmp_path: Path
) -> None:
    log = tmp_path / "broker.log"
    imori = start_imori(settings={"log.output": log, "log.level": "info"})
    log.rename(tmp_path / "moved.log")
    imori.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: log.exists() and "the log is opened anew" in log.read_text())
    assert "ready" in (tmp_path / "moved.log").read_text()
    imori.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "the configuration was read again" in log.read_text())
    raw = connect_raw(imori)
    assert raw.login().command == "CONNECTED"
    imori.process.send_signal(signal.SIGUSR2)
    assert imori.process.wait(DEADLINE_S) == 0
    assert "stopping" in log.read_text()


def test_a_reload_takes_over_the_level_and_names_what_needs_a_restart(tmp_path: Path) -> None:
    config, log = tmp_path / "imori.toml", tmp_path / "broker.log"

    def logs(told: str) -> bool:
        return told in log.read_text()

    rest = f'[log]\noutput = "{log}"\nlevel = '
    config.write_text(rest + '"info"\n')
    command = [BINARY, "serve", "--config", str(config), "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(
        [*command, "--listen", "stomp=127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            while process.stdout.readline() != "ready\n":
                assert process.poll() is None
            for text, told in [
                (rest + "5\n", "the configuration is not taken over"),
                (rest + '"warn"\n[journal]\nfiles = 5\n', "journal.files"),
            ]:
                config.write_text(text)
                process.send_signal(signal.SIGHUP)
                wait_for(partial(logs, told))
            config.write_text(rest + '"info"\n')
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: "changed=log.level" in log.read_text().replace('"', ""))
        finally:
            process.kill()


def test_who_does_not_hang_up_is_named_in_the_log(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    imori = start_imori(settings={"broker.shutdown_deadline_s": 2}, protocol="nats")
    with socket.create_connection(imori.addresses[0]) as idle:
        assert idle.recv(4096).startswith(b"INFO")
        idle.sendall(b'CONNECT {"protocol":1,"verbose":false}\r\nPING\r\n')
        imori.process.send_signal(signal.SIGTERM)
        wait_for(
            lambda: any("waiting for clients to hang up" in line for line in imori.log_lines())
        )
        assert imori.process.wait(DEADLINE_S) == 0
