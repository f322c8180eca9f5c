"""PromptBatcher under asyncio and trio; `Device` stands for a GPU and tells which batches it was given."""

from __future__ import annotations

import threading
import time
from contextlib import asynccontextmanager

import anyio
import numpy as np
import pytest
from anyio.lowlevel import checkpoint
from case_tables import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from shim_device import ShimDevice

from tokenweir.encode.errors import DeviceError, TextError
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.encode.values.encoded import Ragged
from tokenweir.gpu import GpuEncoder
from tokenweir.gpu.encoder import MODES
from tokenweir.gpu.kernels import kernel_sources
from tokenweir.stream.prompts.batching import batcher as batcher_module
from tokenweir.stream.prompts.batching.batcher import PromptBatcher
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.prompt import Prompt

CASES = cases(__file__)

TEXTS = ["Hello world", "", "boxes", "日本 👩", "Question: a<eos>b"]
TEMPLATE = "{% for m in messages %}{{ m.content }}<eos>{% endfor %}"
RENDERED = ChatTemplate(TEMPLATE, control_tokens=["<eos>", "<skip>"]).render(
    [{"role": "user", "content": "a<eos>日本"}]
)

pytestmark = pytest.mark.anyio


class Device:
    """Encodes as a tokenizer does, slowly if asked to, and fails for batches with a given text.

    Attributes:
        batches: The prompts of each call.
        gate: Calls wait for it.

    """

    def __init__(self, tok, *, fails_on=None, open_gate=True):
        self.tok = tok
        self.fails_on = fails_on
        self.batches = []
        self.gate = threading.Event()
        if open_gate:
            self.gate.set()

    @property
    def sizes(self):
        return [len(batch) for batch in self.batches]

    @property
    def together(self):
        """The batches as sets: trio starts tasks in any order."""
        return [set(batch) for batch in self.batches]

    def encode_batch(self, prompts):
        self.batches.append(list(prompts))
        assert self.gate.wait(5)
        if self.fails_on in prompts:
            raise DeviceError(f"cannot encode {self.fails_on}")
        rows = [ids_of(self.tok, prompt) for prompt in prompts]
        offsets = np.cumsum([0, *map(len, rows)])
        return OnDevice(Ragged(np.array([token_id for row in rows for token_id in row], dtype=np.int32), offsets))


class OnDevice:
    def __init__(self, ragged):
        self.to_host = lambda: ragged


class Crowd:
    """Tasks that encode a prompt each, and what became of them."""

    def __init__(self, batcher, tasks):
        self.batcher = batcher
        self.tasks = tasks
        self.outcomes = {}

    async def call(self, *prompts):
        """Start a task a prompt; returns when all wait for something."""
        for prompt in prompts:
            self.tasks.start_soon(self._one, prompt)
        await anyio.wait_all_tasks_blocked()

    async def _one(self, prompt):
        try:
            self.outcomes[prompt] = (await self.batcher.encode(prompt)).tolist()
        except Exception as error:  # noqa: BLE001
            self.outcomes[prompt] = error


@asynccontextmanager
async def crowd(encoder, **options):
    """A batcher and its callers; the callers outlive the batcher."""
    async with anyio.create_task_group() as tasks, PromptBatcher(encoder, **options) as batcher:
        yield Crowd(batcher, tasks)


def ids_of(tok, prompt):
    return prompt.encode(tok) if isinstance(prompt, Prompt) else tok.encode(prompt)


def all_ids(tok, prompts):
    return {prompt: ids_of(tok, prompt) for prompt in prompts}


# -- the same ids ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["tokenizer", "device", "both", "device for all"])
async def test_ids_are_those_of_encode_and_of_prompt_encode(tok, way):
    prompts = [*TEXTS, RENDERED, Prompt("Hello<eos>"), Prompt("")]
    encoder = tok if way == "tokenizer" else Device(tok)
    options = {"both": {"cpu": tok, "crossover": 40}, "device for all": {"cpu": tok, "crossover": 0}}.get(way, {})
    async with crowd(encoder, max_batch=3, **options) as callers:
        await callers.call(*prompts)
    assert callers.outcomes == all_ids(tok, prompts)
    assert RENDERED.encode(tok) != tok.encode(RENDERED.text)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(TEXTS), unique=True, max_size=20))
