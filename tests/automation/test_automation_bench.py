"""The measurement of the automation: it runs, names every figure, and leaves nothing behind."""

import json
import subprocess
from pathlib import Path
from typing import Any

from harness.automation import running_automation
from harness.imori import LOAD_TOOL

# Fresh brokers and environments of packs take a minute on a busy machine.
# As short as it can be: what is measured here is worth nothing.
SHORT = "--rounds 2 --operations 50 --connections 4 --rate 100 --time 500ms --runs 2"
SHORT += " --cpu-time 1ms --hold 50ms --json -"


def measure(*options: str) -> dict[str, dict[str, Any]]:
    """The figures of a measurement, by name."""
    command = [LOAD_TOOL, "automation", *SHORT.split(), *options]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return {figure["name"]: figure for figure in json.loads(run.stdout)["figures"]}


def test_every_figure_is_measured_or_says_why_not() -> None:
    figures = measure()
    assert len(figures) == 29
    workflows = {name for name in figures if name.startswith(("chain", "orquesta", "items"))}
    for name, figure in figures.items():
        values = figure["values"]
        if name in workflows and not values:
            assert figure["missing"].startswith("not available: "), figure
        elif name == "event-action-p99":
            # 50 events have no such percentile.
            assert figure["missing"] == "too few samples"
        else:
            assert len(values) == 2, figure
            assert min(values) <= figure["median"] <= max(values), figure


def test_a_broker_that_runs_is_left_as_it_was(tmp_path: Path) -> None:
    with running_automation(tmp_path) as automation:
        packs = {pack["ref"] for pack in automation.get("/v1/packs")}
        rules = {rule["ref"] for rule in automation.get("/v1/rules")}
        figures = measure("--url", automation.url, "--only", "python-warm,webhook-noop,memory")
        assert set(figures) == {
            "python-warm",
            "webhook-noop",
            "webhook-noop-cpu",
            "memory-idle",
            "memory-rules",
        }
        assert len(figures["python-warm"]["values"]) == 2
        assert figures["memory-idle"]["missing"].startswith("not available: ")
        assert len(automation.executions(rule="default.imori_bench_noop", limit="100")) == 100
        assert {rule["ref"] for rule in automation.get("/v1/rules")} == rules
        assert {pack["ref"] for pack in automation.get("/v1/packs")} == packs


def test_what_cannot_be_measured_is_said() -> None:
    for options, told in [
        (["--only", "nothing"], "no figure begins with `nothing`"),
        (["--url", "http://127.0.0.1:1", "--pid", "1"], "does not answer; name it with `--url`"),
        (["--imori", "/nowhere/imori"], "`/nowhere/imori` is absent"),
    ]:
        run = subprocess.run(
            [LOAD_TOOL, "automation", *options], check=False, capture_output=True, text=True
        )
        assert run.returncode == 1, options
        assert told in run.stderr, run.stderr
