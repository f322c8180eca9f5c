"""`--engine`: what answers, and whose tokenizer and template it speaks."""

from __future__ import annotations

import shutil
from functools import partial

import click
import pytest
from case_tables import cases
from commands import EMBEDDED, run
from engine_doubles import running

from tokenweir.cli.model import load_model
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)

ANSWER = "It is 👩‍🚀, done."


chat = partial(run, "chat", stdin="hi\n")


@pytest.fixture(scope="module")
def served(data):
    """Doubles that have loaded the tokenizer of Qwen3, and say so."""
    folder = data("tokenizers/qwen3/tokenizer.json").parent
    ids = Tokenizer.from_file(folder).encode(ANSWER)
    seen = []

    def vllm(body, endless):
        seen.append(body["prompt"])
        yield {"choices": [{"index": 0, "token_ids": ids, "finish_reason": "stop"}]}

    def sglang(body, endless):
        seen.append(body["input_ids"])
        meta = {"completion_tokens": len(ids), "finish_reason": {"type": "stop"}}
        yield {"output_ids": ids, "meta_info": meta}

    def llama(body, endless):
        seen.append(body["prompt"])
        last = {"content": ANSWER, "tokens": ids[-1:], "tokens_predicted": len(ids)}  # the others are lost
        yield last
        yield {"content": "", "tokens": [], "tokens_predicted": len(ids), "stop": True, "stop_type": "limit"}

    models = {"data": [{"id": "qwen", "root": str(folder), "max_model_len": 900}]}
    template = "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}"
    props = {"model_path": str(folder), "chat_template": template, "default_generation_settings": {"n_ctx": 900}}
    routes = {"/v1/completions": vllm, "/generate": sglang, "/completion": llama, "/v1/models": models, "/props": props}
    with running(routes) as double:
        double.prompts = seen
        double.folder = folder
        yield double


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama-server"])
def test_an_engine_behind_a_url_brings_its_tokenizer_and_template(served, kind):
    result = chat(f"--engine={kind}:{served.url}", "--engine-key=secret")
    assert (result.exit_code, result.stdout) == (0, f"{ANSWER}\n")
    tok = Tokenizer.from_file(served.folder)
    prompt = tok.decode(served.prompts[-1], skip_special_tokens=False)
    assert prompt.startswith("<|im_start|>hi<|im_end|>" if kind == "llama-server" else "<|im_start|>user\nhi<|im_end|>")
    assert served.headers[-1]["authorization"] == "Bearer secret"


@pytest.mark.parametrize("spec", ["vllm", "sglang", "none"])
def test_a_server_may_apply_schemas_behind_the_thinking(served, spec):
    spec = spec if spec == "none" else f"{spec}:{served.url}"
    assert load_model(spec, None, None, thinks_first=True).engine.thinks_first
    assert not load_model(spec, None, None).engine.thinks_first


@pytest.mark.parametrize("spec", [None, "local", "ngram", "llama-server:http://127.0.0.1:9"])
def test_other_engines_apply_schemas_from_the_first_id(spec):
    with pytest.raises(click.UsageError, match="^--thinks-first is for vllm, sglang and none; "):
        load_model(spec, None, None, thinks_first=True)


def test_the_options_come_before_what_the_server_tells(served, tmp_path):
    template = tmp_path / "template.jinja"
    template.write_text("say:{{ messages[0].content }}")
    result = chat(f"--engine=llama-server:{served.url}", f"--template={template}", f"--tokenizer={served.folder}")
    assert result.stdout == f"{ANSWER}\n"
    assert Tokenizer.from_file(served.folder).decode(served.prompts[-1]) == "say:hi"


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"data": []}, "does not tell its tokenizer: give --tokenizer"),
        ({"data": [{"id": "org/model"}]}, "has loaded org/model, which is not on this machine: give its --tokenizer"),
    ],
)
def test_a_server_whose_tokenizer_is_elsewhere(models, message):
    with running({"/v1/models": models}) as double:
        result = chat(f"--engine=vllm:{double.url}")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(("engine", "code", "message"), CASES["what_is_no_engine"])
def test_what_is_no_engine(engine, code, message):
    result = chat(f"--engine={engine}")
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())


@pytest.fixture
def model_alone(tiny_model, tmp_path):
    """A model's folder without a tokenizer; the model knows the embedded vocabulary only."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("model.bin", "config.json", "vocabulary.json"):
        shutil.copy(tiny_model / name, folder / name)
    return folder


@pytest.mark.parametrize("file", ["qwen3/tokenizer.json", "openai/cl100k_base.tiktoken"])
def test_a_folder_with_a_tokenizer_brings_it(model_alone, data, file):
    """A larger vocabulary has been loaded if the model has not its ids."""
    shutil.copy(data(f"tokenizers/{file}"), model_alone)
    template = model_alone / "chat_template.jinja"
    template.write_text("{{ messages[0].content }} 中文", "utf-8")
    result = chat(f"--engine=ctranslate2:{model_alone}", f"--template={template}", "--max-tokens=1")
    assert result.exit_code == 1
    assert "is outside the model's vocabulary of 8192" in result.stderr


def test_a_folder_without_a_tokenizer_needs_one(model_alone):
    result = chat(f"--engine=ctranslate2:{model_alone}", "--max-tokens=1")
    assert result.exit_code == 2
    assert "no tokenizer.json, tekken.json, SentencePiece, rank or GGUF file in this folder: give --tokenizer" in (
        " ".join(result.stderr.split())
    )
    assert chat(f"--engine=ctranslate2:{model_alone}", f"--tokenizer={EMBEDDED}", "--max-tokens=1").exit_code == 0