@settings(max_examples=10)
def test_any_texts(tok, texts):
    async def main():
        async with crowd(Device(tok), cpu=tok, crossover=50, max_batch=7) as callers:
            await callers.call(*texts)
        assert callers.outcomes == all_ids(tok, texts)

    anyio.run(main)


@pytest.mark.parametrize("mode", MODES)
async def test_over_the_encoder_of_a_gpu(mode):
    gpu = GpuEncoder(Tokenizer.default(), mode=mode, device=ShimDevice(kernel_sources()), min_bytes=0, replay=False)
    prompts = ["a", *TEXTS, RENDERED, "Hello boxes<eos> 日本"]
    async with crowd(gpu, crossover=5, max_batch=4) as callers:
        await callers.call(*prompts, "b\ud800")
    assert type(callers.outcomes.pop("b\ud800")) is TextError
    assert callers.outcomes == all_ids(gpu.tokenizer, prompts)
    assert gpu.stats.documents > 0
    async with PromptBatcher(gpu, crossover=1000) as batcher:
        assert (await batcher.encode("a")).tolist() == gpu.tokenizer.encode("a")
        assert batcher.cpu_batches == 1


async def test_ids_are_an_array_of_their_own(tok):
    async with PromptBatcher(Device(tok)) as batcher:
        ids = await batcher.encode("Hello world")
        assert ids.dtype == np.int32
        assert ids.base is None  # a view would keep the whole batch alive


async def test_it_needs_no_thread_that_others_keep_busy(tok):
    threads = anyio.to_thread.current_default_thread_limiter()
    async with PromptBatcher(tok) as batcher:
        for place in range(int(threads.total_tokens)):
            await threads.acquire_on_behalf_of(place)
        with anyio.fail_after(20):
            assert (await batcher.encode("a")).tolist() == [97]
        for place in range(int(threads.total_tokens)):
            threads.release_on_behalf_of(place)


# -- what becomes a batch ----------------------------------------------------------------------------------------------


async def test_callers_that_come_back_at_once_stay_together(tok):
    device = Device(tok)
    async with PromptBatcher(device) as batcher:

        async def caller(name):
            for number in range(5):
                await batcher.encode(f"{name}{number}")

        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(caller, name)
    assert device.sizes == [3] * 5


async def test_batches_are_bounded_in_prompts_and_characters(tok, monkeypatch):
    monkeypatch.setattr(batcher_module, "BATCH_CHARACTERS", 10)
    device = Device(tok, open_gate=False)
    async with crowd(device, max_batch=4) as callers:
        for text in ("a" * 10, "b" * 9, "c", *"defgh", "i" * 40):
            await callers.call(text)
        device.gate.set()
    assert device.batches == [["a" * 10], ["b" * 9, "c"], ["d", "e", "f", "g"], ["h", "i" * 40]]


async def test_a_lone_caller_never_waits_for_others(tok):
    with anyio.fail_after(20):
        async with PromptBatcher(tok, max_delay=60) as batcher:
            for text in TEXTS:
                assert (await batcher.encode(text)).tolist() == tok.encode(text)


async def test_where_there_were_others_a_prompt_waits_for_them(tok):
    device = Device(tok)
    with anyio.fail_after(20):
        async with crowd(device, max_delay=60, max_batch=3) as callers:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(callers.batcher.encode, "a")
                tasks.start_soon(callers.batcher.encode, "b")
            await callers.call("c", "d")
            await callers.batcher.encode("e")  # a full batch waits no longer, and neither does the last
            await callers.call("f")
        assert device.together == [{"a", "b"}, {"c", "d", "e"}, {"f"}]


async def test_who_waits_for_others_may_leave(tok):
    with anyio.fail_after(20):
        async with PromptBatcher(tok, max_delay=0.01) as batcher:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(batcher.encode, "a")
                tasks.start_soon(batcher.encode, "b")
            with anyio.move_on_after(0.001):
                await batcher.encode("c")
            await anyio.sleep(0.02)
            assert (await batcher.encode("d")).tolist() == [100]


