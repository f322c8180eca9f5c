"""The calls of encode and encode_array that the core does by itself: they give what the functions in Python give."""

from __future__ import annotations

import functools
import gc
import inspect
import pickle
import sys
import weakref

import numpy as np
import pytest
from msgspec.structs import replace

from tokenweir.encode import _core
from tokenweir.encode.errors import TextError
from tokenweir.encode.spec import SpecialTokenIds, TemplateProcessing
from tokenweir.encode.tokenizer import Tokenizer

TEXTS = ["", "Hi", "a" * 5000, "<s>a</s>", "日本 é\n", "\U0001f600", "x<s>"]
USUAL = [
    {},
    {"parse_special": True},
    {"parse_special": False},
    {"add_special_tokens": False},
    {"parse_special": False, "add_special_tokens": True},
    {"add_special_tokens": False, "parse_special": False},
]
UNUSUAL = [{"guarded": [0]}, {"add_bos": False}, {"add_eos": True, "parse_special": False}]


@pytest.fixture(scope="module")
def tok(small):
    """With <s> before every text and </s> after it."""
    plain = small(added=[{"content": "<s>", "special": True}, {"content": "</s>", "special": True}])
    template = TemplateProcessing(
        single=({"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}),
        special_tokens={name: SpecialTokenIds(name, (plain.token_to_id(name),)) for name in ("<s>", "</s>")},
    )
    roles = {"bos_token": "<s>", "eos_token": "</s>"}
    return Tokenizer.from_spec(replace(plain.spec, post_processor=template, special_roles=roles))


def functions_called(work):
    """The names of the functions in Python that `work` calls."""
    names = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize("options", USUAL + UNUSUAL)
@pytest.mark.parametrize("text", TEXTS)
def test_the_ids_of_the_function(tok, text, options):
    if "guarded" in options:
        options = {"guarded": options["guarded"][: len(text)]}
    expected = Tokenizer.encode.__wrapped__(tok, text, **options)
    assert tok.encode(text, **options) == expected == list(map(int, expected))
    array = tok.encode_array(text, **options)
    assert (type(array), array.dtype, array.ndim, array.tolist()) == (np.ndarray, np.int32, 1, expected)
    assert array.flags.owndata and array.flags.writeable and array.flags.c_contiguous
    assert Tokenizer.encode_array.__wrapped__(tok, text, **options).tolist() == expected


@pytest.mark.parametrize("name", ["encode", "encode_array"])
def test_no_function_is_called_for_a_usual_call(tok, name):
    method = getattr(tok, name)
    for options in USUAL:
        assert functions_called(lambda o=options: method("Hi", **o)) == ["<lambda>"]
    for options in UNUSUAL:
        assert name in functions_called(lambda o=options: method("Hi", **o))
    assert name in functions_called(lambda: method(text="Hi"))


@pytest.mark.parametrize("name", ["encode", "encode_array"])
def test_mistakes_are_told_by_the_function(tok, name):
    method = getattr(tok, name)
    with pytest.raises(TypeError, match=rf"{name}\(\) missing 1 required positional argument: 'text'"):
        method()
    with pytest.raises(TypeError, match=rf"{name}\(\) takes 2 positional arguments but 3 were given"):
        method("a", True)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'parse'"):
        method("a", parse=True)
    with pytest.raises(TypeError, match=r"^text must be str, not int$"):
        method(1, parse_special=True)
    with pytest.raises(TextError, match=r"^text has a lone surrogate U\+D800 at character 1$"):
        method("a\ud800", parse_special=False)
    with pytest.raises(AttributeError, match="_encoder|_default_call"):
        getattr(Tokenizer.__new__(Tokenizer), name)("a")
    with pytest.raises(AttributeError):
        getattr(Tokenizer, name)("a", "b")


@pytest.mark.parametrize("name", ["encode", "encode_array"])
def test_a_failing_call_raises_once(tok, name):
    """The fast path drops its exception; the function is called once, and its error has no other behind it."""
    method, caught = getattr(tok, name), []

    def fail():
        with pytest.raises(TextError) as error:
            method("a\ud800")
        caught.append(error.value)

    called = functions_called(fail)
    assert called.count(name) == 1
    assert caught[0].__context__ is None and caught[0].__cause__ is None


def test_one_text_may_be_a_subclass_of_str(tok):
    assert tok.encode(type("Text", (str,), {})("Hi")) == tok.encode("Hi")


def test_a_method_as_any_other(tok):
    assert Tokenizer.encode(tok, "Hi") == functools.partial(tok.encode, parse_special=False)("Hi") == tok.encode("Hi")
    parameters = ["text", "guarded", "max_tokens", "truncation_side", "options"]
    assert list(inspect.signature(tok.encode).parameters) == parameters
    assert inspect.ismethod(tok.encode) and inspect.ismethoddescriptor(Tokenizer.encode)
    assert Tokenizer.encode_array.__qualname__ == "Tokenizer.encode_array"
    assert inspect.getdoc(Tokenizer.encode).startswith("Encode one text")
    assert pickle.loads(pickle.dumps(tok.encode))("Hi") == tok.encode("Hi")
    with pytest.raises(TypeError):
        type(Tokenizer.encode)()


def test_what_is_around_a_function_is_collected_with_it():
    def function(*_given):
        return "done"

    made = _core.fast_encode(function)
    made.itself = made
    assert made(None, "a") == "done"
    gone = weakref.ref(function)
    del function, made
    gc.collect()
    assert gone() is None


def test_kept_arrays_do_not_change(tok):
    first = tok.encode_array("Hi")
    before = first.copy()
    first[0] += 1
    assert tok.encode_array("Hi").tolist() == before.tolist()
