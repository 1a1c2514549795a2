"""The Helm chart keeps to a policy, leaves an operator room, and fits the page of examples."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workloads.page import SERVER, block

CHART = Path(__file__).resolve().parents[1] / "service" / "deploy" / "helm"
VALUES: dict[str, Any] = {
    "image": {"repository": "registry.example/sizer", "digest": f"sha256:{'a' * 64}"},
    "existingSecret": "sizer-secret",
}
INSERTED = re.compile(r"\{\{ \.(Values(?:\.\w+)+|Release\.Name) \}\}")
GUARD = re.compile(
    r"\{\{- if (lt|ge) \(int \.(Values\.\w+)\) \(int \.(Values\.\w+)\) \}\}\n\{\{- fail \"(.*)\" \}\}\n\{\{- end \}\}\n"
)
STATED = re.compile(
    r"^ +\{\{- with \.(Values\.\w+) \}\}\n +\{\{- toYaml \. \| nindent (\d+) \}\}\n +\{\{- end \}\}\n", re.MULTILINE
)
BLOCK = re.compile(r"\{\{- toYaml \.(Values(?:\.\w+)+) \| nindent (\d+) \}\}")


def rendered(name: str, values: dict[str, Any], release: str = "sizer") -> dict[str, Any]:
    """Return a template as Helm renders it: ours compare, insert scalars and blocks of YAML, and nothing else."""

    def at(path: str) -> Any:
        node: Any = {"Values": values, "Release": {"Name": release}}
        for part in path.split("."):
            node = node[part]
        return node

    def yaml_block(match: re.Match[str]) -> str:
        text = yaml.safe_dump(at(match[1])).rstrip()
        return "".join(f"\n{' ' * int(match[2])}{line}" for line in text.splitlines())

    text = (CHART / "templates" / name).read_text(encoding="utf-8")
    for word, one, other, told in GUARD.findall(text):
        if {"lt": at(one) < at(other), "ge": at(one) >= at(other)}[word]:
            raise ValueError(told)
    text = GUARD.sub("", text)
    text = STATED.sub(lambda match: f"{yaml_block(match)[1:]}\n" if at(match[1]) else "", text)
    text = BLOCK.sub(yaml_block, text)
    text = INSERTED.sub(lambda match: str(at(match[1])), text)
    assert "{{" not in text
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def values(**stated: Any) -> dict[str, Any]:
    return {**yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), **VALUES, **stated}


# What an operator may have to state beside the image and the secret.
OWN: dict[str, Any] = {
    "imagePullSecrets": [{"name": "registry"}],
    "env": [{"name": "SIZER_OTLP_ENDPOINT", "value": "http://collector.observability:4318/v1/traces"}],
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
    "alsoAllowedFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    "alsoAllowedTo": [{"ports": [{"port": 4318}], "to": [{"podSelector": {"matchLabels": {"app": "collector"}}}]}],
}
TEMPLATES = sorted(path.name for path in (CHART / "templates").iterdir())
PODS = ("deployment.yaml", "migrate.yaml")


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_the_chart_says_is_what_kubernetes_reads(name: str) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="installed by the newest development lock")

    for version in ("1.27", "1.33"):
        kubernetes.validate(rendered(name, values()), version, strict=True)
        kubernetes.validate(rendered(name, values(**OWN)), version, strict=True)


def test_templates_are_rendered_here_as_helm_renders_them() -> None:
    helm = pytest.importorskip("helm_python.chart", reason="Helm's own library is not installed here")

    for stated in ({}, OWN):
        told = helm.Chart.load(CHART).render({**VALUES, **stated}, name="sizer", namespace="default")

        assert {path.rsplit("/", 1)[-1]: yaml.safe_load(text) for path, text in told.items()} == {
            name: rendered(name, values(**stated)) for name in TEMPLATES
        }


@pytest.mark.parametrize("name", PODS)
def test_pods_may_do_little(name: str) -> None:
    pod = rendered(name, values())["spec"]["template"]["spec"]

    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} <= set(container["resources"]["limits"])
        assert re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", container["image"])


def test_pods_are_probed_drained_and_spread() -> None:
    pod = rendered("deployment.yaml", values())["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == container["startupProbe"]["httpGet"]["path"] == "/livez"
    assert container["livenessProbe"]["timeoutSeconds"] >= 3
    assert pod["terminationGracePeriodSeconds"] > 25 + 5  # what the service takes to end, after the pause before it
    assert pod["topologySpreadConstraints"]


def test_the_chart_keeps_replicas_and_lets_few_in_and_out() -> None:
    budget, scaler = rendered("disruption.yaml", values()), rendered("autoscaler.yaml", values())
    network, service = rendered("network.yaml", values()), rendered("service.yaml", values())
    labels = rendered("deployment.yaml", values())["spec"]["template"]["metadata"]["labels"]

    assert budget["spec"]["minAvailable"] >= 1
    assert scaler["spec"]["minReplicas"] >= 2
    assert network["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert all("podSelector" in peer for rule in network["spec"]["ingress"] for peer in rule["from"])
    for selector in (
        budget["spec"]["selector"]["matchLabels"],
        network["spec"]["podSelector"]["matchLabels"],
        service["spec"]["selector"],
    ):
        assert selector == labels


def test_what_an_operator_states_is_where_kubernetes_reads_it() -> None:
    for name in PODS:
        pod = rendered(name, values(**OWN))["spec"]["template"]["spec"]
        assert {key: pod[key] for key in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity")} == {
            key: OWN[key] for key in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity")
        }
        assert pod["containers"][0]["env"] == OWN["env"]
    closed, opened = (rendered("network.yaml", values(**stated))["spec"] for stated in ({}, OWN))

    assert opened["ingress"][0]["from"] == [*closed["ingress"][0]["from"], *OWN["alsoAllowedFrom"]]
    assert opened["egress"] == [*closed["egress"], *OWN["alsoAllowedTo"]]


def test_the_autoscaler_alone_says_how_many_replicas_there_are() -> None:
    assert "replicas" not in rendered("deployment.yaml", values())["spec"]
    assert rendered("autoscaler.yaml", values(replicas=3, maxReplicas=3))["spec"]["minReplicas"] == 3
    with pytest.raises(ValueError, match=r"maxReplicas: .* accepted: "):
        rendered("autoscaler.yaml", values(replicas=3, maxReplicas=2))


def test_maintenance_can_always_evict_a_pod() -> None:
    assert rendered("disruption.yaml", values(replicas=3, minAvailable=2))["spec"]["minAvailable"] == 2
    with pytest.raises(ValueError, match=r"minAvailable: .* accepted: "):
        rendered("disruption.yaml", values(replicas=2, minAvailable=2))


def test_the_monitor_on_the_page_and_its_addresses_find_the_chart_s_service() -> None:
    service = rendered("service.yaml", values())
    (port,) = service["spec"]["ports"]
    monitor = block("monitor").document

    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} == {port["name"]}
    assert f"http://{service['metadata']['name']}:{port['port']}" == SERVER


def test_the_chart_takes_no_image_without_a_digest() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    validator = importlib.import_module("jsonschema").Draft7Validator(schema)

    assert validator.is_valid(values())
    assert validator.is_valid(values(**OWN))
    assert not validator.is_valid(values(tolerations={}))
    assert not validator.is_valid({**values(), "image": {"repository": "sizer", "digest": "latest"}})
    assert not validator.is_valid({**values(), "existingSecret": ""})
    assert not validator.is_valid({**values(), "replicas": 1})
