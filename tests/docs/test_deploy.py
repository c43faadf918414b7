"""Dashboards and alert rules use metrics that exist, and every rule fires when it should."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.deadline import DEADLINE_S
from harness.imori import REPOSITORY

RULES = REPOSITORY / "deploy/prometheus/imori.rules.yml"
TESTS = REPOSITORY / "deploy/prometheus/imori.rules.test.yml"
DASHBOARD = REPOSITORY / "deploy/grafana/imori.json"

_METRIC = re.compile(r"\b((?:imori|rabbitmq|process)_[a-z0-9_]+)")


def documented() -> set[str]:
    """Returns the documented metric names, which the metrics tests compare with the broker's."""
    rows = (REPOSITORY / "docs/reference/metrics.md").read_text("utf-8").splitlines()
    found = set()
    for row in rows:
        if (match := re.match(r"\| `([a-z0-9_]+)(?:\{.*\})?` \| (\w+) \|", row)) is not None:
            name, kind = match.groups()
            found |= {name, f"{name}_bucket"} if kind == "histogram" else {name}
    return found


def expressions() -> list[str]:
    """Returns the queries of the dashboard and the rules."""
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = re.sub(r"annotations:.*?(?=- alert|\Z)", "", RULES.read_text("utf-8"), flags=re.DOTALL)
    asked.append(re.sub(r"#.*", "", rules))
    return asked


def test_every_metric_that_is_asked_for_exists() -> None:
    asked = {name for expression in expressions() for name in _METRIC.findall(expression)}
    assert len(asked) > 30
    assert asked - documented() == set()


def test_every_rule_has_a_test() -> None:
    alerts = re.findall(r"alert: (\w+)", RULES.read_text("utf-8"))
    assert alerts == re.findall(r"alertname: (\w+)", TESTS.read_text("utf-8"))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_every_rule_fires() -> None:
    for command in (["check", "rules", RULES], ["test", "rules", TESTS]):
        done = subprocess.run(
            ["promtool", *map(str, command)],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_a_rule_that_never_fires_is_noticed(tmp_path: Path) -> None:
    broken = RULES.read_text("utf-8").replace("imori_store_damages > 0", "imori_store_damages > 99")
    (tmp_path / RULES.name).write_text(broken, "utf-8")
    shutil.copy(TESTS, tmp_path)
    done = subprocess.run(
        ["promtool", "test", "rules", tmp_path / TESTS.name],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode != 0
    assert "ImoriStoreDamaged" in done.stdout + done.stderr
