"""The Helm chart: rendered, compared with Kubernetes's schemas, and its configuration served."""

import base64
import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.certificates import certificates
from harness.deadline import DEADLINE_S
from harness.imori import BINARY, REPOSITORY
from harness.network import network
from harness.process import lines_of

CHART = REPOSITORY / "deploy/helm/imori"
HELM = REPOSITORY / ".tools/bin/helm"
VALIDATE = REPOSITORY / ".tools/deploy/bin/kubernetes-validate"
# The oldest that the chart names, and the newest that the validator knows.
KUBERNETES = ("1.25", "1.37")
# Resources of the Prometheus operator, which are not Kubernetes's.
FOREIGN = {"ServiceMonitor"}

Documents = dict[str, dict[str, Any]]

TLS: dict[str, Any] = {
    "tls": {"existingSecret": "certificate"},
    "listeners": {
        **dict.fromkeys(("stomp", "nats", "amqp", "ws", "admin"), 0),
        **{"stomp_tls": 61614, "amqp_tls": 5671, "admin_tls": 15671, "nats_monitor_tls": 8223},
    },
}
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.example/imori", "tag": "9", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "pull"}],
    "listeners": {"nats_monitor": 8222, "automation": 9101, "http": 8080, "http_tls": 8443},
    "tls": {"existingSecret": "certificate"},
    "admin": {"existingSecret": "login", "key": "admin"},
    "config": {
        "limits": {"queues": 1000},
        "broker": {"accept_plaintext": ["stomp", "nats", "amqp", "ws", "admin", "nats-monitor"]},
        "journal": {"file_bytes": "20MiB"},
        "gateway": {"routes": ""},
        "listeners": {"automation": []},
    },
    "extraVolumes": [{"name": "routes", "configMap": {"name": "routes"}}],
    "extraVolumeMounts": [{"name": "routes", "mountPath": "/etc/imori-routes"}],
    "extraEnv": [{"name": "IMORI__LOG__LEVEL", "value": "debug"}],
    "persistence": {"storageClassName": "fast", "annotations": {"keep": "yes"}},
    "service": {"type": "LoadBalancer", "annotations": {"pool": "a"}},
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "broker", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
    "podDisruptionBudget": {"enabled": True},
    "serviceMonitor": {"enabled": True, "basicAuthSecret": "scraper", "labels": {"team": "a"}},
    "networkPolicy": {"enabled": True, "from": [{"podSelector": {"matchLabels": {"a": "b"}}}]},
}
WITHOUT_CLAIM: dict[str, Any] = {
    "persistence": {"enabled": False},
    "networkPolicy": {"enabled": True},
}
CASES: dict[str, dict[str, Any]] = {
    "default": {},
    "tls": TLS,
    "everything": EVERYTHING,
    "without a claim": WITHOUT_CLAIM,
}

pytestmark = pytest.mark.skipif(
    not (HELM.exists() and VALIDATE.exists()), reason="`make packages` installs helm"
)


def helm(*command: str, values: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command of helm on the chart with these values."""
    whole = [str(HELM), *command, str(CHART), "--values", str(values)]
    whole += ["--kube-version", KUBERNETES[0]]
    # Nothing of the user's own configuration.
    environment = {"PATH": os.environ["PATH"], "HOME": str(values.parent)}
    return subprocess.run(whole, capture_output=True, text=True, env=environment, check=False)


def written(values: dict[str, Any], folder: Path) -> Path:
    """Writes the values into a file; a document in JSON is one in YAML."""
    path = folder / "values.json"
    path.write_text(json.dumps(values))
    return path


def rendered(values: dict[str, Any], folder: Path) -> Documents:
    """Returns the chart's documents by kind and name."""
    made = helm("template", "broker", values=written(values, folder))
    assert made.returncode == 0, made.stderr
    documents = [document for document in yaml.safe_load_all(made.stdout) if document]
    return {
        f"{document['kind']}/{document['metadata']['name']}": document for document in documents
    }


def configuration(documents: Documents, folder: Path) -> Path:
    """Writes the broker's configuration into a file."""
    path = folder / "imori.toml"
    path.write_text(documents["ConfigMap/broker-imori"]["data"]["imori.toml"])
    return path


def container(documents: Documents) -> dict[str, Any]:
    """Returns the only container of the pod."""
    (only,) = documents["StatefulSet/broker-imori"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


@pytest.mark.parametrize("case", CASES)
def test_what_is_rendered_is_right(case: str, tmp_path: Path) -> None:
    linted = helm("lint", "--strict", values=written(CASES[case], tmp_path))
    assert linted.returncode == 0, linted.stdout + linted.stderr
    documents = rendered(CASES[case], tmp_path)
    paths = []
    for number, document in enumerate(documents.values()):
        if document["kind"] not in FOREIGN:
            paths.append(tmp_path / f"{number}.yaml")
            paths[-1].write_text(yaml.safe_dump(document))
    for version in KUBERNETES:
        command = [str(VALIDATE), "--strict", "-k", version, *map(str, paths)]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout + told.stderr
        assert told.stdout.count("passed") == len(paths), told.stdout
    checked = subprocess.run(
        [BINARY, "config", "check", str(configuration(documents, tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    told = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True)
    assert chart["appVersion"] == told.stdout.split()[-1]


def test_a_wrong_document_is_noticed(tmp_path: Path) -> None:
    document = rendered({}, tmp_path)["StatefulSet/broker-imori"]
    document["spec"]["template"]["spec"]["containers"][0]["port"] = []
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(document))
    command = [str(VALIDATE), "--strict", "-k", KUBERNETES[0], str(path)]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"listeners": {"stomp_tls": 61614}}, "listeners.stomp_tls needs tls.existingSecret"),
        ({"listeners": {"admin": 0}}, "the probes need one of them"),
        ({"listeners": {"mqtt": 1883}}, "mqtt"),
        ({"listeners": {"stomp": None}}, "stomp"),
        ({"replicas": 3}, "replicas"),
        ({"serviceMonitor": {"enabled": True}}, "serviceMonitor.basicAuthSecret names a secret"),
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any], reason: str, tmp_path: Path) -> None:
    made = helm("template", "broker", values=written(values, tmp_path))
    assert made.returncode != 0
    assert reason in made.stderr


