"""Pre-tokenizer patterns, compiled."""

from tokenweir.encode.pattern.automaton import Automaton
from tokenweir.encode.pattern.compile import compile_pattern

__all__ = ["Automaton", "compile_pattern"]
