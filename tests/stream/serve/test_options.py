"""Options of the server are declared once: the command line and the documentation have each, with its default."""

from __future__ import annotations

import inspect

import pytest

from tokenweir import ServerOptions, Tokenizer
from tokenweir.cli import main
from tokenweir.stream.serve.options import declared_options, with_defaults

REQUIRED = {"engine": object(), "tokenizer": Tokenizer.default()}


def flags(*arguments):
    return main.commands["serve"].make_context("serve", list(arguments)).params


def test_the_command_line_has_each_option_with_a_flag_and_its_default():
    given, complete = flags(), with_defaults(REQUIRED)
    for name, _, option in declared_options():
        if option.flag:
            assert given[name] in (option.default, option.default or ()), name  # the latter if it can be repeated
            assert complete[name] == option.default, name
        else:
            assert name not in given or name in ("engine", "tokenizer", "template")


def test_flags_and_the_environment_set_options(monkeypatch):
    given = flags("--origin", "https://a", "--origin", "https://b", "--no-prompt-cache", "--history", "exact")
    assert given["origins"] == ("https://a", "https://b")
    assert (given["prompt_cache"], given["history"]) == (False, "exact")
    monkeypatch.setenv("TOKENWEIR_ALLOW_HOST", "a b")
    monkeypatch.setenv("TOKENWEIR_REMOTE_MEDIA", "1")
    assert (flags()["hosts"], flags()["remote_media"]) == (("a", "b"), True)


def test_the_documentation_has_each_option():
    text = inspect.getdoc(ServerOptions)
    for name, _, option in declared_options():
        assert f"    {name}: {option.about}" in text


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, TypeError, "^missing keyword argument: engine, tokenizer$"),
        (REQUIRED | {"remote_media": "no"}, TypeError, "^remote_media='no' is neither True nor False$"),
        (REQUIRED | {"history": "all"}, ValueError, "^history is canonical, exact or sampled, not 'all'$"),
        (
            REQUIRED | {"reasoning_events": None},
            ValueError,
            "^reasoning_events is reasoning_text or reasoning, not None$",
        ),
    ],
)
def test_invalid_values_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        with_defaults(options)
