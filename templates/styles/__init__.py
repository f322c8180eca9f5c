"""Tables of styles, as data: the marks of thinking, and the markup of tool calls.

A row of a table is a style:

    reasoning.py    the styles of thinking
    tools.py        those of tool calls, made of what grammars.py has; tagged.py is the part with tagged parameters
    names.py        a style by its name, or by that of a family of models
    shown.py        which styles a template shows
    response_template.py    which styles a checkpoint's `response_template` describes
"""
