"""What actions print is cut while it is written, and what was cut is never called a success."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from harness.automation import Automation, running_automation
from harness.deadline import wait_for

MIB = 1 << 20

# The mark of the broker that is flooded: 1 % of a machine with 24 GB.
MARK_BYTES = 241 * MIB

# What each output is recorded of, and what a result keeps.
RECORDED = 16 * MIB
KEPT = MIB

FLOODS = 16
FLOOD = "head -c 400000000 /dev/zero | tr '\\0' x"

# A command that sees its pipe closed and prints on nevertheless.
STUBBORN = "trap '' PIPE; while :; do printf '%65536s' x; done 2>/dev/null"

PYTHON_FLOOD = """\
from st2common.runners.base_action import Action


class Flood(Action):
    def run(self, mebibytes):
        for _ in range(mebibytes):
            print("x" * (1 << 20))
        return "returned"
"""

PACK = {
    "pack.yaml": "ref: floods\nname: floods\ndescription: Prints.\nversion: 1.0.0\n"
    'author: Tests\nemail: tests@example.com\npython_versions: ["3"]\n',
    "actions/print.yaml": "name: print\nrunner_type: python-script\nentry_point: print.py\n"
    "enabled: true\nparameters:\n  mebibytes: {type: integer, required: true}\n",
    "actions/print.py": PYTHON_FLOOD,
}


def add_pack(folder: Path) -> None:
    """Writes the pack of the Python action to the automation's folder."""
    for name, text in PACK.items():
        path = folder / "data/automation/packs/floods" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def request(automation: Automation, action: str, **parameters: object) -> str:
    """Asks for an execution; returns its id."""
    body = {"action": action, "parameters": parameters}
    answer = automation.ask("POST", "/v1/executions", body)
    assert answer.status == 201, answer
    execution: str = answer.body["id"]
    return execution


def is_cut(execution: dict[str, Any]) -> None:
    """The execution has failed, and says how much it printed and what is kept."""
    assert execution["status"] == "failed", execution["status"]
    result = execution["result"]
    assert "printed" in result["x-imori.cut"]["stdout"], result["x-imori.cut"]
    assert result["x-imori.cut"]["stdout"]["kept"] == KEPT
    assert result["error"].startswith(f"the action was stopped after more than {RECORDED} bytes")
    assert "of which 1048576 are kept" in result["error"]
    assert len(result["stdout"]) == KEPT


