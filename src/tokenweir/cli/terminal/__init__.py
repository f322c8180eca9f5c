"""Input and output at a terminal, for commands whose user is a person.

`escape_codes.py` says what a terminal obeys, `keyboard.py` reads messages. `answer.py` shows an answer through a view of
`view.py`: plain text, or Markdown (`markdown.py`) over lines that are redrawn (`live_lines.py`). `token_view.py` and
`origin_view.py` show tokens and the origins of a prompt in colours.
"""
