"""Messages to prompt text."""

from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.prompt import Prompt, Segment

__all__ = ["ChatTemplate", "Prompt", "Segment"]