async def test_they_wait_no_longer_than_max_delay(tok):
    device = Device(tok)
    with anyio.fail_after(20):
        async with PromptBatcher(device, max_delay=0.01) as batcher:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(batcher.encode, "a")
                tasks.start_soon(batcher.encode, "b")
            await batcher.encode("c")
    assert device.together == [{"a", "b"}, {"c"}]


async def test_small_batches_go_to_the_tokenizer(tok):
    device = Device(tok)
    async with PromptBatcher(device, cpu=tok, crossover=10) as batcher:
        for text in ("a" * 9, "日本本", "a" * 10, "日本本本"):
            assert (await batcher.encode(text)).tolist() == tok.encode(text)
        assert device.batches == [["a" * 10], ["日本本本"]]
        assert (batcher.batches, batcher.cpu_batches, batcher.failed_batches) == (4, 2, 0)


@pytest.mark.parametrize("given", ["nothing", "own", "other", "a stranger's"])
async def test_an_encoder_that_has_a_tokenizer_leaves_small_batches_to_it(tok, make_tok, given):
    device = Device(tok)
    device.tokenizer = object() if given == "a stranger's" else tok
    options = {"own": {"cpu": tok}, "other": {"cpu": make_tok(AddedToken("<x>"))}}.get(given, {})
    async with PromptBatcher(device, crossover=10, **options) as batcher:
        for text in ("a", "<x>", "a" * 10):
            tokenizer = options.get("cpu", tok) if len(text) < 10 else tok
            assert (await batcher.encode(text)).tolist() == tokenizer.encode(text)
    assert device.batches == [["a"], ["<x>"], ["a" * 10]][0 if given == "a stranger's" else 2 :]


async def test_the_crossover_is_measured_where_there_is_a_choice(tok, monkeypatch):
    asked = []

    def measure(encoder, cpu):
        asked.append((encoder, cpu))
        return 4.0

    monkeypatch.setattr(batcher_module, "measure_crossover", measure)
    device = Device(tok)
    async with PromptBatcher(tok), PromptBatcher(device), PromptBatcher(device, cpu=tok, crossover=0):
        assert asked == []
    async with PromptBatcher(device, cpu=tok) as batcher:
        assert (asked, batcher.crossover) == ([(device, tok)], 4)
        await batcher.encode("abc")
        await batcher.encode("abcd")
    assert device.batches == [["abcd"]]


# -- errors go to their own prompt -------------------------------------------------------------------------------------


@pytest.mark.parametrize("crossover", [0, 1000])
async def test_a_bad_prompt_harms_no_other(make_tok, crossover, caplog):
    tok = make_tok(AddedToken("{{end}}", special=True))
    bad = {"b\ud800": TextError, 5: TypeError}
    async with crowd(Device(tok), cpu=tok, crossover=crossover) as callers:
        await callers.call("a", *bad, Prompt("<eos>", guarded=(0,)), *"cd")
    for prompt, error in bad.items():
        assert type(callers.outcomes.pop(prompt)) is error
    assert callers.outcomes == all_ids(tok, ["a", Prompt("<eos>", guarded=(0,)), *"cd"])
    assert caplog.records == []  # each failure has its reason, and its caller knows it


@pytest.mark.parametrize("crossover", [0, 1000])
async def test_prompts_are_guarded_against_the_tokenizers_own_tokens(make_tok, crossover):
    tok = make_tok(AddedToken("{{end}}", special=True))
    prompt = ChatTemplate("{{ messages[0].content }}").render([{"role": "user", "content": "{{end}}"}])
    async with PromptBatcher(tok, cpu=tok, crossover=crossover) as batcher:
        assert (await batcher.encode(prompt)).tolist() == list(b"{{end}}")


async def test_errors_name_what_is_wrong(tok):
    async with PromptBatcher(tok) as batcher:
        with pytest.raises(TextError, match=r"^text has a lone surrogate U\+D800 at character 1$"):
            await batcher.encode("b\ud800")
        with pytest.raises(TypeError, match="^a prompt must be str or Prompt, not bytes$"):
            await batcher.encode(b"b")
        assert (await batcher.encode("a")).tolist() == [97]


