"""More of what stands on the page of examples: the adapter, deployers, sheets, programs, keys."""

from typing import Final

from tests.workloads.page import (
    ASKED,
    KEY_SHOWN,
    LARGE,
    QUESTIONS_FILE,
    SERVER,
    SMALL,
    WORKLOAD,
    Manifest,
    Pasted,
    Section,
    Table,
    curl,
    flags,
    url,
)  # fmt: skip

# kubernetes/kubernetes `pkg/controller/podautoscaler/replica_calculator.go`, and KEP-4951: beta since Kubernetes 1.35.
EXACTLY: Final = {"scaleUp": {"tolerance": 0}, "scaleDown": {"tolerance": 0}}
TOLERATED: Final = (
    "An autoscaler leaves alone what is within 10 % of its number, so that from ten pods on one more would not come; "
    "`tolerance: 0` has it follow exactly. It needs Kubernetes 1.35, or the feature gate `HPAConfigurableTolerance` since "
    "1.33; an older one ignores it, and may stay up to a tenth of the pods below."
)

SCALED: Final = Section(
    title="Horizontal Pod Autoscaler, through the Prometheus adapter",
    words="The adapter reads the series that the probe above stores. Every pod of Sizer is probed, and each stores the "
    "same number; an autoscaler adds what it is told, so the adapter's rule tells the largest. Its `tolerance` is as with "
    "KEDA above.",
    parts=(
        (
            "adapter",
            Manifest(
                document={
                    "externalRules": [
                        {
                            "seriesQuery": "sizer_replicas",
                            "resources": {"namespaced": False},
                            "metricsQuery": "max by (workload) (<<.Series>>{<<.LabelMatchers>>})",
                        }
                    ]
                }
            ),
        ),
        (
            "hpa",
            Manifest(
                document={
                    "apiVersion": "autoscaling/v2",
                    "kind": "HorizontalPodAutoscaler",
                    "metadata": {"name": WORKLOAD},
                    "spec": {
                        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": WORKLOAD},
                        "minReplicas": 1,
                        "maxReplicas": 40,
                        "behavior": EXACTLY,
                        "metrics": [
                            {
                                "type": "External",
                                "external": {
                                    "metric": {
                                        "name": "sizer_replicas",
                                        "selector": {"matchLabels": {"workload": WORKLOAD}},
                                    },
                                    "target": {"type": "AverageValue", "averageValue": "1"},
                                },
                            }
                        ],
                    },
                }
            ),
        ),
    ),
)

ARGO: Final = Section(
    title="Argo CD",
    words="Its plugin generator asks; one workload without a number refuses the whole list, so that nothing is pruned.",
    parts=(
        (
            "applications",
            Manifest(
                document={
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "ApplicationSet",
                    "metadata": {"name": "inference"},
                    "spec": {
                        "goTemplate": True,
                        "generators": [
                            {
                                "plugin": {
                                    "configMapRef": {"name": "sizer"},
                                    "input": {"parameters": {"workload": WORKLOAD}},
                                    "requeueAfterSeconds": 300,
                                }
                            }
                        ],
                        "template": {
                            "metadata": {"name": "{{ .workload }}"},
                            "spec": {
                                "project": "default",
                                "destination": {"server": "https://kubernetes.default.svc", "namespace": "inference"},
                                "source": {
                                    "repoURL": "https://git.example.com/inference.git",
                                    "path": "charts/vllm",
                                    "helm": {
                                        "parameters": [
                                            {"name": "replicaCount", "value": "{{ .replicas }}"},
                                            {"name": "engineArgs", "value": "{{ .engine_args }}"},
                                        ]
                                    },
                                },
                            },
                        },
                    },
                }
            ),
        ),
        (
            "plugin",
            Manifest(
                document={
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "sizer"},
                    "data": {"token": "$sizer:key", "baseUrl": SERVER, "requestTimeout": "30"},
                }
            ),
        ),
    ),
)

SHEETS: Final = Section(
    title="Spreadsheets",
    words="One number, or a table, by its address alone.",
    parts=(
        (
            "sheets",
            Pasted(
                language="text",
                lines=[
                    f'=IMPORTDATA("{url(f"{ASKED}/recommend", limit=5, format="csv")}")',
                    f'=IMPORTDATA("{url("/catalog/offers", gpu="h100-sxm-80gb", format="csv")}")',
                    f'=WEBSERVICE("{url(f"{ASKED}/size", field="gpus")}")',
                ],
            ),
        ),
    ),
)

