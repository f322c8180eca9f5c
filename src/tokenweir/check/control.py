"""Control tokens of a prompt: the first, the last, and those that a text spells."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from tokenweir.check.model import ARGUMENTS, TOOL, Finding, Message, Model, assistant, calls, result, user
from tokenweir.encode.errors import TemplateError

MOST_TOKENS = 200
"""Control tokens that a text spells; some vocabularies reserve thousands."""


def begin_token(model: Model) -> Iterator[Finding]:
    """Yield whether a prompt begins with the begin-of-text token once."""
    check, tok = "one begin-of-text token", model.tokenizer
    if model.alone:
        yield Finding(check, "absent", "a template alone does not say which token it is")
        return
    ids = model.prompt(user(), generation=True).encode(tok)
    before, _ = tok.affixes()
    bos = tok.bos_id if tok.bos_id is not None else next(iter(before), None)
    if bos is None:
        yield Finding(check, "absent", "the tokenizer has none")
        return
    name = tok.id_to_token(bos)
    if ids[:2] == [bos, bos]:
        yield Finding(check, "fault", f"the prompt begins with {name} twice")
    elif ids.count(bos) > 1:
        yield Finding(check, "ok", f"the template writes {name} at every turn")
    elif bos in ids and before:
        yield Finding(
            check, "ok", f"the template writes {name}; so does tokenizer.encode, but Prompt.encode does not add it"
        )
    elif bos in ids:
        yield Finding(check, "ok", f"the template writes {name}")
    elif before:
        yield Finding(check, "note", f"the tokenizer puts {name} before a text, and the template does not write it")
    else:
        yield Finding(check, "absent", f"neither the template nor the tokenizer writes {name}")


def end_token(model: Model) -> Iterator[Finding]:
    """Yield whether an answer of a history ends with an end token, which a model then learns to write."""
    check, tok = "an answer ends with an end token", model.tokenizer
    if model.alone:
        yield Finding(check, "absent", "a template alone does not say which tokens are end tokens")
        return
    answer = "The last words."
    prompt = model.prompt(user(), assistant(answer))
    behind = prompt.text[prompt.text.rfind(answer) + len(answer) :]
    ids = tok.encode(behind, add_special_tokens=False)
    found = next((tok.id_to_token(i) for i in ids if i in tok.eos_ids), None)
    if found is not None:
        yield Finding(check, "ok", str(found))
    else:
        ends = ", ".join(str(tok.id_to_token(i)) for i in sorted(tok.eos_ids)) or "none"
        yield Finding(check, "note", f"behind it stands {behind!r}, and the end tokens are {ends}")


def spelled_tokens(model: Model) -> Iterator[Finding]:
    """Yield for each place of input whether control tokens that a text spells there stay text."""
    tokens = list(model.tokenizer.control_texts)[:MOST_TOKENS]
    if not tokens:
        yield Finding("spelled tokens stay text", "absent", "the tokenizer has none")
        return
    text = " and ".join(["words", *tokens, "words"])
    call = assistant("", **calls(ARGUMENTS | {"city": text}))
    tool = copy.deepcopy(TOOL)
    tool["function"]["description"] = text
    cases: dict[str, tuple[list[Message], Message | None]] = {
        "a system message": ([{"role": "system", "content": text}, user()], None),
        "a user's message": ([user(text)], None),
        "an answer": ([user(), assistant(text), user()], None),
        "an argument": ([user(), call, result()], TOOL),
        "a result": ([user(), assistant("", **calls(ARGUMENTS)), result(text)], TOOL),
        "a tool's description": ([user()], tool),
    }
    for name, (messages, shown) in cases.items():
        check = f"spelled tokens stay text: {name}"
        try:
            forged, unguarded = _forged(model, messages, shown)
        except TemplateError as error:
            yield Finding(check, "absent", "the template refuses such a message", str(error))
            continue
        if forged:
            yield Finding(check, "fault", "control tokens", ", ".join(forged))
        elif unguarded:
            yield Finding(check, "ok", f"{unguarded} of {len(tokens)} would be control tokens without the guard")
        else:
            yield Finding(check, "absent", "the template does not write the text as it is")


def _forged(model: Model, messages: list[Message], tool: Message | None) -> tuple[list[str], int]:
    """Return the control tokens of a prompt that a message or a tool wrote, and how many there are without the guard."""
    tok = model.tokenizer
    prompt = model.template.render(
        messages, tools=[tool or TOOL] if tool or model.needs_tools else None, tidy=True, history_thinking="text"
    )
    foreign = [span for span in prompt.origins if span.origin.startswith(("messages[", "tools["))]
    foreign = [span for span in foreign if not span.origin.endswith(".role")]
    control = {i for i in map(tok.token_to_id, tok.control_texts) if i is not None}

    def written(guarded: tuple[int, ...]) -> list[str]:
        encoded = tok.encode_with_offsets(prompt.text, add_special_tokens=False, guarded=guarded)
        return [
            str(tok.id_to_token(i))
            for i, (start, end) in zip(encoded.ids, encoded.offsets, strict=True)
            if i in control and any(span.start < end and start < span.end for span in foreign)
        ]

    return written(prompt.guarded_for(tok)), len(written(()))
