"""Packs as they are published: registered, with their environments, their own tests, and actions.

`PACKS` names a folder with a checkout of each, as `make packs PACKS=FOLDER` does; a pack that is
not there is skipped. Environments are built from the package index that pip uses.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pika
import pytest

from automation.sources import SOURCES
from harness.automation import Automation, running_automation
from harness.http_server import serving

PACKS = os.environ.get("PACKS", "")
# What packs' tests import beside `st2tests`, and what runs them.
TEST_PACKAGES = ["mock", "pytest", "PyYAML", "six"]
# StackStorm's runner of packs' tests imports from these folders too.
TEST_FOLDERS = ["", "actions", "actions/lib", "sensors", "etc", "tests"]

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("packs")]


# Whether each pack has tests of its own.
PUBLISHED = {
    "csv": True,
    "github": True,
    "networking_utils": True,
    "rabbitmq": False,
    "xml": True,
}


def checkout(pack: str) -> Path:
    """The checkout of a pack, under its own name or that of its repository."""
    for name in [pack, f"stackstorm-{pack}"]:
        folder = Path(PACKS).resolve() / name
        if PACKS and (folder / "pack.yaml").is_file():
            return folder
    pytest.skip(f"pack `{pack}` is not in `PACKS`: `{PACKS}`")


@dataclass(frozen=True)
class Packs:
    """An automation with the packs that are there."""

    automation: Automation
    installed: dict[str, Any] = field(default_factory=dict)

    def install(self, pack: str) -> dict[str, Any]:
        """What the installation of a pack has told; skips where the pack is not there."""
        folder = checkout(pack)
        if pack not in self.installed:
            done = self.automation.run("packs.install", packs=[f"file://{folder}"])
            self.installed[pack] = done
        done = self.installed[pack]
        assert done["status"] == "succeeded", done["result"]
        (told,) = done["result"]["result"]
        found: dict[str, Any] = told
        return found

    def python(self, pack: str) -> Path:
        """The Python of a pack's environment."""
        data = self.automation.imori.log.parent / "data"
        return data / "automation" / "environments" / pack / "bin" / "python"

    def run(self, action: str, **parameters: object) -> Any:  # noqa: ANN401
        """The result of an action that has to succeed."""
        self.install(action.split(".")[0])
        ended = self.automation.run(action, **parameters)
        assert ended["status"] == "succeeded", ended["result"]
        return ended["result"]["result"]


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packs]:
    """An automation for all packs."""
    if not any(Path(PACKS).glob("*/pack.yaml") if PACKS else []):
        pytest.skip("`PACKS` names no folder of packs")
    with running_automation(tmp_path_factory.mktemp("published")) as automation:
        yield Packs(automation)


@pytest.mark.parametrize("pack", PUBLISHED)
def test_a_published_pack_is_registered_whole(packs: Packs, pack: str) -> None:
    told = packs.install(pack)
    assert not told["problems"]
    actions = packs.automation.get(f"/v1/actions?pack={pack}&limit=-1")
    assert len(actions) == len(list(checkout(pack).glob("actions/*.yaml"))) > 0
    assert packs.python(pack).exists()


@pytest.mark.parametrize("pack", [name for name, has_tests in PUBLISHED.items() if has_tests])
def test_the_packs_own_tests_pass(packs: Packs, pack: str, tmp_path: Path) -> None:
    packs.install(pack)
    folder, python, extras = checkout(pack), packs.python(pack), tmp_path / "extras"
    command: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    subprocess.run([*command, "--target", extras, *TEST_PACKAGES], check=True)
    paths = [*(folder / name for name in TEST_FOLDERS), SOURCES, extras]
    quiet = ["-q", "-p", "no:cacheprovider", "--no-header", "--tb=short", "--rootdir", "."]
    run = subprocess.run(
        [python, "-m", "pytest", *quiet, "tests"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": ":".join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_texts_of_csv_and_xml_are_parsed(packs: Packs) -> None:
    assert packs.run("csv.parse", data="a,b\n1,2") == [["a", "b"], ["1", "2"]]
    assert packs.run("csv.parse", data="a;b", delimiter=";") == [["a", "b"]]
    assert packs.run("xml.parse", data="<a><b>1</b></a>") == {"a": {"b": "1"}}


def test_networks_are_computed(packs: Packs) -> None:
    found = packs.run("networking_utils.subnets", network="10.0.0.0/24", new_prefix=25)
    assert found == ["10.0.0.0/25", "10.0.0.128/25"]
    packs.run("networking_utils.is_valid_ip", ip_address="127.0.0.1")
    wrong = packs.automation.run(
        "networking_utils.is_valid_ip", ip_address="127.0.0.1", no_loopback=True
    )
    assert wrong["status"] == "failed", wrong["result"]


def test_rabbitmqs_action_publishes_to_this_broker(packs: Packs) -> None:
    packs.install("rabbitmq")
    host, port = packs.automation.imori.named["amqp"]
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        channel = connection.channel()
        channel.exchange_declare("published", "fanout")
        channel.queue_declare("published")
        channel.queue_bind("published", "published")
        exchange = {"exchange": "published", "exchange_type": "fanout"}
        packs.run("rabbitmq.publish_message", host=host, port=port, message="hello", **exchange)
        assert channel.basic_get("published", auto_ack=True)[2] == b"hello"


USER = {"id": 1, "login": "octo", "name": "Octo"}
REPOSITORY = {"id": 2, "name": "hello", "full_name": "octo/hello"}
ISSUE = {"id": 3, "number": 7, "title": "It burns", "user": USER, "labels": []}


def forge(answers: Callable[[str], object]) -> type[BaseHTTPRequestHandler]:
    """A server that has these JSON documents by their paths."""

    class Forge(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers(self.path)
            body = json.dumps(found if found is not None else {"message": "Not Found"}).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            pass

    return Forge


def test_githubs_action_reads_an_issue_of_a_forge(packs: Packs) -> None:
    packs.install("github")
    api, repository = "/api/v3", "/repos/octo/hello"
    documents: dict[str, object] = {
        f"{api}/users/octo": USER,
        f"{api}{repository}": REPOSITORY | {"url": repository},
        f"{api}{repository}/issues/7": ISSUE | {"url": f"{repository}/issues/7"},
    }
    with serving(forge(documents.get)) as url:
        config = {"token": "t", "github_type": "enterprise", "base_url": f"{url}{api}"}
        config["deployment_environment"] = "test"
        assert packs.automation.ask("PUT", "/v1/configs/github", config).status == 200
        found = packs.run("github.get_issue", user="octo", repo="hello", issue_id="7")
        assert (found["title"], found["author"]["login"]) == ("It burns", "octo")
        missing = {"user": "octo", "repo": "hello", "issue_id": "8"}
        assert packs.automation.run("github.get_issue", **missing)["status"] == "failed"
