"""Packs that are wrong on purpose: bombs, workflows and rules without end, runaway expressions."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.automation import Answer, Automation, running_automation
from harness.deadline import DEADLINE_S, wait_for

PACK = (
    "name: hostile\ndescription: Wrong on purpose.\nversion: 1.0.0\nauthor: a\nemail: a@b.example\n"
)
RUNNERS = ["orquesta", "action-chain"]

# Memory that a refusal may leave behind.
GROWTH_BYTES_MAX = 100 << 20

# Each text is one that a careless reader of YAML takes gigabytes or forever for.
LAUGHS = "\n".join(
    ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
)
BOMBS = {
    "laughs": LAUGHS,
    "deep": "a: " + "[" * 100_000,
    "deep_maps": "".join("  " * n + "a:\n" for n in range(1_000)),
    "long": "a: " + "x" * (3 << 20),
    "merged": "a0: &a0 {b: 1}\n"
    + "\n".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 40)),
}

ITSELF = {
    "orquesta": "version: 1.0\ntasks:\n  again:\n    action: hostile.{name}\n",
    "action-chain": "chain: [{{name: again, ref: hostile.{name}}}]\n",
}

# Each start starts two.
FORKS = """
version: 1.0
tasks:
  left: {action: hostile.forks}
  right: {action: hostile.forks}
"""

# What takes a naive evaluator gigabytes or forever.
RUNAWAYS = [
    "{{ 'x' * 10000000000 }}",
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{{ range(10000000000) | list | length }}",
    "{{ ('x' * 100000) | replace('x', 'y' * 100000) }}",
    "{{ 9 ** 9 ** 9 }}",
]


@pytest.fixture(scope="module")
def automation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Automation]:
    """One automation for all tests, with which nothing is wrong in the end."""
    with running_automation(tmp_path_factory.mktemp("hostile")) as automation:
        yield automation
        assert automation.run("core.local", cmd="echo well")["result"]["stdout"] == "well"
        assert automation.imori.stop() == 0


def register(automation: Automation, definitions: dict[str, tuple[str, str]]) -> Answer:
    """Registers the pack `hostile` with these workflows: by name, runner and definition."""
    folder = automation.imori.log.parent / "data/automation/packs/hostile"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "actions/workflows").mkdir(parents=True)
    (folder / "pack.yaml").write_text(PACK)
    for name, (runner, text) in definitions.items():
        (folder / f"actions/workflows/{name}.yaml").write_text(text)
        (folder / f"actions/{name}.yaml").write_text(
            f"name: {name}\nrunner_type: {runner}\nenabled: true\n"
            f"entry_point: workflows/{name}.yaml\n"
        )
    return automation.ask("POST", "/v1/packs/register", {"packs": ["hostile"]})


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("bomb", sorted(BOMBS))
def test_a_bomb_fails_its_workflow_at_once(automation: Automation, bomb: str, runner: str) -> None:
    """AUTO-01: whatever a definition expands to, its reader is bounded."""
    name = f"{bomb}_{runner.replace('-', '_')}"
    before, began = automation.imori.rss_bytes(), time.monotonic()
    registered = register(automation, {name: (runner, BOMBS[bomb])})
    if registered.status != 200:
        assert f"{name}.yaml" in registered.body["faultstring"]
    answer = automation.ask("POST", "/v1/executions", {"action": f"hostile.{name}"})
    if answer.status == 201:
        ended = automation.ended(answer.body["id"])
        assert ended["status"] == "failed", ended
        assert len(str(ended["result"])) < 10_000
    else:
        assert registered.status != 200, answer
    assert time.monotonic() - began < DEADLINE_S
    assert automation.imori.rss_bytes() - before < GROWTH_BYTES_MAX


def test_a_bomb_in_metadata_is_left_out(automation: Automation) -> None:
    """AUTO-01: a file of a pack that is a bomb is named, and the others are registered."""
    folder = automation.imori.log.parent / "data/automation/packs/hostile"
    fine = "version: 1.0\ntasks:\n  a: {action: core.noop}\n"
    assert register(automation, {"fine": ("orquesta", fine)}).status == 200
    before = automation.imori.rss_bytes()
    for name, text in BOMBS.items():
        (folder / f"actions/bomb_{name}.yaml").write_text(text)
    loaded = automation.run("packs.load", packs=["hostile"])
    for name in BOMBS:
        (folder / f"actions/bomb_{name}.yaml").unlink()
    problems = loaded["result"]["result"]["problems"]
    for name in BOMBS:
        assert any(f"bomb_{name}.yaml" in problem for problem in problems), name
    assert automation.run("hostile.fine")["status"] == "succeeded"
    assert automation.imori.rss_bytes() - before < GROWTH_BYTES_MAX


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_workflow_that_calls_itself_ends(automation: Automation, runner: str) -> None:
    """AUTO-02: the depth of workflows is bounded."""
    name = f"itself_{runner.replace('-', '_')}"
    definition = ITSELF[runner].format(name=name)
    assert register(automation, {name: (runner, definition)}).status == 200
    ended = automation.run(f"hostile.{name}")
    assert ended["status"] == "failed"
    below = automation.get(f"/v1/executions/{ended['id']}/descendants?limit=100")
    assert len(below) == 32
    assert any("workflows are nested 32 deep" in str(one["result"]) for one in below)


@pytest.mark.timeout(12 * DEADLINE_S)
def test_a_workflow_that_forks_itself_ends(automation: Automation) -> None:
    """AUTO-02: the number of workflows within another one is bounded, and others go on."""
    assert register(automation, {"forks": ("orquesta", FORKS)}).status == 200
    answer = automation.ask("POST", "/v1/executions", {"action": "hostile.forks"})
    assert answer.status == 201, answer
    assert automation.run("core.local", cmd="echo meanwhile")["result"]["stdout"] == "meanwhile"
    ended = automation.ended(answer.body["id"])
    assert ended["status"] == "failed"
    # Up to a thousand of them end one after another.
    wait_for(
        lambda: not automation.executions(status="running", action="hostile.forks"),
        "the end of the workflows within one that has failed",
        within_s=8 * DEADLINE_S,
    )


def test_a_rule_that_feeds_itself_is_suspended(automation: Automation) -> None:
    """AUTO-03: a rule on ends of actions matches its own action's end, and others go on."""
    rule = automation.rule(
        name="feeds-itself",
        trigger={"type": "core.st2.generic.actiontrigger"},
        criteria={"trigger.action_ref": {"type": "equals", "pattern": "core.noop"}},
        action={"ref": "core.noop"},
        **{"x-imori": {"breaker": {"n": 50, "within": 60}}},
    )
    assert automation.run("core.noop")["status"] == "succeeded"

    def suspended() -> bool:
        found = automation.get(f"/v1/ruleenforcements?rule_ref={rule['ref']}&limit=100")
        return any("is suspended until" in one.get("failure_reason", "") for one in found)

    wait_for(suspended)
    assert len(automation.executions(rule=rule["ref"], limit="100")) == 50
    assert automation.run("core.local", cmd="echo on")["result"]["stdout"] == "on"
    assert automation.ask("DELETE", f"/v1/rules/{rule['ref']}").status == 204


