"""Constructs that transformers renders and the native engine refuses, and the part of its error that names each."""

from __future__ import annotations

LEFT_OUT = {
    "{% macro m(a) %}{{ a }}{% endmacro %}\n{{ m(*[1]) }}": r"\* or \*\* arguments",
    "\n{{ dict(**{'x': 1}) }}": r"\* or \*\* arguments",
    "\n{{ text|wordwrap(3) }}": "wordwrap",
    "\n{{ text|striptags }}": "striptags",
    "\n{{ seven|filesizeformat }}": "filesizeformat",
    "\n{{ plain|xmlattr }}": "xmlattr",
    "\n{{ text|urlencode }}": "urlencode",
    "\n{{ text|urlize }}": "urlize",
    "\n{{ text|pprint }}": "pprint",
    "\n{{ numbers|random }}": "random",
    "\n{{ lipsum() }}": "lipsum",
    "\n{{ text.encode() }}": "encode",
    "\n{{ text.translate({}) }}": "translate",
    "\n{{ '{a}'.format_map(plain) }}": "format_map",
    "\n{{ plain.fromkeys('a') }}": "fromkeys",
    "\n{{ (text|safe).striptags() }}": "striptags",
    "\n{{ (text|safe).unescape() }}": "unescape",
    "\n{{ ratio.is_integer() }}": "is_integer",
    "\n{{ seven.real }}": "real",
    "\n{{ seven.bit_length() }}": "bit_length",
    "\n{{ numbers.__len__ is defined }}{{ ratio.imag }}": "imag",
    "\n{{ (-8) ** 0.5 }}": "complex",
    "\n{{ '\\N{BULLET}' }}": r"\\N",
    "\n{{ '\\ud800' }}": "lone surrogate",
    "\n{% block b %}x{% endblock %}": "block",
    "\n{% autoescape true %}{% endautoescape %}": "autoescape",
}

REFUSED_BY_BOTH = {
    "\n{% include 'x' %}": "include",
    "\n{% import 'x' as x %}": "import",
    "\n{% from 'x' import y %}": "from",
    "\n{% extends 'x' %}": "extends",
    "\n{% trans %}{% endtrans %}": "trans",
    "\n{% do numbers %}": "do",
    "\n{% debug %}": "debug",
    "\n{{ _('x') }}": "_",
}
