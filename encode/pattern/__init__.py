r"""Pre-tokenizer patterns, compiled into small tables that need no regex engine.

A pre-tokenizer cuts text at the matches of a regular expression, and a backtracking engine decides which match that
is: the leftmost, and among those the one that its first alternatives lead to (not the longest). `compile_pattern` turns
such a pattern into an `Automaton` that finds the same matches by two table look-ups a character.

**Ordered thread lists.** Run the backtracking search's alternatives in step instead, as threads in order of priority
(Pike's machine; Thompson 1968, Cox 2007-2010). A thread that matches ends all threads of lower priority, since they could
win only if it failed; those of higher priority go on and may still replace its match. The list of threads is all that
the future depends on, and there are finitely many lists, so each becomes a state of a deterministic automaton. A list
is ordered where the textbook's subset construction has a set: that order is what makes it leftmost-first.

**Flags on transitions.** `(?!\S)`, `$` and the end of a possessive loop ask what the next character is. So a state is
the list just after a character, and what its threads do before the next one, matches among it, happens on the
transition by that next symbol (a Mealy machine); the end of the text is a symbol of its own. A walk begins at state 0,
remembers the last flag, and stops in the dead state: the piece ends before the symbol with the last flag.

**Gaps.** Below all alternatives stands "any one character", whose match is flagged as a gap. So a walk never fails, and
what the pattern leaves over is found; neighbouring gaps are one piece to HuggingFace, and dropped by tiktoken. Where a
longer match is certain to follow, a flag is taken back; a pattern that leaves nothing over has no gap left. An empty
match, which only Oniguruma's dialect may have, consumes nothing and parts the gap that it stands in.

**Context.** Some conditions take more than the next character: a lookahead such as `(?=(?:\d{3})*\b)`, or what stands
before a place. A first pass over the text, from its end, decides them for every place and writes the answers into the
symbols that the walk reads (context.py); most patterns need none.

**Classes.** Characters that no set of the pattern tells apart are one symbol, found on the ends of ranges; so a million
code points become 10 to 20 classes. States are merged by Hopcroft's algorithm and classes by equal columns. GPT-2,
cl100k, Llama-3, Qwen, o200k, tekken and Kimi come to 11-20 states of 10-21 classes.

**Sync points.** Without context, a walk depends on nothing before its start. If no walk survives class `a` followed by
class `b`, no piece can hold the two in a row, and between them there is a boundary whatever came before. Such places cut
one text for many threads, exactly.

**The subset**: sets with ranges, negation, nesting and `&&`; `\s \d \w` and their negations, `\p{..}` with general
categories and scripts, `.`; groups, `(?i:)`, alternatives; greedy, lazy and possessive repeats (possessive ones of one
character); lookahead; lookbehind of one character, `\b`, `\B`; `^`, `$`, `\A`, `\z`, `\Z`. The dialect decides where
engines differ: `{1,3}+` is a repeat of the repeat to Oniguruma and possessive to fancy-regex, and `$` holds before
every line feed to Oniguruma but only at the end of the text to fancy-regex. What is not in the subset, or where an
engine could not be followed exactly, raises an error with its name and place.

What it costs: a pattern never seen compiles in 5 to 80 ms and is then kept on disk, where it is found in under 1 ms. A
walk reads some characters twice, those between the end of a piece and where it was certain; but the core follows no
search twice that goes far and fails, such as that of `\s+$` in a run of spaces before a word (core/pattern/scan_memo.h), where
the engines take quadratic time.
"""

from tokenweir.encode.pattern.automaton import Automaton
from tokenweir.encode.pattern.compile import check_all, compile_pattern

__all__ = ["Automaton", "check_all", "compile_pattern"]
