"""`continue_final_message`: a prompt that ends inside the last message, by the rules of transformers 5.23.

The engine appends a tag to the message, and the rendered text is cut where the tag stands last.
"""

from __future__ import annotations

from tokenweir.encode.errors import TemplateError

TAG = "CONTINUE_FINAL_MESSAGE_TAG "  # templates know it; the space shows whether they trim


def cut_at_tag(text: str, final: str) -> str:
    """Return the rendered text up to the last occurrence of the tag, which was appended to the last message.

    Without the white space before the tag, if the template has stripped the message.

    Args:
        text: The text that the template rendered.
        final: The text of the last message, without the tag.

    Raises:
        TemplateError: The text lacks the last message or the tag.

    """
    place = text.rfind(TAG.strip())
    if place < 0 or final.strip() not in text:
        raise TemplateError("continue_final_message: the template does not render the whole of the last message")
    head = text[:place]
    return head if text.startswith(TAG, place) else head.rstrip()  # a template that trims would trim `final` as well