TERRAFORM: Final = Section(
    title="Terraform",
    words="A question without an answer fails the plan with its reason.",
    parts=(
        (
            "terraform",
            Pasted(
                language="hcl",
                lines=[
                    f'data "http" "{WORKLOAD}" {{',
                    f'  url = "{url(f"{ASKED}/replicas")}"',
                    "  request_headers = {",
                    '    Accept = "application/json"',
                    "  }",
                    "  lifecycle {",
                    "    postcondition {",
                    "      condition     = self.status_code == 200",
                    "      error_message = jsondecode(self.response_body).detail",
                    "    }",
                    "  }",
                    "}",
                    "",
                    'output "replicas" {',
                    f"  value = jsondecode(data.http.{WORKLOAD}.response_body).replicas",
                    "}",
                ],
            ),
        ),
    ),
)

BATCHES: Final = Section(
    title="Many questions at once",
    words="Answers come in order, each with its own success or problem; with `Accept: application/x-ndjson` as they are "
    "known.",
    parts=(
        ("batch", Pasted(language="bash", lines=[curl(url("/size:batch"), {"questions": [SMALL]})])),
        ("questions", Table(rows=[SMALL, LARGE])),
        (
            "batch_of_rows",
            Pasted(
                language="bash",
                lines=[
                    curl(url("/size:batch"), options=f"-H 'content-type: text/csv' --data-binary @{QUESTIONS_FILE}")
                ],
            ),
        ),
        (
            "A running service may be asked from the command line: a table in a terminal, the plain answer where it is piped. "
            "It leaves with 2 where a question is refused, 3 where it has no number, and 4 where some of a batch were not "
            "answered."
        ),
        (
            "commands",
            Pasted(
                language="bash",
                lines=[
                    f"sizer --server {SERVER} size {flags(SMALL)}",
                    f"sizer --server {SERVER} batch size {QUESTIONS_FILE} --format csv",
                ],
            ),
        ),
    ),
)

BOARDS: Final = Section(
    title="Grafana, Backstage",
    words="`openapi/grafana` has a datasource and a dashboard for the Infinity plugin, to be provisioned; "
    f"`openapi/catalog-info.yaml` is for Backstage, beside `SIZER_PUBLIC_URL={SERVER}`, which makes the contract's servers "
    "absolute.",
)

TRACED: Final = Section(
    title="OpenTelemetry",
    words="A span for each request, part of its caller's trace (`traceparent`); needs the extra `otel`, which the image has. Kept answers then "
    "take the long way, too.",
    parts=(("traces", Pasted(language="bash", lines=["export SIZER_OTLP_ENDPOINT=http://collector:4318/v1/traces"])),),
)

PYTHON: Final = Section(
    title="Python",
    words="`service/client.py`, blocking (`Client`) or not (`AsyncClient`); asks again on 429 and 503 alone, when it is told "
    'to. `ask_as(Sizing, "size", ...)` answers with the engine\'s own type (`service.engine.answers.results`).',
    parts=(
        (
            "python",
            Pasted(
                language="python",
                lines=[
                    "from service.client import Client",
                    "",
                    f'with Client("{SERVER}", key="{KEY_SHOWN}") as client:',
                    f'    pods = client.ask_about("{WORKLOAD}", "replicas", request_rate_per_s=38)["replicas"]',
                ],
            ),
        ),
    ),
)

LANGUAGES: Final = Section(
    title="Other languages",
    words="`openapi/openapi.json` has no error of spectral's or redocly's (`make lint-openapi`); generated clients ask "
    "(`tests/contract`).",
    parts=(
        (
            "clients",
            Pasted(
                language="bash",
                lines=[
                    f"openapi-python-client generate --url {url('/openapi.json')}",
                    f"openapi-typescript {url('/openapi.json')} --default-non-nullable false -o sizer.ts",
                ],
            ),
        ),
    ),
)

KEYS: Final = Section(
    title="Keys",
    words="Shown once, hashed at rest. `read` < `write` < `admin`; reads are open unless `SIZER_READS_NEED_KEY=true`.",
    parts=(
        (
            "keys",
            Pasted(
                language="bash",
                lines=[
                    'sizer keys create "keda of production" --scope read --days 365',
                    "sizer keys list",
                    "sizer keys revoke 0123456789ab",
                ],
            ),
        ),
        (
            "Tokens of an OpenID provider are keys as well: signed by it, for `SIZER_OIDC_AUDIENCE`, with `sizer:read`, "
            "`sizer:write` or `sizer:admin` in their `scope`."
        ),
        (
            "tokens",
            Pasted(
                language="bash",
                lines=["export SIZER_OIDC_ISSUER=https://login.example.com SIZER_OIDC_AUDIENCE=sizer"],
            ),
        ),
    ),
)
