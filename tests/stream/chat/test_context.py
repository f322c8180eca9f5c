"""Contexts that explain themselves where `async with` is forgotten."""

import gc

import pytest

import tokenweir
from tokenweir import NgramEngine, Tokenizer

OPENED = {
    "chat": lambda: tokenweir.chat(
        [{"role": "user", "content": "Hi"}], engine=NgramEngine(), tokenizer=Tokenizer.default()
    ),
    "serve": lambda: tokenweir.serve(engine=NgramEngine(), tokenizer=Tokenizer.default(), port=0),
}


def drop(opened):
    opened()
    gc.collect()


async def iterate(context):
    async for _ in context:
        pass


async def await_it(context):
    await context


async def enter_it(context):
    with context:
        pass


@pytest.mark.anyio
@pytest.mark.parametrize("use", [iterate, await_it, enter_it])
@pytest.mark.parametrize("name", OPENED)
async def test_a_wrong_use_is_told_the_right_one(name, use):
    with pytest.raises(TypeError, match=rf"^write `async with {name}\(...\) as "):
        await use(OPENED[name]())


@pytest.mark.parametrize("name", OPENED)
def test_one_that_is_never_entered_warns(name):
    with pytest.warns(RuntimeWarning, match=rf"^nothing was run: write `async with {name}\(...\) as "):
        drop(OPENED[name])


@pytest.mark.filterwarnings("ignore:nothing was run")
@pytest.mark.parametrize("name", OPENED)
def test_repr_says_how_to_enter_it(name):
    assert repr(OPENED[name]()).startswith(f"<not entered yet: async with {name}(...) as ")
