"""Remote actions run over SSH against a real server."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path

import pytest

from harness.automation import Automation
from harness.deadline import DEADLINE_S, wait_for

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")

pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None, reason="openssh-server is not installed"
)


@dataclass(frozen=True)
class Server:
    """An SSH server of this machine."""

    port: int
    key: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Starts a server on a free port that accepts one key."""
    assert SSHD is not None
    folder = tmp_path_factory.mktemp("sshd")
    for name in ["host", "client"]:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    (folder / "authorized").write_text((folder / "client.pub").read_text())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = f"""
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile none
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
"""
    (folder / "config").write_text(config)
    if getuser() == "root":
        Path("/run/sshd").mkdir(exist_ok=True)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=log)

    def is_open() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_for(is_open, "the SSH server")
    yield Server(port, folder / "client")
    process.terminate()
    process.wait(DEADLINE_S)


def test_a_command_runs_on_each_host(automation: Automation, server: Server) -> None:
    login = {"username": getuser(), "private_key": server.key.read_text(), "port": server.port}
    hosts = f"127.0.0.1,localhost:{server.port}"
    command = 'echo "$A it\'s"; pwd; exit 3'
    ended = automation.run(
        "core.remote", hosts=hosts, cmd=command, cwd="/usr", env={"A": "$(x) 'y'"}, **login
    )
    assert ended["status"] == "failed"
    assert set(ended["result"]) == {"127.0.0.1", "localhost"}
    for result in ended["result"].values():
        assert result["stdout"] == "$(x) 'y' it's\n/usr"
        assert (result["return_code"], result["failed"], result["succeeded"]) == (3, True, False)
    path = login | {"private_key": str(server.key)}
    ended = automation.run(
        "core.remote", hosts="127.0.0.1", cmd="echo hi", bastion_host="127.0.0.1", **path
    )
    assert ended["status"] == "succeeded", ended["result"]
    assert ended["result"]["127.0.0.1"]["stdout"] == "hi"
    assert "PRIVATE" not in str(automation.get(f"/v1/executions/{ended['id']}"))


def test_a_command_that_takes_too_long_and_a_host_that_is_away(
    automation: Automation, server: Server
) -> None:
    login = {"username": getuser(), "private_key": str(server.key)}
    ended = automation.run(
        "core.remote", hosts="127.0.0.1", port=server.port, cmd="sleep 60", timeout=1, **login
    )
    assert ended["status"] == "timeout"
    ended = automation.run("core.remote", hosts="127.0.0.1", port=1, cmd="true", **login)
    result = ended["result"]["127.0.0.1"]
    assert (ended["status"], result["return_code"]) == ("failed", 255)
    assert result["error"].startswith("Failed connecting to host 127.0.0.1. ")


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"password": "x"}, "parameter `password` is not supported"),
        ({"hosts": "-oProxyCommand=x"}, "`-oProxyCommand=x` in `hosts` is no name"),
        ({"username": "a b"}, "`a b` in `username` is no name"),
        ({"private_key": "/nowhere"}, "`private_key` is neither a key nor the path of one"),
        ({"env": {"a b": "c"}}, "`a b` in `env` is no name of a variable"),
        ({"port": 0}, "`port` 0 is no port"),
    ],
)
def test_wrong_parameters_are_refused(
    automation: Automation, parameters: dict[str, object], reason: str
) -> None:
    ended = automation.run("core.remote", **({"hosts": "127.0.0.1", "cmd": "true"} | parameters))
    assert ended["status"] == "failed"
    assert reason in ended["result"]["error"]


def test_a_windows_action_is_refused_by_its_runner(automation: Automation) -> None:
    parameters = {"host": "h", "username": "u", "password": "p", "cmd": "dir"}
    ended = automation.run("core.winrm_cmd", **parameters)
    assert "`winrm-cmd`" in ended["result"]["error"]


def test_an_action_of_mistral_is_refused(automation: Automation) -> None:
    action = {"name": "m", "pack": "default", "runner_type": "mistral-v2"}
    answer = automation.ask("POST", "/v1/actions", action)
    assert answer.status == 400
    assert "`mistral-v2`" in answer.body["faultstring"]
