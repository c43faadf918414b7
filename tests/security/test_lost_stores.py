"""A store of the automation that is lost, empty, older or another's is an error with the way out.

Messaging goes on meanwhile, and a readiness of its own tells of the automation.
"""

from __future__ import annotations

import base64
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.admin import read, ready
from harness.automation import Automation, running_automation
from harness.deadline import wait_for
from harness.imori import BINARY


@contextmanager
def running(folder: Path, *, waits: bool = True) -> Iterator[Automation]:
    """A broker with an admin listener."""
    with running_automation(folder, waits=waits, admin=True) as automation:
        yield automation


def prepare(folder: Path, value: str = "fine") -> None:
    """A broker whose datastore has a key; it has ended."""
    with running(folder) as automation:
        set_key(automation, value)
        assert automation.imori.stop() == 0


def set_key(automation: Automation, value: str) -> None:
    """Sets the key."""
    answer = automation.ask("PUT", "/v1/keys/mood", {"name": "mood", "value": value})
    assert answer.status == 200, answer


def state(folder: Path) -> list[Path]:
    """The files of the store."""
    return sorted((folder / "data/automation").glob("state.db*"))


def remove(folder: Path) -> None:
    """Removes the store."""
    for path in state(folder):
        path.unlink()


def empty(folder: Path) -> None:
    """Leaves a store without content."""
    remove(folder)
    (folder / "data/automation/state.db").touch()


def exchange(folder: Path) -> None:
    """Puts another broker's store in the place."""
    other = folder.parent / "other"
    prepare(other, "another")
    remove(folder)
    for path in state(other):
        shutil.copy(path, folder / "data/automation" / path.name)


def put_back(folder: Path) -> None:
    """Puts back the store as it was before the last start."""
    kept = folder.parent / "kept"
    kept.mkdir()
    for path in state(folder):
        shutil.copy(path, kept / path.name)
    prepare(folder, "newer")
    remove(folder)
    for path in kept.iterdir():
        shutil.copy(path, folder / "data/automation" / path.name)


def forget(folder: Path) -> None:
    """Puts a store with a mark in the place of a broker whose definitions know none."""
    kept = folder.parent / "kept"
    kept.mkdir()
    for path in state(folder):
        shutil.move(path, kept / path.name)
    shutil.rmtree(folder / "data")
    (folder / "data/automation").mkdir(parents=True)
    for path in kept.iterdir():
        shutil.copy(path, folder / "data/automation" / path.name)


def command(automation: Automation, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of the operator on this machine."""
    data = automation.imori.log.parent / "data"
    line = [BINARY, *words, "--data-dir", str(data)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("change", "says", "kept"),
    [
        (remove, "is missing", None),
        (empty, "is empty, or older", None),
        (exchange, "is not the one that this broker used last", "another"),
        (put_back, "is not the one that this broker used last", "fine"),
        (forget, "is one that the definitions do not know", "fine"),
    ],
)
def test_a_store_that_is_gone_says_so_until_it_is_adopted(
    tmp_path: Path, change: Callable[[Path], None], says: str, kept: str | None
) -> None:
    """ROOM-12: removed, emptied, exchanged, older, and unknown to the definitions."""
    folder = tmp_path / "broker"
    prepare(folder)
    change(folder)
    with running(folder, waits=False) as automation:

        def is_told() -> bool:
            answer = automation.ask("GET", "/v1/keys/mood")
            return answer.status == 503 and says in answer.body["faultstring"]

        wait_for(is_told, "the reason")
        answer = automation.ask("POST", "/v1/webhooks/orders", {"number": 1})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert "imori automate store adopt" in answer.body["faultstring"]
        # Messaging and its probes know nothing of it.
        assert (ready(automation.imori), ready(automation.imori, "?part=publish")) == (200, 200)
        assert ready(automation.imori, "?part=automation") == 503
        assert ready(automation.imori, "?part=wat") == 400
        assert says in read(automation.imori, "/api/nodes")[0]["automation"]
        status = command(automation, "status")
        assert says in status.stdout, status
        adopted = command(automation, "automate", "store", "adopt")
        assert adopted.returncode == 0, adopted
        wait_for(
            lambda: ready(automation.imori, "?part=automation") == 200, "the automation's start"
        )
        answer = automation.ask("GET", "/v1/keys/mood")
        assert answer.status == (404 if kept is None else 200)
        assert kept is None or answer.body["value"] == kept
        set_key(automation, "adopted")
        again = command(automation, "automate", "store", "adopt")
        assert "no store to adopt" in again.stderr, again
        assert automation.imori.stop() == 0
    with running(folder) as automation:
        assert automation.get("/v1/keys/mood")["value"] == "adopted"
        assert read(automation.imori, "/api/nodes")[0]["automation"] == "ready"


def test_nobody_but_an_administrator_adopts_a_store(tmp_path: Path) -> None:
    """ROOM-12: neither without a login nor by a token, which would be in the store."""
    prepare(tmp_path)
    remove(tmp_path)
    with running_automation(tmp_path, waits=False, is_open=False) as automation:
        path = "/api/v1/imori/store/adopt"
        wrong = base64.b64encode(b"operator:wrong").decode()
        for headers in [{}, {"X-Auth-Token": "0" * 64}, {"Authorization": f"Basic {wrong}"}]:
            assert automation.ask("POST", path, {}, headers).status == 401


def test_a_store_that_is_put_back_is_used_again(tmp_path: Path) -> None:
    """ROOM-12: nothing is made in its place meanwhile."""
    folder = tmp_path / "broker"
    prepare(folder)
    aside = tmp_path / "aside"
    aside.mkdir()
    for path in state(folder):
        path.rename(aside / path.name)
    with running(folder, waits=False) as automation:
        wait_for(lambda: "is missing" in str(automation.ask("GET", "/v1/packs").body), "the reason")
        assert automation.imori.stop() == 0
    assert state(folder) == []
    for path in aside.iterdir():
        path.rename(folder / "data/automation" / path.name)
    with running(folder) as automation:
        assert automation.get("/v1/keys/mood")["value"] == "fine"


def test_a_flipped_byte_is_told_and_not_used(tmp_path: Path) -> None:
    """ROOM-12: the document is damaged, and the others are not."""
    with running(tmp_path) as automation:
        set_key(automation, "flippable")
        answer = automation.ask("PUT", "/v1/keys/other", {"name": "other", "value": "sound"})
        assert answer.status == 200
        assert automation.imori.stop() == 0
    path = tmp_path / "data/automation/state.db"
    with sqlite3.connect(path) as store:
        # SQLite itself leaves a damaged tail of its log out.
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = path.read_bytes()
    assert b"flippable" in content
    path.write_bytes(content.replace(b"flippable", b"flippablf"))
    with running(tmp_path) as automation:
        answer = automation.ask("GET", "/v1/keys/mood")
        assert answer.status == 503, answer
        assert "damaged; `imori automate fsck` names it" in answer.body["faultstring"]
        assert automation.get("/v1/keys/other")["value"] == "sound"
        found = command(automation, "automate", "fsck")
        assert "checksum is wrong" in found.stdout, found
