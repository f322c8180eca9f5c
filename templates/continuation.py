"""`continue_final_message`: a prompt that ends inside the last message, by the rules of transformers 5.23.

A tag is appended to the message, and the rendered text is cut where the tag stands last.
"""

from __future__ import annotations

from tokenweir.encode.errors import TemplateError
from tokenweir.templates.messages import REASONING_FIELDS, Message

TAG = "CONTINUE_FINAL_MESSAGE_TAG "  # templates know it; the space shows whether they trim


def append_tag(conversation: list[Message], field: str, source: str) -> str:
    """Append the tag to a field of the last message, in place.

    Args:
        conversation: The messages.
        field: The field to continue; of content parts the last one with text.
        source: The template's source, which must read the field.

    Returns:
        The text to be continued.

    Raises:
        TemplateError: There is no such text.

    """
    value = conversation[-1].get(field) if conversation else None
    if value is None:
        raise TemplateError(f"continue_final_message: the last message has no {field!r}")
    # Reasoning stands under several names, of which the template reads one.
    fields = [name for name in REASONING_FIELDS if conversation[-1].get(name) == value]
    if field not in REASONING_FIELDS:
        fields = [field]
    if not any(name in source for name in fields):
        raise TemplateError(f"continue_final_message: the template does not read {field!r}")
    if isinstance(value, str):
        conversation[-1].update(dict.fromkeys(fields, value + TAG))
        return value
    if isinstance(value, list):
        for part in reversed(value):
            text = part.get("text") if isinstance(part, dict) else None
            if isinstance(text, str):
                part["text"] = text + TAG
                return text
    raise TemplateError(f"continue_final_message: the {field!r} of the last message has no text")


def cut_at_tag(text: str, final: str) -> str:
    """Cut rendered text at the tag.

    Args:
        text: What the template rendered.
        final: What `append_tag` returned.

    Raises:
        TemplateError: The final message or the tag is not there.

    """
    place = text.rfind(TAG.strip())
    if place < 0 or final.strip() not in text:
        raise TemplateError("continue_final_message: the template does not render the whole of the last message")
    head = text[:place]
    return head if text.startswith(TAG, place) else head.rstrip()  # a template that trims would trim `final` as well