@pytest.mark.parametrize("expression", RUNAWAYS)
def test_a_runaway_expression_fails_its_execution_at_once(
    automation: Automation, expression: str
) -> None:
    """AUTO-05: an expression that is evaluated in the broker is bounded in steps and in output."""
    before, began = automation.imori.rss_bytes(), time.monotonic()
    body = {"action": "core.local", "parameters": {"cmd": f"echo {expression}"}}
    answer = automation.ask("POST", "/v1/executions", body)
    assert answer.status == 400, answer
    assert time.monotonic() - began < DEADLINE_S
    assert automation.imori.rss_bytes() - before < GROWTH_BYTES_MAX


def test_a_runaway_expression_of_a_workflow_fails_it_at_once(
    automation: Automation, tmp_path: Path
) -> None:
    """AUTO-05: so it is in each place of a workflow that has expressions."""
    for number, expression in enumerate(RUNAWAYS[:2]):
        mark = tmp_path / str(number)
        text = (
            "version: 1.0\ntasks:\n  a:\n    action: core.noop\n    next:\n"
            f'      - publish:\n          - b: "{expression}"\n        do: c\n'
            f"  c: {{action: core.local, input: {{cmd: 'touch {mark}'}}}}\n"
        )
        assert register(automation, {f"runaway{number}": ("orquesta", text)}).status == 200
        ended = automation.run(f"hostile.runaway{number}")
        assert ended["status"] == "failed", ended
        assert not mark.exists()
