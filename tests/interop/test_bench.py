"""`imori bench` for users: errors are one sentence, and partial measurements are kept."""

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.deadline import DEADLINE_S
from harness.fixtures import StartImori
from harness.imori import BINARY, Imori
from harness.process import lines_of

SHORT = ["--rate", "500", "--time", "300ms", "--warmup", "0"]
LONG = ["--rate", "500", "--time", "10m", "--warmup", "0"]
SCENARIOS = ["rpc", "queue", "pubsub", "fan-out", "soak"]


def stomp(imori: Imori, login: str = "") -> str:
    """Returns a broker's STOMP URL, with a login such as `user:password@`."""
    host, port = imori.addresses[0]
    return f"stomp://{login}{host}:{port}"


def nats(imori: Imori, login: str = "") -> str:
    """Returns a broker's NATS URL."""
    assert imori.nats is not None
    host, port = imori.nats
    return f"nats://{login}{host}:{port}"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [BINARY, "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)


def is_sentence(errors: str) -> bool:
    """Returns whether the output is one readable line, and no backtrace."""
    return errors.startswith("imori: ") and errors.count("\n") == 1 and "panicked" not in errors


@contextmanager
def measuring(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a long measurement, and yields once it has shown its first second."""
    command = [BINARY, "bench", *arguments, "--progress"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            lines = lines_of(process.stderr)
            while (line := lines.get(timeout=DEADLINE_S)) is not None and not _is_second(line):
                pass
            assert line is not None, "it ended before it had measured a second"
            yield process
        finally:
            process.kill()


def _is_second(line: str) -> bool:
    return line.startswith(("measure  t ", "soak  1"))


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Waits for the end; returns exit status and output."""
    assert process.stdout is not None
    printed = process.stdout.read()
    return process.wait(DEADLINE_S), printed


@pytest.mark.parametrize(
    ("url", "status", "told"),
    [
        ("http://127.0.0.1:1", 2, "`http://` is not spoken here; use `stomp://`"),
        ("stomp:127.0.0.1", 2, "is not a URL; write it as `stomp://user:password@host:port`"),
        ("stomp://127.0.0.1:99999", 2, "99999"),
        ("stomp://", 2, "names no host"),
        ("stomp://no-such-host.invalid", 1, "host `no-such-host.invalid` is not known"),
        ("stomp://127.0.0.1:1", 1, "no broker answers at `stomp://127.0.0.1:1`; start it"),
        ("nats://127.0.0.1:1", 1, "no broker answers at `nats://127.0.0.1:1`; start it"),
    ],
)
def test_a_url_that_leads_nowhere_is_told(url: str, status: int, told: str) -> None:
    done = bench("pubsub", *SHORT, "--url", url)
    assert (done.returncode, done.stdout) == (status, "")
    assert told in done.stderr
    assert status == 2 or is_sentence(done.stderr), done.stderr


def test_wrong_credentials_are_told(start_imori: StartImori) -> None:
    imori = start_imori(nats=True)
    for url, told in [
        (stomp(imori, "nobody:s3cret@"), "access refused for user `nobody`"),
        (stomp(imori, "guest:s3cret@"), "access refused for user `guest`"),
        (nats(imori, "nobody:s3cret@"), "Authorization Violation"),
    ]:
        done = bench("pubsub", *SHORT, "--url", url)
        assert (done.returncode, done.stdout) == (1, "")
        assert is_sentence(done.stderr), done.stderr
        assert told in done.stderr
        assert "s3cret" not in done.stderr


@pytest.fixture
def web_server() -> Iterator[int]:
    """The port of an HTTP server."""

    class Silent(BaseHTTPRequestHandler):
        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: ANN401
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("scheme", "told"),
    [
        ("stomp", "is not STOMP; correct scheme or port"),
        ("nats", "is not NATS; correct scheme or port"),
    ],
)
def test_a_port_that_speaks_something_else_is_told(web_server: int, scheme: str, told: str) -> None:
    done = bench("rpc", *SHORT, "--url", f"{scheme}://127.0.0.1:{web_server}")
    assert (done.returncode, done.stdout) == (1, "")
    assert is_sentence(done.stderr), done.stderr
    assert told in done.stderr


def test_the_listener_of_another_protocol_is_told(start_imori: StartImori) -> None:
    imori = start_imori(nats=True)
    for url, told in [
        (stomp(imori).replace("stomp", "nats"), "is not NATS"),
        (nats(imori).replace("nats", "stomp"), "is not STOMP"),
    ]:
        done = bench("rpc", *SHORT, "--url", url)
        assert (done.returncode, done.stdout) == (1, "")
        assert is_sentence(done.stderr), done.stderr
        assert told in done.stderr


def rows_of(file: Path, outcome: str) -> Sequence[dict[str, Any]]:
    """Returns the rows of a report that ended early, and checks that its ledger is clean."""
    report = json.loads(file.read_text())
    assert report["outcome"] == outcome
    assert report["ledger"]["lost"] == 0
    rows: Sequence[dict[str, Any]] = report["rows"]
    assert sum(row["delivered"] for row in rows) > 0
    return rows


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_was_measured_before_the_broker_was_killed_is_kept(
    start_imori: StartImori, tmp_path: Path, scenario: str
) -> None:
    imori, file = start_imori(), tmp_path / "run.json"
    with measuring(scenario, *LONG, "--url", stomp(imori), "--json", str(file)) as process:
        imori.process.kill()
        status, printed = ended(process)
    assert status == 1, printed
    assert "verdict      the broker went away" in printed
    told = [line for line in printed.splitlines() if line.startswith("note ") and "broker" in line]
    # Connections can end in two ways; each is reported once, however many there were.
    assert told, printed
    assert len(set(told)) == len(told) <= 2, printed
    assert all(" a connection during the run" in line for line in told)
    assert rows_of(file, "broken")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_an_interrupt_ends_a_run_with_its_report(
    start_imori: StartImori, tmp_path: Path, scenario: str
) -> None:
    imori, file, page = start_imori(), tmp_path / "run.json", tmp_path / "run.html"
    outputs = ["--json", str(file), "--html", str(page)]
    with measuring(scenario, *LONG, "--url", stomp(imori), *outputs) as process:
        process.send_signal(signal.SIGINT)
        status, printed = ended(process)
    assert status == 1, printed
    assert "verdict      stopped by hand" in printed
    assert rows_of(file, "stopped")
    assert page.exists()


def test_a_second_interrupt_ends_the_program(start_imori: StartImori, tmp_path: Path) -> None:
    imori = start_imori()
    # The pipe has no reader, so that the first process does not end.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with measuring("pubsub", *LONG, "--url", stomp(imori), "--json", str(pipe)) as process:
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        while "verdict" not in (line := process.stdout.readline()):
            assert line, "it ended without a report"
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 130


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("/dev/full", "the disk is full; free some space, or name another place with `{option}`"),
        ("{folder}/none/file", "there is no folder `{folder}/none`; make it"),
        ("{folder}", "it is a folder"),
    ],
)
@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_file_that_cannot_be_written_leaves_the_text(
    start_imori: StartImori, tmp_path: Path, file: str, told: str, option: str
) -> None:
    file, told = (text.format(folder=tmp_path, option=option) for text in (file, told))
    done = bench("pubsub", *SHORT, "--url", stomp(start_imori()), option, file)
    assert done.returncode == 1
    assert is_sentence(done.stderr), done.stderr
    assert file in done.stderr
    assert told in done.stderr
    assert done.stdout.endswith("verdict      ok\n")


