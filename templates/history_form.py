"""The form of histories that a template takes: what `ChatTemplate.render(tidy=True)` makes of the messages of clients."""

from __future__ import annotations

from typing import Any, Literal

from tokenweir.templates._native import HistoryForm
from tokenweir.templates.messages import Message
from tokenweir.templates.probes import ID, LATER, NAME, SAID, TOOL, ArgumentForm, Probe, turn

NoContent = Literal["absent", "none", "empty"]
"""The content of a message that has none: no such field, None, or an empty text."""

_FIELDS: dict[NoContent, dict[str, Any]] = {"absent": {}, "empty": {"content": ""}, "none": {"content": None}}
_ASKED = turn("user", "?")
_THOUGHT = {"role": "assistant", "reasoning_content": SAID[3], "thinking": SAID[3]}
_FOREIGN_ID = "call_x9Kf2LmQ7bTzR4vWc1NyH8aJ"
_OTHER_ID = "idofcall1"
_OTHER_NAME = "name_of_a_second_call"
_LETTERS = "{letters}"
_TOOL = {"type": "function", "function": TOOL["function"] | {"name": "other_name"}}  # not that of the calls


def history_form(probe: Probe, arguments: ArgumentForm, call_ids: str) -> HistoryForm:
    """Find the form of histories that a template takes.

    Args:
        probe: Renders with the template.
        arguments: The form of the arguments of calls.
        call_ids: The form of ids that tell functions, as `TemplateCapabilities.call_ids`.

    """
    calls = _Renders(probe, {form: probe.calling(**fields) for form, fields in _FIELDS.items()}, _result("?"))
    of_calls = calls.no_content()
    calling = probe.calling(**_FIELDS[of_calls])
    spoken = _Renders(probe, {"absent": calling, "empty": probe.calling(content=SAID[0])}, _result("?"))
    result = _written(probe, _ASKED, calling, _result(LATER))
    contents = _content_forms(probe, calling)
    return HistoryForm(
        arguments=arguments,
        contents=contents,
        of_calls=of_calls,
        of_answer=_Renders(probe, {form: _THOUGHT | fields for form, fields in _FIELDS.items()}, _ASKED).no_content(),
        replaces_empty=calls.writes(of_calls) and (of_calls == "none" or not calls.writes("empty")),
        parts_calls=spoken.writes("absent") and not spoken.writes("empty"),
        single_calls=bool(result) and _takes_single_calls_only(probe, calling),
        orders_results=not _writes_id_of_result(probe, calling, result),
        takes_late_results=LATER not in result or _writes_late_results(probe, calling),
        takes_orphans=LATER not in result or _writes_orphans(probe),
        joins_thinking=_refuses_all_three(probe, calling),
        **_system_forms(probe, contents),
        needs_ids=bool(result) and _refuses_missing_ids(probe, calling),
        call_ids=call_ids or (_LETTERS if result and _refuses_foreign_ids(probe, calling) else ""),
    )


class _Renders:
    """Texts of a conversation whose last or last but one message has one of several forms, with a tool and without.

    Templates look at messages in one branch with tools, in another without, and at the last one in a third.
    """

    def __init__(self, probe: Probe, forms: dict[NoContent, Message], later: Message) -> None:
        self._texts = {
            form: [
                probe.written(_ASKED, message, *behind, tools=tools)
                for tools in ([_TOOL], None)
                for behind in ([], [later])
            ]
            for form, message in forms.items()
        }
        places = range(4)
        self._taken = [at for at in places if any(texts[at] is not None for texts in self._texts.values())]
        self._called = [at for at in places if any(_has_call(texts[at]) for texts in self._texts.values())]

    def takes(self, form: NoContent) -> bool:
        """Return whether the template takes a form wherever it takes any."""
        return all(self._texts[form][at] is not None for at in self._taken)

    def writes(self, form: NoContent) -> bool:
        """Return whether the template writes the call beside a form wherever it does so beside any; False if it never does."""
        return bool(self._called) and all(_has_call(self._texts[form][at]) for at in self._called)

    def no_content(self) -> NoContent:
        """Return the content of a message that has none.

        It is absent, as in transformers, unless the template refuses that or omits the calls. Then it is None if the template
        writes the calls so, and omits them or writes more beside an empty text. Otherwise it is an empty text.
        """
        if self._taken and self.takes("absent") and (self.writes("absent") or not self._called):
            return "absent"
        none, empty = (sum(len(text or "") for text in self._texts[form]) for form in ("none", "empty"))
        if self.writes("none") and (not self.writes("empty") or none < empty):
            return "none"
        return "empty" if self.takes("empty") or not self.takes("none") else "none"


def _content_forms(probe: Probe, calling: Message) -> dict[str, tuple[bool, bool]]:
    """Return for each role whether the template writes a text, and a list of text parts, as content of its messages.

    Where it writes neither, it counts as for the user, and there as both. `calling` comes before the content of a tool.
    """
    user = _content_form(probe, calling, "user")
    user = user if any(user) else (True, True)
    forms = {role: _content_form(probe, calling, role) for role in ("system", "assistant", "tool")}
    return {"user": user} | {role: form if any(form) else user for role, form in forms.items()}