def test_names_in_the_documents_agree(tmp_path: Path) -> None:
    documents = rendered(EVERYTHING, tmp_path)
    pod = documents["StatefulSet/broker-imori"]["spec"]
    ports = {port["name"]: port["containerPort"] for port in container(documents)["ports"]}
    for service in ("broker-imori", "broker-imori-headless"):
        spec = documents[f"Service/{service}"]["spec"]
        assert {port["targetPort"]: port["port"] for port in spec["ports"]} == ports
        assert spec["selector"] == pod["selector"]["matchLabels"]
        assert spec["selector"].items() <= pod["template"]["metadata"]["labels"].items()
    assert f"Service/{pod['serviceName']}" in documents
    (rule,) = documents["NetworkPolicy/broker-imori"]["spec"]["ingress"]
    assert {port["port"] for port in rule["ports"]} == ports.keys()
    monitor = documents["ServiceMonitor/broker-imori"]["spec"]
    labels = [
        document["metadata"]["labels"]
        for document in documents.values()
        if document["kind"] == "Service"
    ]
    scraped = [
        found for found in labels if monitor["selector"]["matchLabels"].items() <= found.items()
    ]
    assert len(scraped) == 1
    assert monitor["endpoints"][0]["port"] in ports
    assert not any(kind.startswith("Secret/") for kind in documents)


def test_whole_numbers_of_the_values_stay_whole(tmp_path: Path) -> None:
    documents = rendered({"config": {"limits": {"queues": 12345678}}}, tmp_path)
    assert "queues = 12345678\n" in configuration(documents, tmp_path).read_text() + "\n"


@pytest.mark.parametrize("case", ["default", "tls"])
def test_probes_and_the_password_of_the_secret_are_answered(case: str, tmp_path: Path) -> None:
    documents = rendered(CASES[case], tmp_path)
    secret = tmp_path / "password"
    password = documents["Secret/broker-imori-admin"]["stringData"]["password"]
    secret.write_text(password)
    volumes = documents["StatefulSet/broker-imori"]["spec"]["template"]["spec"]["volumes"]
    (mode,) = [volume["secret"]["defaultMode"] for volume in volumes if volume["name"] == "admin"]
    secret.chmod(mode)
    made = certificates(tmp_path / "tls")
    # The folders of the container, which are this test's here.
    settings = {
        "BROKER__DATA_DIR": tmp_path / "data",
        "USERS__ADMIN_PASSWORD_FILE": secret,
        "TLS__CERTIFICATE": made.folder / "server.pem",
        "TLS__KEY": made.folder / "server-key.pem",
        "JOURNAL__FILE_BYTES": "20MiB",
    }
    environment = os.environ | {f"IMORI__{name}": str(value) for name, value in settings.items()}
    command = [BINARY, "serve", "--config", str(configuration(documents, tmp_path))]
    with network() as prefix, (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*prefix, *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert process.stdout is not None
            lines = lines_of(process.stdout)
            listening = set()
            while (line := lines.get(timeout=DEADLINE_S)) != "ready":
                assert line is not None, (tmp_path / "log").read_text()
                listening |= {
                    int(port) for port in re.findall(r"^listening .* 0\.0\.0\.0:(\d+)$", line)
                }
            ports = {port["name"]: port["containerPort"] for port in container(documents)["ports"]}
            assert listening == set(ports.values())
            for name in ("startupProbe", "livenessProbe", "readinessProbe"):
                probe = container(documents)[name]["httpGet"]
                url = f"{probe['scheme'].lower()}://127.0.0.1:{ports[probe['port']]}"
                assert fetched(prefix, url + probe["path"]) == "200"
            assert fetched(prefix, f"{url}/v1/whoami", password) == "200"
            assert fetched(prefix, f"{url}/v1/whoami", "another") == "401"
        finally:
            process.kill()
            process.wait()


def fetched(prefix: Sequence[str], url: str, password: str | None = None) -> str:
    """Returns the status of a page; certificates are not verified, as probes do not."""
    headers = []
    if password is not None:
        token = base64.b64encode(f"admin:{password}".encode()).decode()
        headers = ["--header", f"Authorization: Basic {token}"]
    command = [*prefix, "curl", "--silent", "--insecure", "--output", os.devnull, *headers]
    command += ["--write-out", "%{http_code}", url]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