def peak_bytes(automation: Automation) -> int:
    """The most memory that the broker has had."""
    status = Path(f"/proc/{automation.imori.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def test_floods_of_output_stay_within_the_memory_mark_and_fail(tmp_path: Path) -> None:
    """ROOM-10: commands and Python actions, 16 at a time."""
    add_pack(tmp_path)
    settings = {"broker.memory_mark_percent": 1}
    with running_automation(tmp_path, settings=settings) as automation:
        floods = [request(automation, "core.local", cmd=FLOOD) for _ in range(FLOODS)]
        for execution in floods:
            is_cut(automation.ended(execution))
        floods = [request(automation, "floods.print", mebibytes=400) for _ in range(FLOODS)]
        for execution in floods:
            is_cut(automation.ended(execution))
        # An action whose result is whole says what is cut of its text.
        ended = automation.run("floods.print", mebibytes=2)
        assert (ended["status"], ended["result"]["result"]) == ("succeeded", "returned")
        assert ended["result"]["x-imori.cut"]["stdout"]["kept"] == KEPT
        peak = peak_bytes(automation)
        assert peak <= MARK_BYTES, f"{peak / MIB:.0f} MiB"


def test_a_command_that_ignores_its_closed_pipe_is_killed(tmp_path: Path) -> None:
    """ROOM-10: and its files do not grow meanwhile."""
    with running_automation(tmp_path) as automation:
        execution = request(automation, "core.local", cmd=STUBBORN)
        file = tmp_path / "data/automation/runs" / execution / "stdout"
        seen = [0]

        def has_ended() -> bool:
            try:
                seen.append(file.stat().st_size)
            except FileNotFoundError:
                seen.append(0)
            shown = automation.get(f"/v1/executions/{execution}")
            return bool(shown["status"] == "failed")

        wait_for(has_ended, "the end of the command")
        is_cut(automation.ended(execution))
        assert max(seen) <= RECORDED + 512


def test_a_flood_whose_broker_is_killed_fails_after_the_next_start(tmp_path: Path) -> None:
    """ROOM-10: the recorder cuts also while there is no broker."""
    with running_automation(tmp_path) as first:
        execution = request(first, "core.local", cmd=STUBBORN, timeout=600)
        path = f"/v1/executions/{execution}"
        wait_for(lambda: first.get(path)["status"] == "running", "a command that runs")
        file = tmp_path / "data/automation/runs" / execution / "stdout"
        wait_for(file.exists, "the output of the command")
        first.imori.process.send_signal(signal.SIGKILL)
        first.imori.process.wait()
        wait_for(lambda: file.stat().st_size > RECORDED, "the limit")
    assert file.stat().st_size <= RECORDED + 512
    with running_automation(tmp_path) as second:
        is_cut(second.ended(execution))


def test_output_within_the_limits_and_exit_codes_stay_exact(tmp_path: Path) -> None:
    """ROOM-10: neither a pipe nor a process left behind changes the result."""
    with running_automation(tmp_path) as automation:
        whole = f"head -c {KEPT} /dev/zero | tr '\\0' x; exit 3"
        ended = automation.run("core.local", cmd=whole)
        assert (ended["status"], ended["result"]["return_code"]) == ("failed", 3)
        assert len(ended["result"]["stdout"]) == KEPT
        assert "x-imori.cut" not in ended["result"]
        for code in (0, 1, 141):
            ended = automation.run("core.local", cmd=f"echo out; echo err >&2; exit {code}")
            result = ended["result"]
            assert (result["stdout"], result["stderr"]) == ("out", "err")
            assert result["return_code"] == code
        # A process left behind holds the pipes open, and prints on.
        ended = automation.run("core.local", cmd="(while echo more; do sleep 1; done) & echo out")
        assert ended["status"] == "succeeded"
        assert "out" in ended["result"]["stdout"].split()


def test_a_command_whose_output_is_longer_than_its_result_has_failed(tmp_path: Path) -> None:
    """ROOM-10: it says how much it printed and what is kept."""
    with running_automation(tmp_path) as automation:
        ended = automation.run("core.local", cmd=f"head -c {3 * MIB} /dev/zero | tr '\\0' x")
        assert ended["status"] == "failed"
        cut = {"stdout": {"kept": KEPT, "printed": 3 * MIB}}
        assert ended["result"]["x-imori.cut"] == cut
        assert ended["result"]["error"] == (
            f"`stdout` has {3 * MIB} bytes, of which {KEPT} are kept; "
            "print less, or write to a file and print its path"
        )


def test_what_is_recorded_is_shown_while_the_action_runs(tmp_path: Path) -> None:
    """Line by line, and beyond what a result keeps."""
    with running_automation(tmp_path) as automation:
        gate = tmp_path / "gate"
        command = (
            f"echo first; while [ ! -e {gate}1 ]; do sleep 0.05; done; "
            f"head -c {5 * MIB} /dev/zero | tr '\\0' x; "
            f"while [ ! -e {gate}2 ]; do sleep 0.05; done"
        )
        execution = request(automation, "core.local", cmd=command)
        path = f"/v1/executions/{execution}/output"
        wait_for(lambda: automation.get(path) == "first\n", "the first line")
        Path(f"{gate}1").touch()
        wait_for(lambda: len(automation.get(path)) == 5 * MIB + 6, "all that was printed")
        Path(f"{gate}2").touch()
        assert automation.ended(execution)["status"] == "failed"
        assert len(automation.get(path)) == KEPT