def _content_form(probe: Probe, calling: Message, role: str) -> tuple[bool, bool]:
    before = {"assistant": [_ASKED], "tool": [_ASKED, calling]}.get(role, [])
    after = [_ASKED] if role in ("system", "assistant") else []

    def written(content: Any) -> str:
        message = _result(content) if role == "tool" else turn(role, content)
        return _written(probe, *before, message, *after)

    text, parts = written(LATER), written([{"type": "text", "text": LATER}])
    prints_list = any(parts.count(name) > text.count(name) for name in ("'type'", '"type"'))
    return LATER in text, LATER in parts and not prints_list


def _writes_id_of_result(probe: Probe, calling: Message, written: str) -> bool:
    """Return whether the template writes a result's id; `written` is a call and a result.

    Compared with a result of another call or, if the template refuses that, with the call alone.
    """
    other = _written(probe, _ASKED, calling, _result(LATER, _OTHER_ID)) or _written(probe, _ASKED, calling)
    return written.count(ID) > other.count(ID)


def _writes_orphans(probe: Probe) -> bool:
    """Return whether the template writes results without their calls, at the beginning of a history and later."""
    later = _written(probe, _ASKED, turn("assistant", SAID[0]), _ASKED, _result(LATER))
    return LATER in _written(probe, _result(LATER), _ASKED) and LATER in later


def _writes_late_results(probe: Probe, calling: Message) -> bool:
    """Return whether the template writes results behind a user's message, and behind an answer, that follow their calls."""
    between = (turn("user", SAID[0]), turn("assistant", SAID[0]))
    return all(LATER in _written(probe, _ASKED, calling, message, _result(LATER)) for message in between)


def _takes_single_calls_only(probe: Probe, calling: Message) -> bool:
    """Return whether the template writes a second call in a message of its own, but not beside the first."""
    call = calling["tool_calls"][0]
    second = call | {"id": _OTHER_ID, "function": call["function"] | {"name": _OTHER_NAME}}
    results = _result(SAID[0]), _result(SAID[1], _OTHER_ID)
    both = _written(probe, _ASKED, calling | {"tool_calls": [call, second]}, *results)
    return _OTHER_NAME not in both and _OTHER_NAME in _written(
        probe, _ASKED, calling, results[0], calling | {"tool_calls": [second]}, results[1]
    )


def _refuses_missing_ids(probe: Probe, calling: Message) -> bool:
    """Return whether the template refuses a call and a result without ids."""
    call = {key: value for key, value in calling["tool_calls"][0].items() if key != "id"}
    answer = {key: value for key, value in _result("?").items() if key != "tool_call_id"}
    return not _written(probe, _ASKED, calling | {"tool_calls": [call]}, answer)


def _refuses_all_three(probe: Probe, calling: Message) -> bool:
    """Return whether the template takes thinking beside calls, but not beside calls and a content."""
    thinking = calling | {"reasoning_content": SAID[3], "thinking": SAID[3]}
    alone = _written(probe, _ASKED, thinking, _result("?"))
    return bool(alone) and not _written(probe, _ASKED, thinking | {"content": SAID[0]}, _result("?"))


def _system_forms(probe: Probe, contents: dict[str, tuple[bool, bool]]) -> dict[str, bool]:
    """Find out how the template takes messages of the system and of developers, as arguments of `HistoryForm`."""

    def told(role: str, text: str) -> Message:
        takes_text, _ = contents["assistant" if role == "assistant" else "system"]
        return turn(role, text if takes_text else [{"type": "text", "text": text}])

    def follows(*behind: Message) -> bool:
        before = (told("system", SAID[0]), _ASKED, told("assistant", SAID[1]))
        written = _written(probe, *before, told("system", LATER), *behind)
        places = [written.find(text) for text in (SAID[0], SAID[1], LATER)]
        return -1 not in places and places == sorted(places) and written.count(LATER) == 1

    both = _written(probe, told("system", SAID[0]), told("system", LATER), _ASKED)
    writes_both = SAID[0] in both and LATER in both
    return {
        "joins_system": LATER in _written(probe, told("system", LATER), _ASKED) and not writes_both,
        "takes_later_system": follows() and follows(_ASKED),
        "takes_developer": LATER in _written(probe, told("developer", LATER), _ASKED),
    }


def _refuses_foreign_ids(probe: Probe, calling: Message) -> bool:
    """Return whether the template refuses ids of calls as OpenAI's servers make them."""
    foreign = calling | {"tool_calls": [calling["tool_calls"][0] | {"id": _FOREIGN_ID}]}
    return not _written(probe, _ASKED, foreign, _result("?", _FOREIGN_ID))


def _written(probe: Probe, *messages: Message) -> str:
    """Render messages, with a tool if the template takes one; return the text, empty if they are refused."""
    return probe.written(*messages, tools=[_TOOL]) or probe.written(*messages) or ""


def _has_call(text: str | None) -> bool:
    return text is not None and (NAME in text or ID in text)


def _result(content: Any, call_id: str = ID) -> Message:
    return {"role": "tool", "name": NAME, "content": content, "tool_call_id": call_id}
