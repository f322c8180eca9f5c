"""Comparison with the reference libraries, for `tokenweir verify`, tests and benchmarks.

`run.py` compares a model part by part: `texts.py` reads files, `adversarial.py` and `conversations.py` have what is built in,
`comparison.py` compares ids and texts, and `prompts.py` renders. `references.py` has the libraries.
"""