async def test_without_a_tokenizer_the_encoder_itself_tells_which_prompt_is_bad(tok):
    device = Device(tok, fails_on="c")
    async with crowd(device) as callers:
        await callers.call(*"abcd")
    assert str(callers.outcomes.pop("c")) == "cannot encode c"
    assert callers.outcomes == all_ids(tok, "abd")
    assert device.sizes == [4, 1, 1, 1, 1]


class Dead:
    def encode_batch(self, prompts):
        raise DeviceError("the GPU has fallen off the bus")


class Short:
    def encode_batch(self, prompts):
        return [np.zeros(1, np.int32)]


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (Dead(), "DeviceError: the GPU has fallen off the bus"),
        (Short(), "RuntimeError: Short.encode_batch() gave 1 for 2 prompts"),
    ],
)
async def test_an_encoder_that_dies_leaves_the_tokenizer(tok, encoder, message, caplog):
    async with crowd(encoder, cpu=tok, crossover=0) as callers:
        await callers.call("a", RENDERED)
        await callers.call("c", "d")
    assert callers.outcomes == all_ids(tok, ["a", RENDERED, "c", "d"])
    assert callers.batcher.failed_batches == 2
    expected = f"a batch of 2 prompts failed, each of which can be encoded alone: {message}"
    assert [record.getMessage() for record in caplog.records] == [expected] * 2


async def test_an_encoder_that_dies_alone_fails_every_caller(tok):
    async with crowd(Dead()) as callers:
        await callers.call("a", "b")
        await callers.call("c")
    assert {type(error) for error in callers.outcomes.values()} == {DeviceError}
    assert len(callers.outcomes) == 3


async def test_a_batch_that_gets_no_thread_fails_alone(tok, monkeypatch):
    async def no_thread(*args, **options):
        raise RuntimeError("can't start new thread")

    async with PromptBatcher(tok) as batcher:
        with monkeypatch.context() as patch:
            patch.setattr(batcher_module.to_thread, "run_sync", no_thread)
            with pytest.raises(RuntimeError, match="^can't start new thread$"):
                await batcher.encode("a")
        assert (await batcher.encode("a")).tolist() == [97]


# -- cancellation ------------------------------------------------------------------------------------------------------


async def test_who_is_cancelled_leaves_the_line(tok):
    device = Device(tok, open_gate=False)
    async with crowd(device) as callers:
        await callers.call("first")
        with anyio.CancelScope() as scope:
            callers.tasks.start_soon(_cancel_once_blocked, scope)
            await callers.batcher.encode("second")
        await callers.call("third")
        device.gate.set()
    assert device.batches == [["first"], ["third"]]
    assert callers.outcomes == all_ids(tok, ["first", "third"])


async def _cancel_once_blocked(scope):
    await anyio.wait_all_tasks_blocked()
    scope.cancel()


@pytest.mark.parametrize("steps", range(12))
@pytest.mark.parametrize("options", [{}, {"max_waiting": 2}, {"max_delay": 0.005}], ids=str)
async def test_a_caller_cancelled_after_any_number_of_steps(tok, steps, options):
    texts = ["one", "two", "three"]
    async with crowd(tok, **options) as callers:
        for _ in range(2):  # the second time with what the first one left behind

            async def victim(scope):
                with scope:
                    await callers.batcher.encode("victim")

            scope = anyio.CancelScope()
            for number, text in enumerate(texts):
                callers.tasks.start_soon(callers._one, text)
                if number == 1:
                    callers.tasks.start_soon(victim, scope)
            for _ in range(steps):
                await checkpoint()
            scope.cancel()
        await callers.call("after")
    assert callers.outcomes == all_ids(tok, [*texts, "after"])
    assert not callers.batcher._line


