"""The data folder is accessible to the broker's own user only.

SECURITY OPS-10.
"""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.fixtures import ConnectRaw, StartImori
from harness.imori import BINARY


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Sets a umask that leaves all permissions to the creator of a file."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("is_there", [False, True])
def test_all_that_the_broker_creates_is_its_own_users_alone(
    start_imori: StartImori, connect_raw: ConnectRaw, tmp_path: Path, is_there: bool
) -> None:
    data = tmp_path / "0" / "data"
    if is_there:
        data.mkdir(parents=True, mode=0o755)
    imori = start_imori(settings={"limits.queue_memory_bytes": "16KiB"})
    raw = connect_raw(imori)
    raw.login()
    headers = {"destination": "/queue/q", "persistent": "true", "receipt": "r"}
    for _ in range(40):
        raw.send("SEND", headers, b"x" * 500_000)
        assert raw.read().command == "RECEIPT"
    assert imori.stop() == 0
    found = {str(path.relative_to(data)): path.stat().st_mode for path in data.rglob("*")}
    assert any(name.startswith("segments/") for name in found), found
    modes = {name: oct(stat.S_IMODE(mode)) for name, mode in found.items() if stat.S_ISREG(mode)}
    assert set(modes.values()) == {"0o600"}, modes
    modes = {name: oct(stat.S_IMODE(mode)) for name, mode in found.items() if stat.S_ISDIR(mode)}
    assert set(modes.values()) == {"0o700"}, modes
    if not is_there:
        assert stat.S_IMODE(data.stat().st_mode) == 0o700


@pytest.mark.parametrize("command", [["serve", "--listen", "stomp=127.0.0.1:0"], ["verify"]])
def test_a_lock_behind_a_symbolic_link_is_refused(
    start_imori: StartImori, tmp_path: Path, command: list[str]
) -> None:
    imori = start_imori()
    assert imori.stop() == 0
    data, target = tmp_path / "0" / "data", tmp_path / "target"
    target.write_text("not the broker's")
    (data / "lock").unlink()
    (data / "lock").symlink_to(target)
    run = subprocess.run(
        [BINARY, *command, "--data-dir", str(data)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert run.returncode != 0
    assert f"`{data}/lock` is a symbolic link" in run.stdout + run.stderr
    assert target.read_text() == "not the broker's"
