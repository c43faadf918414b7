"""Sensors: their processes, events, triggers, and ends."""

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.automation import Automation, Start, running_automation
from harness.deadline import DEADLINE_S, wait_for

PACKS = Path(__file__).parent / "packs"


class Watching:
    """An automation with the pack `watching`, and the folder that its sensors watch."""

    def __init__(self, automation: Automation, folder: Path) -> None:
        self.automation = automation
        self.folder = folder

    def install(self, pack: Path = PACKS / "watching") -> None:
        """Installs the pack, or a changed one in its place."""
        done = self.automation.run("packs.install", packs=[f"file://{pack}"])
        assert done["status"] == "succeeded", done["result"]
        assert done["result"]["result"][0]["problems"] == []

    def configure(self, **values: str) -> None:
        """Sets the configuration of the pack."""
        values.setdefault("folder", str(self.folder))
        answer = self.automation.ask("PUT", "/v1/configs/watching", values)
        assert answer.status == 200, answer

    def enable(self, name: str, enabled: bool = True) -> None:
        """Enables or disables a sensor."""
        path = f"/v1/sensortypes/watching.{name}"
        answer = self.automation.ask("PUT", path, {"enabled": enabled})
        assert answer.status == 200, answer
        assert answer.body["enabled"] is enabled

    def state(self, name: str) -> dict[str, Any]:
        """What a sensor does at the moment."""
        sensor = self.automation.get(f"/v1/sensortypes/watching.{name}")
        state: dict[str, Any] = sensor["x-imori"]
        return state

    def wait(self, name: str, status: str) -> dict[str, Any]:
        """The state of a sensor once it has this status."""
        wait_long(lambda: self.state(name)["status"] == status)
        return self.state(name)

    def rule(self, rule: str, kind: str, command: str, **parameters: str) -> None:
        """Registers a rule that runs a command."""
        self.automation.rule(
            name=rule,
            trigger={"type": f"watching.{kind}", "parameters": parameters},
            action={"ref": "core.local", "parameters": {"cmd": command}},
        )

    def results(self, rule: str, count: int) -> list[Any]:
        """What the commands of a rule have printed, once it has run this often."""

        def executions() -> list[dict[str, Any]]:
            return self.automation.executions(rule=f"default.{rule}")

        wait_for(lambda: len(executions()) >= count)
        ended = [self.automation.ended(execution["id"]) for execution in executions()]
        return [execution["result"]["stdout"] for execution in ended]


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watching]:
    """One automation for the tests that need none of their own."""
    data, folder = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("watched")
    with running_automation(data) as automation:
        watching = Watching(automation, folder)
        watching.install()
        watching.configure()
        yield watching


def wait_long(condition: Callable[[], bool]) -> None:
    """Waits for what may build an environment first."""
    wait_for(condition, within_s=6 * DEADLINE_S)


