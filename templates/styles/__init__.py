"""Tables of styles, as data: the marks of thinking, and the markup of tool calls.

A row of a table is a style:

    reasoning.toml  the styles of thinking, with the fields of reasoning.py
    tools.toml      those of tool calls, with the fields of the classes in grammars.py; tools.py makes them
    names.py        a style by its name, or by that of a family of models
    shown.py        which styles a template shows
    response_template.py    which styles a checkpoint's `response_template` describes
"""
