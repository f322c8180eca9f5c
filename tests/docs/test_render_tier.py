"""The page on a render tier: its manifests are read, and fit the command line and the server's paths."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import click
import httpx
import pytest

from tokenweir.cli import main

yaml = pytest.importorskip("yaml")

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "deploy" / "render-tier"
PAGE = (DOCS / "howto" / "render-tier.md").read_text("utf-8")
MANIFESTS = {path.name: list(yaml.safe_load_all(path.read_text("utf-8"))) for path in sorted(FOLDER.glob("*.yaml"))}


def test_the_page_names_every_manifest():
    assert {name for name in re.findall(r"`([\w-]+\.yaml)`", PAGE)} == set(MANIFESTS)


@pytest.mark.parametrize("name", [name for name in MANIFESTS if name != "ray.yaml"])
def test_an_object_has_a_kind_and_a_name(name):
    for each in MANIFESTS[name]:
        assert {"apiVersion", "kind", "metadata"} <= each.keys()
        assert each["metadata"]["name"]


def test_the_worker_is_one_that_the_command_line_starts(tmp_path):
    deployment, service = MANIFESTS["render.yaml"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    serve = main.commands["serve"]
    assert isinstance(serve, click.Command)
    model = tmp_path / "model"
    model.mkdir()
    given = serve.make_context("serve", [text.replace("/model", str(model)) for text in container["args"]]).params
    assert (given["engine"], given["model"]) == ("none:40960", "my-model")
    assert deployment["spec"]["selector"]["matchLabels"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert service["metadata"]["name"] in given["hosts"]


def plugins():
    (config,) = MANIFESTS["llm-d.yaml"]
    inner = yaml.safe_load(config["data"]["plugins.yaml"])
    return inner, {plugin["type"]: plugin.get("parameters", {}) for plugin in inner["plugins"]}


def test_the_router_asks_the_tier_of_its_model():
    inner, found = plugins()
    service = MANIFESTS["render.yaml"][1]
    port = service["spec"]["ports"][0]["port"]
    assert found["token-producer"]["vllm"]["url"] == f"http://{service['metadata']['name']}:{port}"
    used = {each["pluginRef"] for profile in inner["schedulingProfiles"] for each in profile["plugins"]}
    assert used <= set(found)
    pool, route = MANIFESTS["gateway.yaml"]
    assert route["spec"]["rules"][0]["backendRefs"][0]["name"] == pool["metadata"]["name"]


async def test_the_module_of_ray_answers_what_the_router_asks(data, monkeypatch):
    """Ray is a double that calls the builder, as a replica does."""
    made = []
    serve = ModuleType("ray.serve")
    serve.ingress = lambda builder: lambda cls: made.append(builder()) or cls
    serve.deployment = lambda cls: SimpleNamespace(name=cls.__name__, bind=lambda: cls)
    ray = ModuleType("ray")
    ray.serve = serve
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.serve", serve)
    (application,) = MANIFESTS["ray.yaml"][0]["applications"]
    for name, value in application["runtime_env"]["env_vars"].items():
        monkeypatch.setenv(name, value.replace("/model", str(data("tokenizers/qwen3"))))
    source = re.search(r"```\{code-block\} python\n(# render_tier\.py\n.*?)```", PAGE, re.DOTALL)[1]
    module = {}
    exec(compile(source, "render_tier.py", "exec"), module)  # noqa: S102
    attribute = application["import_path"].partition(":")[2]
    assert module[attribute].__name__ == application["deployments"][0]["name"]
    _, found = plugins()
    model = found["token-producer"]["modelName"]
    user = [{"role": "user", "content": "Hi"}]
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(made[0]), base_url="http://tokenweir-render:8000"
    ) as http:
        chat = (await http.post("/v1/chat/completions/render", json={"model": model, "messages": user})).json()
        message = {"model": model, "messages": user, "max_tokens": 10}
        messages = (await http.post("/v1/messages/render", json=message)).json()
        text = (await http.post("/v1/completions/render", json={"model": model, "prompt": "Hi"})).json()
        assert (await http.get("/ready")).status_code == 200
    assert chat["token_ids"] == messages["token_ids"]
    assert text[0]["token_ids"]
