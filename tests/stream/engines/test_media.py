"""Media beside ids, in each server's own form; the servers are doubles written by their protocols, no real ones."""

from hashlib import sha256

import engine_doubles
import pytest
from engine_doubles import MODELS, PROPS, running
from pictures import data_url, png, wav

from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines.llama_server import LlamaServerEngine
from tokenweir.stream.engines.protocol import check_engine
from tokenweir.stream.engines.sglang import SglangEngine
from tokenweir.stream.engines.vllm import VllmEngine
from tokenweir.stream.events.media import Media, MediaPrompt
from tokenweir.stream.events.sampling import Sampling


def media(kind, data, media_type, part):
    digest = sha256(data).hexdigest()
    url = data_url(data, media_type)
    return Media(kind=kind, media_type=media_type, url=url, digest=digest, size=len(data), message=0, part=part)


IMAGE, SOUND = media("image", png(), "image/png", 0), media("audio", wav(), "audio/wav", 1)
REMOTE = Media(kind="image", media_type="", url="https://a/b", digest="0", size=0, message=0, part=0)
PROMPT = MediaPrompt(text="<s>a <image> b <audio>", media=(IMAGE, SOUND), places=((5, 12), (15, 22)), guarded=False)
SAMPLING = Sampling(max_tokens=3)
SIGHTED = PROPS | {"bos_token": "<s>", "modalities": {"vision": True, "audio": True}}


async def asked(engine, prompt=PROMPT):
    return [token_id async for step in engine.generate([1, 2], SAMPLING, media=prompt) for token_id in step.ids]


async def test_vllm_gets_content_parts():
    with running({"/inference/v1/generate": engine_doubles.vllm_generate, "/v1/models": MODELS}) as double:
        assert await asked(VllmEngine(double.url)) == [3, 4, 5]
    ((_, body),) = double.requests
    assert body["token_ids"] == [1, 2]
    assert body["content_parts"] == [
        {"type": "image_url", "url": IMAGE.url, "uuid": IMAGE.digest},
        {"type": "audio_url", "url": SOUND.url, "uuid": SOUND.digest},
    ]


async def test_vllm_without_generate_refuses_media():
    said = "takes no image beside ids without /inference/v1/generate"
    with (
        running({"/v1/completions": engine_doubles.vllm_completions, "/v1/models": MODELS}) as double,
        pytest.raises(EngineError, match=said) as refused,
    ):
        await asked(VllmEngine(double.url))
    assert refused.value.kind == "unsupported"
    assert [path for path, _ in double.requests] == ["/inference/v1/generate"]


async def test_sglang_gets_lists_by_kind():
    with running({"/generate": engine_doubles.sglang(True), "/v1/models": MODELS}) as double:
        assert await asked(SglangEngine(double.url)) == [3, 4, 5]
    ((_, body),) = double.requests
    assert (body["input_ids"], body["image_data"], body["audio_data"]) == ([1, 2], [IMAGE.url], [SOUND.url])
    assert "video_data" not in body


@pytest.fixture
def tokenizer():
    return Tokenizer.default()


def completion(body, endless):
    """`/completion` for a prompt of text and media: the answer begins with the id 66."""
    ids = body["prompt"] if isinstance(body["prompt"], list) else [65]
    yield from engine_doubles.llama({**body, "prompt": ids}, endless)


@pytest.mark.parametrize("marker", ["<__media__>", "<__media_5f3a__>"])
async def test_llama_server_gets_a_text_with_markers(tokenizer, marker):
    props = SIGHTED if marker == "<__media__>" else SIGHTED | {"media_marker": marker}
    with running({"/completion": completion, "/props": props}) as double:
        engine = LlamaServerEngine(double.url, tokenizer)
        assert len(await asked(engine)) == 3
        steps = [step async for step in engine.generate([1, 2], SAMPLING)]
    assert sum(len(step.ids) for step in steps) == 3
    (_, body), (_, plain) = double.requests
    assert body["prompt"] == {
        "prompt_string": f"a {marker} b {marker}",
        "multimodal_data": [IMAGE.base64, SOUND.base64],
    }
    assert plain["prompt"] == [1, 2]


@pytest.mark.parametrize(
    ("props", "prompt", "said"),
    [
        (PROPS, PROMPT, r"messages\[0\].content\[0\] is an image, and the model of llama-server takes no image"),
        (SIGHTED | {"modalities": {"vision": True}}, PROMPT, r"content\[1\] is an audio, .* takes no audio"),
        (SIGHTED, MediaPrompt(text="x", media=(IMAGE,), places=((0, 1),), guarded=True), "control tokens"),
        (
            SIGHTED,
            MediaPrompt(text="x", media=(REMOTE,), places=((0, 1),), guarded=False),
            "takes media in base64 only",
        ),
        (SIGHTED, MediaPrompt(text="x<__media__>", media=(IMAGE,), places=((0, 1),), guarded=False), "media marker"),
    ],
)
async def test_llama_server_refuses_what_it_would_read_otherwise(tokenizer, props, prompt, said):
    with (
        running({"/completion": completion, "/props": props}) as double,
        pytest.raises(EngineError, match=said) as refused,
    ):
        await asked(LlamaServerEngine(double.url, tokenizer), prompt)
    assert refused.value.kind == "unsupported"
    assert not double.requests


def test_kinds_of_media_are_checked():
    class Other:
        media = ("image", "smell")

        async def generate(self, prompt_ids, sampling, *, media=None):
            yield []

    with pytest.raises(ValueError, match=r"engine.media has 'smell'; kinds are image, audio, video"):
        check_engine(Other())
    Other.media = "image"
    with pytest.raises(TypeError, match="engine.media must be several kinds of media, not 'image'"):
        check_engine(Other())
