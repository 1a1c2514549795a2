"""What stands on the page of examples, place by place."""

from typing import Final

from tests.workloads.page import (
    ASKED,
    DEPLOYED,
    HOST,
    LENGTHS,
    PROMETHEUS,
    SERVER,
    SMALL,
    WORKLOAD,
    Body,
    Manifest,
    Pasted,
    Section,
    curl,
    url,
)  # fmt: skip
from tests.workloads.page_sections_more import (
    ARGO,
    BATCHES,
    BOARDS,
    EXACTLY,
    KEYS,
    LANGUAGES,
    PYTHON,
    SCALED,
    SHEETS,
    TERRAFORM,
    TOLERATED,
    TRACED,
)  # fmt: skip

INTRODUCTION: Final = f"""# Sizer where it is asked from

One block for each place, written by `make examples` from what `tests/workloads` replays: manifests against the
published schemas, lines of a shell by a shell, everything else by its own program or its rules, beside a running
service. Replace `{SERVER}` by yours.
"""

NAMED: Final = Section(
    title="A workload under a name",
    words="The fields are those of `/size`, `/capacity`, `/recommend` and `/replicas`; each question takes those it knows.",
    parts=(
        (
            "put",
            Pasted(
                language="bash",
                lines=[
                    curl(
                        url(ASKED),
                        {"question": {**DEPLOYED, "request_rate_per_s": 10, **LENGTHS}},
                        method="PUT",
                        options='-H "X-API-Key: $KEY"',
                    )
                ],
            ),
        ),
        (
            "A later write states the version it saw (`-H 'If-Match: \"1\"'`): without it 428, with an old one 412. "
            f"`{ASKED}/changes` says who wrote what, and when."
        ),
    ),
)

MEASURED: Final = Section(
    title="A load that a Prometheus measures",
    words="`load_from` stands in the place of a load. The load is what the query measured, at most within the cool-down "
    "window, plus its growth until a new pod has loaded; a time or a bandwidth that is not stated stands in `assumptions` "
    "as a default. While the Prometheus is away its last good answer counts, up to `max_age_s`; then 503, and KEDA's "
    "`fallback` acts. `SIZER_PROMETHEUS_URLS` lists the addresses that may be asked, `SIZER_PRIVATE_ADDRESSES=true` opens "
    "private networks.",
    parts=(
        (
            "load_from",
            Body(
                document={
                    "question": {
                        **DEPLOYED,
                        **LENGTHS,
                        "load_from": {
                            "prometheus_url": PROMETHEUS,
                            "query": "sum(rate(vllm:request_success_total[2m]))",
                            "cooldown_s": 600,
                            "max_age_s": 300,
                        },
                    }
                }
            ),
        ),
    ),
)

SHELL: Final = Section(
    title="Shell",
    words="GET and POST answer with the same bytes.",
    parts=(
        (
            "shell",
            Pasted(
                language="bash",
                lines=[
                    curl(url(f"{ASKED}/replicas", request_rate_per_s=38, field="replicas")),
                    curl(url(f"{ASKED}/size", format="text")),
                    curl(url("/size"), SMALL),
                ],
            ),
        ),
    ),
)

KEDA: Final = Section(
    title="KEDA",
    words="The number of pods is the metric, and one pod its divisor. Where there is no number the answer is 4xx, and "
    f"`fallback` acts. {TOLERATED}",
    parts=(
        (
            "keda_key",
            Manifest(
                document={
                    "apiVersion": "keda.sh/v1alpha1",
                    "kind": "TriggerAuthentication",
                    "metadata": {"name": "sizer"},
                    "spec": {"secretTargetRef": [{"parameter": "apiKey", "name": "sizer-key", "key": "key"}]},
                }
            ),
        ),
        (
            "keda",
            Manifest(
                document={
                    "apiVersion": "keda.sh/v1alpha1",
                    "kind": "ScaledObject",
                    "metadata": {"name": WORKLOAD},
                    "spec": {
                        "scaleTargetRef": {"name": WORKLOAD},
                        "pollingInterval": 30,
                        "cooldownPeriod": 600,
                        "minReplicaCount": 1,
                        "maxReplicaCount": 40,
                        "fallback": {"failureThreshold": 3, "replicas": 4},
                        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": EXACTLY}},
                        "triggers": [
                            {
                                "type": "metrics-api",
                                "metricType": "AverageValue",
                                "metadata": {
                                    "url": url(f"{ASKED}/replicas"),
                                    "valueLocation": "replicas",
                                    "targetValue": "1",
                                    "activationTargetValue": "0",
                                    "authMode": "apiKey",
                                    "method": "header",
                                    "keyParamName": "X-API-Key",
                                },
                                "authenticationRef": {"name": "sizer"},
                            }
                        ],
                    },
                }
            ),
        ),
    ),
)

MONITORED: Final = Section(
    title="Prometheus",
    words="Workloads are discovered, and probed as a blackbox is; `probe_success` is 0 where there is no number. "
    "The chart (`service/deploy/helm`) lets a Prometheus in that `alsoAllowedFrom` names.",
    parts=(
        (
            "scrape",
            Manifest(
                document={
                    "scrape_configs": [
                        {
                            "job_name": "sizer",
                            "metrics_path": "/probe",
                            "http_sd_configs": [{"url": url("/sd")}],
                            "relabel_configs": [
                                {"source_labels": ["__address__"], "target_label": "__param_target"},
                                {"source_labels": ["__address__"], "target_label": "instance"},
                                {"target_label": "__address__", "replacement": HOST},
                            ],
                        }
                    ]
                }
            ),
        ),
        (
            "monitor",
            Manifest(
                document={
                    "apiVersion": "monitoring.coreos.com/v1",
                    "kind": "ServiceMonitor",
                    "metadata": {"name": "sizer"},
                    "spec": {
                        "selector": {"matchLabels": {"app.kubernetes.io/name": "sizer"}},
                        "endpoints": [
                            {
                                "port": "http",
                                "path": "/probe",
                                "interval": "30s",
                                "honorLabels": True,
                                "params": {"target": [WORKLOAD]},
                            }
                        ],
                    },
                }
            ),
        ),
        (
            "rule",
            Manifest(
                document={
                    "apiVersion": "monitoring.coreos.com/v1",
                    "kind": "PrometheusRule",
                    "metadata": {"name": "sizer"},
                    "spec": {
                        "groups": [
                            {
                                "name": "sizer",
                                "rules": [
                                    {
                                        "alert": "WorkloadWithoutAnswer",
                                        "expr": 'max by (workload) (probe_success{job="sizer"}) == 0',
                                        "for": "10m",
                                        "labels": {"severity": "warning"},
                                        "annotations": {
                                            "summary": "{{ $labels.workload }} has no number of pods that carries its load"
                                        },
                                    },
                                    {
                                        "record": "workload:pods_missing",
                                        "expr": "max by (workload) (sizer_replicas) - on (workload) group_right max by (workload, namespace) ("
                                        'label_replace(kube_deployment_status_replicas, "workload", "$1", "deployment", "(.+)"))',
                                    },
                                ],
                            }
                        ]
                    },
                }
            ),
        ),
    ),
)

SECTIONS: Final = (
    NAMED, MEASURED, SHELL, KEDA, MONITORED, SCALED, ARGO, SHEETS, TERRAFORM, BATCHES, BOARDS, TRACED, PYTHON, LANGUAGES,
    KEYS,
)  # fmt: skip
