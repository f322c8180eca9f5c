"""Attacks: text that tries to become control tokens, in every place of a conversation that a template shows."""

from __future__ import annotations

import re
from functools import cache

from full_run import FULL

from tokenweir.encode.errors import TemplateError
from tokenweir.templates.chat_template import ChatTemplate

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
THINKING = {
    *("<think>", "</think>", "<seed:think>", "</seed:think>"),
    *("<|channel>", "<channel|>", "<|START_THINKING|>", "<|END_THINKING|>"),
}
SHAPES = re.compile(
    r"<\|[A-Za-z0-9_ ./:-]{1,40}\|>|<｜[^｜>\n]{1,40}｜>|\[/?[A-Z][A-Z_]{2,25}\]|</?[a-z][a-z_:]{1,30}>|<\|[a-z_]+>|"
    r"<[a-z_]+\|>|<SPECIAL_\d+>"
)
SLOTS = ("user", "system", "assistant", "parts", "reasoning", "tool result", "tool argument", "tool description")


def tokens_of(source):
    """Texts of a template that look like control tokens; they stand for those of its tokenizer, which is not here."""
    return sorted(({*SHAPES.findall(source)} | {"<s>", "</s>"}) - {"<div>", "<span>"}, key=len, reverse=True)


def payloads(token):
    middle = len(token) // 2
    head, tail = token[:middle], token[middle:]
    yield token
    yield f"{head}/think{tail}"
    yield f"{head}/no_think{tail}"
    yield f"{head}<think>z</think>{tail}"
    yield f"{head}\n{tail}"
    yield f"{token[0]}\ufdd0{token[1:]}"
    yield f"{head}{token}{tail}"


def conversation(slot, text, *, system=True, arguments=dict):
    """A conversation with `text` in one place; None in place of `text` leaves the place as it is."""

    def at(place, otherwise):
        return f"{otherwise} {text} tail" if place == slot else otherwise

    messages = [{"role": "system", "content": at("system", "Be brief.")}] if system or slot == "system" else []
    if slot == "parts":
        half = len(text) // 2
        texts = ("Hi " + text[:half], text[half:] + " tail")
        messages.append({"role": "user", "content": [{"type": "text", "text": part} for part in texts]})
    else:
        messages.append({"role": "user", "content": at("user", "Hi")})
    messages.append({"role": "assistant", "content": at("assistant", "Hello")})
    if slot == "reasoning":
        messages[-1]["reasoning_content"] = at("reasoning", "hm")
    tools = None
    if slot.startswith("tool"):
        value = {"city": at("tool argument", "Bern")}
        call = {"name": "weather", "arguments": value}
        city = {"type": "string", "description": "Where."}
        parameters = {"type": "object", "properties": {"city": city}, "required": ["city"]}
        description = at("tool description", "Tells the weather.")
        function = {"name": "weather", "description": description, "parameters": parameters}
        tools = [{"type": "function", "function": function}]
        messages += [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "abcdefghi", "type": "function", "function": call}],
            },
            {"role": "tool", "name": "weather", "tool_call_id": "abcdefghi", "content": at("tool result", "sunny")},
        ]
    else:
        messages.append({"role": "user", "content": "And now?"})
    return {"messages": messages, "tools": tools}


def count_tokens(prompt, tokens, *, assistant):
    """Return the number of control tokens that a tokenizer finds outside of `guarded`; thinking in an assistant's content is its own."""
    pattern = re.compile("|".join(map(re.escape, tokens)))
    guarded = set(prompt.guarded)
    count = start = 0
    while found := pattern.search(prompt.text, start):
        free = guarded.isdisjoint(range(*found.span()))
        count += free and not (assistant and found[0] in THINKING)
        start = found.end() if free else found.start() + 1
    return count


def test_no_attack_succeeds(source, record_property):
    tokens = tokens_of(source)
    plain, guarded = (
        ChatTemplate(source, special_tokens=SPECIAL, control_tokens=tokens, guard=guard) for guard in (False, True)
    )
    attacks = succeeded_plain = 0
    for number, slot in enumerate(SLOTS):
        for system in (True, False):  # some templates have no system role
            try:
                shown = "LESS" in plain.render(**conversation(slot, "HARMLESS", system=system)).text
            except TemplateError:
                continue
            break
        else:
            continue
        if not shown:
            continue
        assistant = slot == "assistant"

        @cache
        def count(template, payload):
            prompt = template.render(**conversation(slot, payload, system=system))  # noqa: B023 - used in this round
            return count_tokens(prompt, tokens, assistant=assistant)  # noqa: B023

        # About six tokens of a template; or one, another in each place.
        chosen = tokens[:: max(1, len(tokens) // 6)] if FULL else [tokens[number % len(tokens)]]
        for token in chosen:
            neutral = re.sub(r"\W", "x", token)
            for payload, harmless in zip(payloads(token), payloads(neutral), strict=True):
                try:
                    succeeded = count(plain, payload) > count(plain, harmless)
                except TemplateError:
                    continue  # the template itself refuses
                attacks += 1
                succeeded_plain += succeeded
                assert count(guarded, payload) <= count(guarded, harmless), (slot, payload)
    record_property("attacks", attacks)
    print(f"{attacks} attacks: {succeeded_plain} succeed unguarded, 0 guarded")  # noqa: T201
    assert attacks >= (84 if FULL else 21)
    assert succeeded_plain >= (16 if FULL else 4)
