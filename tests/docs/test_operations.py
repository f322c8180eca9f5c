"""The page for those who run the server names every limit and metric, and its files fit the program."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path

import click

from tokenweir.cli import main
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.monitoring.metrics import Metrics

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "howto" / "operations.md").read_text("utf-8")


def test_every_limit_is_there_with_its_default():
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE, re.MULTILINE)
    assert rows == [(limit.name, _number(limit.default)) for limit in fields(Limits)]


def _number(value):
    return f"{value:f}".rstrip("0") if isinstance(value, float) and value < 0.001 else str(value)


def test_every_metric_is_there():
    table = PAGE.partition("| metric |")[2].partition("\n\n")[0]
    first_column = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
    told = {name.removesuffix("_total") for row in first_column for name in re.findall(r"`(\w+)`", row)}
    assert told == {family.name.removeprefix("tokenweir:") for family in Metrics.of(["m"]).collect()}


def _options(arguments):
    """Have the command line read arguments of `serve`, without running it."""
    serve = main.commands["serve"]
    assert isinstance(serve, click.Command)
    return serve.make_context("serve", arguments).params


def test_the_unit_starts_the_server():
    unit = (DOCS / "deploy" / "tokenweir.service").read_text("utf-8")
    command = shlex.split(re.search(r"^ExecStart=(.+)$", unit, re.MULTILINE)[1])
    assert command[1] == "serve"
    options = _options(command[2:])
    drain = float(dict(limit.split("=") for limit in options["limit"])["drain_timeout"])
    assert int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]) > drain + 5
    assert int(re.search(r"LimitNOFILE=(\d+)", unit)[1]) >= 2 * Limits().max_connections + 64


def test_the_image_starts_the_server():
    lines = (DOCS / "deploy" / "Dockerfile").read_text("utf-8").splitlines()
    entry, more = (re.findall(r'"(.+?)"', line) for line in lines if line.startswith(("ENTRYPOINT", "CMD")))
    assert entry[:2] == ["tokenweir", "serve"]
    options = _options([*entry[2:], *more])
    assert f"EXPOSE {options['port']}" in lines
    assert next(line for line in lines if line.startswith("USER")) != "USER root"


def test_nginx_waits_longer_than_the_server():
    text = (DOCS / "deploy" / "nginx.conf").read_text("utf-8")
    seconds = {
        name: int(value)
        for name, value in re.findall(r"((?:proxy|client)_\w+_timeout|keepalive_timeout) (\d+)s;", text)
    }
    limits = Limits()
    assert seconds["proxy_read_timeout"] > limits.heartbeat
    assert seconds["proxy_send_timeout"] > limits.stall_timeout
    assert seconds["client_body_timeout"] >= limits.request_timeout
    assert seconds["keepalive_timeout"] < limits.keep_alive_timeout
    assert f"client_max_body_size {limits.max_message_bytes >> 20}m;" in text
    assert "proxy_buffering off;" in text