def is_running(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(process: int) -> list[str]:
    """The commands of the children of a process."""
    found = subprocess.run(
        ["ps", "--ppid", str(process), "-o", "args="], capture_output=True, text=True, check=False
    )
    return found.stdout.splitlines()


def test_a_poll_becomes_an_event_and_runs_the_action_of_a_rule(watching: Watching) -> None:
    watching.rule("lines", "line", "echo {{ trigger.number }} {{ trigger.text }}")
    watching.enable("LinesSensor")
    pid = watching.wait("LinesSensor", "running")["pid"]
    lines = watching.folder / "lines"
    lines.write_text("one\ntwo\n")
    assert watching.results("lines", 2) == ["0 one", "1 two"]
    watching.enable("LinesSensor", enabled=False)
    wait_for(lambda: not is_running(pid))
    assert watching.automation.get("/v1/keys/cleaned_up")["value"] == "yes"
    lines.write_text("one\ntwo\nthree\n")
    watching.enable("LinesSensor")
    assert watching.results("lines", 3)[2] == "2 three", "the position is in the datastore"
    state = watching.wait("LinesSensor", "running")
    assert (state["events"], state["restarts"]) == (1, 0)
    memory = Path(f"/proc/{state['pid']}/status").read_text()
    rss = next(line for line in memory.splitlines() if line.startswith("VmRSS:"))
    assert int(rss.split()[1]) < 45 * 1024, "a sensor takes at most 45 MiB"
    watching.enable("LinesSensor", enabled=False)


def test_a_passive_sensor_is_told_of_triggers_while_it_runs(watching: Watching) -> None:
    watching.enable("FilesSensor")
    watching.wait("FilesSensor", "running")
    watching.rule("first", "file", "echo {{ trigger.triggers }}", name="first")
    (watching.folder / "first").touch()
    assert watching.results("first", 1) == [1]
    watching.rule("second", "file", "echo {{ trigger.triggers }}", name="second")
    (watching.folder / "second").touch()
    assert watching.results("second", 1) == [2]
    assert watching.automation.ask("DELETE", "/v1/rules/default.first").status == 204
    (watching.folder / "first").touch()
    (watching.folder / "second").touch()
    assert watching.results("second", 2) == [2, 1]
    assert (watching.folder / "first").exists()
    assert watching.automation.ask("DELETE", "/v1/rules/default.second").status == 204
    watching.enable("FilesSensor", enabled=False)


def test_a_sensor_is_restarted_with_a_changed_configuration(watching: Watching) -> None:
    secret = {"name": "sensor_secret", "value": "s3cret", "secret": True}
    assert watching.automation.ask("PUT", "/v1/keys/sensor_secret", secret).status in {200, 201}
    watching.enable("FilesSensor")
    first = watching.wait("FilesSensor", "running")
    watching.configure(secret="{{ st2kv.system.sensor_secret }}")
    wait_for(lambda: watching.state("FilesSensor")["pid"] not in {None, first["pid"]})
    command = "echo {{ trigger.config.greeting }} {{ trigger.config.secret }}"
    watching.rule("configured", "file", command, name="configured")
    (watching.folder / "configured").touch()
    assert watching.results("configured", 1) == ["hello s3cret"]
    assert watching.automation.ask("DELETE", "/v1/rules/default.configured").status == 204
    watching.enable("FilesSensor", enabled=False)


def test_what_is_refused_is_told_and_a_flood_of_output_harms_nothing(watching: Watching) -> None:
    """AUTO-04: what a sensor writes is bounded."""
    watching.rule("refused", "refused", "cat <<'E'\n{{ trigger | to_json_string }}\nE")
    watching.enable("RefusedSensor")
    (told,) = watching.results("refused", 1)
    assert told["user"] == "stanley"
    assert told["ST2_API_URL"] == f"{watching.automation.url}/v1"

    def is_valid() -> bool:
        token = {"token": told["ST2_AUTH_TOKEN"]}
        answer = watching.automation.ask("POST", "/auth/v1/tokens/validate", token)
        return bool(answer.body["valid"])

    assert is_valid()
    reasons = told["reasons"]
    assert reasons[0].startswith("TypeError: the payload of `watching.refused` has no JSON")
    assert reasons[1].startswith("TypeError: the payload of `watching.refused` has no JSON")
    assert reasons[2] == (
        "TypeError: the payload of `watching.refused` is a list; dispatch a dictionary"
    )
    assert "at most 8387584 are allowed" in reasons[3]
    assert reasons[4].startswith("ValueError: trigger `watching.nothing` is unknown")
    assert reasons[5] == "dropped", "StackStorm drops what does not fit the schema"
    output = watching.state("RefusedSensor")["output"]
    assert len(output) == 100
    assert "INFO st2.SensorWrapper.watching.RefusedSensor.RefusedSensor: told" in output
    assert any("is dropped" in line and line.startswith("WARNING") for line in output)
    logged = [line for line in watching.automation.imori.log_lines() if "a sensor writes" in line]
    assert 0 < len(logged) < 500
    watching.enable("RefusedSensor", enabled=False)
    wait_for(lambda: not is_valid())


def test_a_sensor_that_never_ends_is_killed_with_its_children(watching: Watching) -> None:
    """AUTO-04: neither `run` nor `cleanup` of this sensor returns."""
    watching.enable("StubbornSensor")
    pid = watching.wait("StubbornSensor", "running")["pid"]
    child = int((watching.folder / "child").read_text())
    assert is_running(pid)
    assert is_running(child)
    watching.enable("StubbornSensor", enabled=False)
    wait_for(lambda: not is_running(pid) and not is_running(child))
    assert watching.state("StubbornSensor")["status"] == "stopped"


def test_a_sensor_that_fails_is_started_again_until_its_pack_is_mended(
    watching: Watching, tmp_path: Path
) -> None:
    # AUTO-04
    for name, change, shown in [("starts", "spawn", "cmd"), ("ends", "exit", "exit_code")]:
        watching.automation.rule(
            name=name,
            trigger={"type": f"core.st2.sensor.process_{change}"},
            criteria={"trigger.id": {"type": "equals", "pattern": "BrokenSensor"}},
            action={
                "ref": "core.local",
                "parameters": {"cmd": f"echo {{{{ trigger.id }}}} {{{{ trigger.{shown} }}}}"},
            },
        )
    watching.enable("BrokenSensor")
    state = watching.wait("BrokenSensor", "crash-looping")
    assert state["restarts"] == 3
    assert state["last_end"] == "the process ended with exit status: 1"
    assert state["next_start"] > state["since"]
    assert any("something is broken" in line for line in state["output"])
    assert watching.results("ends", 3)[:3] == ["BrokenSensor 1"] * 3
    assert all(line.endswith("sensors/broken.py") for line in watching.results("starts", 3))
    mended = shutil.copytree(PACKS / "watching", tmp_path / "watching")
    file = mended / "sensors/broken.py"
    file.write_text(file.read_text().replace("IS_MENDED = False", "IS_MENDED = True"))
    watching.install(mended)
    state = watching.wait("BrokenSensor", "running")
    assert state["restarts"] == 0
    assert watching.automation.run("packs.uninstall", packs=["watching"])["status"] == "succeeded"
    wait_for(lambda: not is_running(state["pid"]))
    assert watching.automation.get("/v1/sensortypes?pack=watching") == []
    watching.install()


def test_no_sensor_outlives_its_broker_and_none_tells_twice(start: Start, tmp_path: Path) -> None:
    """AUTO-04: also one that is busy in C code."""
    watched = tmp_path / "watched"
    watched.mkdir()
    first = Watching(start(), watched)
    first.install()
    first.configure()
    first.rule("lines", "line", "echo {{ trigger.text }}")
    for name in ["LinesSensor", "StubbornSensor"]:
        first.enable(name)
    pids = [first.wait(name, "running")["pid"] for name in ["LinesSensor", "StubbornSensor"]]
    pids.append(int((watched / "child").read_text()))
    (watched / "lines").write_text("one\ntwo\n")
    first.results("lines", 2)
    key = "/v1/keys/watching.LinesSensor:position"
    wait_for(lambda: first.automation.ask("GET", key).body.get("value") == "2")
    assert all(is_running(pid) for pid in pids)
    first.automation.imori.process.send_signal(signal.SIGKILL)
    first.automation.imori.process.wait()
    wait_for(lambda: not any(is_running(pid) for pid in pids))
    (watched / "lines").write_text("one\ntwo\nthree\n")
    second = Watching(start(), watched)
    assert second.results("lines", 3) == ["one", "two", "three"]
    second.wait("LinesSensor", "running")
    assert len(second.automation.executions(rule="default.lines")) == 3


def test_without_sensors_there_is_no_python(start: Start) -> None:
    automation = start()
    sensors = automation.get("/v1/sensortypes")
    assert [sensor["ref"] for sensor in sensors] == ["linux.FileWatchSensor"]
    assert sensors[0]["x-imori"]["status"] == "stopped"
    assert children(automation.imori.process.pid) == []


def test_a_sensor_of_our_own_packs_runs_while_a_rule_waits_for_it(
    start: Start, tmp_path: Path
) -> None:
    automation = start()
    path = tmp_path / "watched"
    path.touch()
    automation.rule(
        name="grows",
        trigger={"type": "linux.file_watch.line", "parameters": {"file_path": str(path)}},
        action={"ref": "core.local", "parameters": {"cmd": "echo {{ trigger.line }}"}},
    )

    def state() -> dict[str, Any]:
        shown: dict[str, Any] = automation.get("/v1/sensortypes/linux.FileWatchSensor")["x-imori"]
        return shown

    wait_long(lambda: bool(state()["status"] == "running"))
    with path.open("a") as file:
        file.write("a line\n")
    wait_for(lambda: len(automation.executions(rule="default.grows")) == 1)
    assert automation.ask("DELETE", "/v1/rules/default.grows").status == 204
    wait_for(lambda: state()["status"] == "stopped")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("pack=watching&enabled=true", []),
        ("pack=linux", ["FileWatchSensor"]),
        ("trigger=watching.line", ["LinesSensor"]),
        ("name=LinesSensor&pack=watching", ["LinesSensor"]),
        ("pack=none", []),
    ],
)
def test_sensors_are_listed_as_stackstorm_lists_them(
    watching: Watching, query: str, names: list[str]
) -> None:
    for name in ["LinesSensor", "FilesSensor", "RefusedSensor", "StubbornSensor", "BrokenSensor"]:
        watching.enable(name, enabled=False)
    found = watching.automation.get(f"/v1/sensortypes?{query}")
    assert [sensor["name"] for sensor in found] == names


def test_a_wrong_request_for_a_sensor_is_refused(watching: Watching) -> None:
    ask = watching.automation.ask
    assert ask("GET", "/v1/sensortypes/watching.Nothing").status == 404
    assert ask("PUT", "/v1/sensortypes/watching.Nothing", {"enabled": True}).status == 404
    answer = ask("PUT", "/v1/sensortypes/watching.LinesSensor", {"enabled": "maybe"})
    assert answer.status == 400
    assert "use true or false" in answer.body["faultstring"]