class References(HTMLParser):
    """Collects a page's external references, and checks that elements are closed."""

    EMPTY = frozenset({"meta", "br", "hr", "img", "input", "link", "wbr", "col"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.external: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.EMPTY:
            self.open.append(tag)
        for name, value in attrs:
            is_reference = name in {"src", "href", "action", "data", "srcset", "xlink:href"}
            if tag in {"link", "iframe"} or (
                is_reference and not (value or "").startswith(("#", "./"))
            ):
                self.external.append(f"<{tag} {name}={value}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_page_is_whole_and_needs_nothing_from_elsewhere(
    start_imori: StartImori, tmp_path: Path, scenario: str
) -> None:
    page = tmp_path / "run.html"
    done = bench(scenario, *SHORT, "--url", stomp(start_imori()), "--html", str(page))
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    references = References()
    references.feed(text)
    references.close()
    assert references.open == []
    assert references.external == []
    assert not re.search(r"url\((?!#)|@import", text)


def test_two_results_are_compared(start_imori: StartImori, tmp_path: Path) -> None:
    url = stomp(start_imori())
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for file in files:
        done = bench("pubsub", *SHORT, "--arrival", "fixed", "--url", url, "--json", file)
        assert done.returncode == 0, done.stderr
    page = tmp_path / "both.html"
    # Two short runs differ by more than the broker's own variation.
    done = bench("compare", *files, "--tolerance", "100", "--html", str(page))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deliveries a second" in done.stdout
    assert page.exists()


def test_a_missed_objective_is_told_from_a_wrong_command_line(start_imori: StartImori) -> None:
    url = stomp(start_imori())
    missed = bench("pubsub", *SHORT, "--url", url, "--slo", "max<1us")
    assert (missed.returncode, missed.stderr) == (5, "")
    assert bench("pubsub", *SHORT, "--url", url, "--slow", "max<1us").returncode == 2
    find = ("--rate", "find", "--slo", "p99.99<1s", "--find-step", "20s")
    refused = bench("pubsub", "--url", url, *find)
    assert refused.returncode == 1
    assert "`--find-step 100s`" in refused.stderr


def test_what_cannot_be_compared_is_told(start_imori: StartImori, tmp_path: Path) -> None:
    report, other, text, noise = (tmp_path / f"{name}.json" for name in "abcd")
    url = stomp(start_imori())
    assert bench("pubsub", *SHORT, "--url", url, "--json", str(report)).returncode == 0
    assert bench("queue", *SHORT, "--url", url, "--json", str(other)).returncode == 0
    text.write_text('{"format": 1}')
    noise.write_text("no report")
    for files, told in [
        ((report, tmp_path / "none.json"), "does not exist; name a file that `--json` wrote"),
        ((report, noise), "is no JSON"),
        ((text, report), "c.json` is no report of format `1`"),
        ((report, tmp_path), str(tmp_path)),
        ((report, other), "are not of the same test: scenario `pubsub` and `queue`"),
    ]:
        done = bench("compare", *map(str, files))
        assert (done.returncode, done.stdout) == (1, "")
        assert is_sentence(done.stderr), done.stderr
        assert told in done.stderr
    done = bench("compare", str(report), str(other), "--anyway")
    # With one run each, a number may be worse by chance.
    assert done.returncode in (0, 4)
    assert "scenario `pubsub` and `queue`" in done.stdout