@pytest.mark.parametrize("steps", range(16))
@pytest.mark.parametrize("options", [{}, {"max_waiting": 2}, {"crossover": None}], ids=str)
async def test_a_batcher_cancelled_after_any_number_of_steps(tok, steps, options, monkeypatch):
    """Its callers, who live on, have their ids or are told; none waits for ever."""
    monkeypatch.setattr(batcher_module, "measure_crossover", lambda encoder, cpu: time.sleep(0.001) or 5.0)
    outcomes = {}

    async def one(batcher, text):
        try:
            outcomes[text] = (await batcher.encode(text)).tolist()
        except RuntimeError as error:
            outcomes[text] = str(error)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as scope:

                async def cancel():
                    for _ in range(steps):
                        await checkpoint()
                    scope.cancel()

                tasks.start_soon(cancel)
                device = Device(tok)
                async with PromptBatcher(
                    device, **({"cpu": tok} if "crossover" in options else {}), **options
                ) as batcher:
                    for text in TEXTS:
                        tasks.start_soon(one, batcher, text)
                    await anyio.sleep_forever()
    for text, outcome in outcomes.items():
        assert outcome in (
            tok.encode(text),
            "the PromptBatcher was left by an exception before this prompt was encoded",
            "the PromptBatcher is not open: prompts are encoded inside its `async with`",
        )


# -- bounds, and the end -----------------------------------------------------------------------------------------------


async def test_no_more_than_max_waiting_are_in_line_or_encoded(tok):
    device = Device(tok, open_gate=False)
    async with crowd(device, max_waiting=3) as callers:
        for digit in "0123456":
            await callers.call(digit)
        assert len(callers.batcher._line) == 2
        device.gate.set()
    assert callers.outcomes == all_ids(tok, "0123456")
    assert sorted(prompt for batch in device.batches for prompt in batch) == list("0123456")
    assert device.batches[0] == ["0"]
    assert max(device.sizes) <= 3


async def test_leaving_finishes_what_waits(tok):
    device = Device(tok, open_gate=False)
    async with crowd(device, max_batch=2, max_waiting=4, max_delay=60) as callers:
        await callers.call(*"abcdefg")
        callers.tasks.start_soon(_open_once_blocked, device)
    assert callers.outcomes == all_ids(tok, "abcdefg")


async def _open_once_blocked(device):
    await anyio.wait_all_tasks_blocked()
    device.gate.set()


async def test_leaving_by_an_exception_cuts_off_what_is_in_line(tok):
    device = Device(tok, open_gate=False)
    async with anyio.create_task_group() as tasks:
        with pytest.raises(LookupError, match="^mine$"):  # and not in a group
            async with PromptBatcher(device, max_waiting=3) as batcher:
                callers = Crowd(batcher, tasks)
                await callers.call("under way")
                await callers.call("in line", "in line too", "waits for room")
                tasks.start_soon(_open_once_blocked, device)
                raise LookupError("mine")
    assert callers.outcomes.pop("under way") == tok.encode("under way")
    assert {str(error) for error in callers.outcomes.values()} == {
        "the PromptBatcher was left by an exception before this prompt was encoded"
    }
    assert len(callers.outcomes) == 3
    assert device.batches == [["under way"]]


async def test_only_inside_its_context_and_only_once(tok):
    batcher = PromptBatcher(tok)
    closed = "^the PromptBatcher is not open: prompts are encoded inside its `async with`$"
    with pytest.raises(RuntimeError, match=closed):
        await batcher.encode("a")
    async with batcher:
        assert (await batcher.encode("a")).tolist() == [97]
    with pytest.raises(RuntimeError, match=closed):
        await batcher.encode("a")
    with pytest.raises(RuntimeError, match="^a PromptBatcher is entered once$"):
        async with batcher:
            pass


@pytest.mark.parametrize(("options", "message"), CASES["options_that_cannot_be"])
def test_options_that_cannot_be(tok, options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        PromptBatcher(tok, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": 5}, r"an encoder has encode_batch\(\) or an async encode\(\), and int has neither"),
        ({"encoder": None}, r"a PromptBatcher's encoder has encode_batch\(\), and NoneType has none"),
        ({"encoder": Tokenizer}, "encoder is the class Tokenizer itself, not one of its objects"),
        ({"cpu": 5}, r"cpu is a int, not a Tokenizer such as Tokenizer.from_file\(\) gives"),
    ],
)
def test_arguments_of_a_wrong_type(tok, options, message):
    with pytest.raises(TypeError, match=f"^{message}$"):
        PromptBatcher(**({"encoder": tok} | options))
