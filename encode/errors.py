"""Every error that tokenweir raises on purpose.

TokenweirError
├── TokenizerFileError          (OSError, ValueError)  a file that cannot be read, is truncated, or inconsistent
├── UnsupportedTokenizerError   (ValueError)           a construct that cannot be reproduced exactly
├── TokenIdError                (ValueError)           a token id outside the vocabulary
├── TextError                   (ValueError)           text that has no UTF-8 form (lone surrogates)
├── TemplateError               (ValueError)           a chat template that is missing, broken or refuses its input
├── MediaError                  (ValueError)           an image, sound or video that is malformed, too large, or not taken
├── EngineError                 (RuntimeError)         an engine that failed or broke its contract
├── ContextLengthError          (ValueError)           a prompt and an answer that do not fit into the engine's context
├── ProtocolError               (ValueError)           a message on the wire that breaks the protocol
├── CorpusError                 (OSError, ValueError)  unusable input or output files of `encode-files`
├── StateError                  (ValueError)           a saved state that is damaged, or belongs to something else
├── DeliveryError               (RuntimeError)         a reader of a stream that was cut off
└── DeviceError                 (RuntimeError)         a GPU that is missing or failed

Each is also the builtin that a Python user would catch. Messages name the fault, its place, and the value.
"""

from typing import Literal

EngineFailure = Literal["failed", "overloaded", "refused", "timeout", "unreachable", "unsupported"]


class TokenweirError(Exception):
    """The base of every error that tokenweir raises on purpose."""


class TokenizerFileError(TokenweirError, OSError, ValueError):
    """A tokenizer file that cannot be read, is truncated, or inconsistent."""


class UnsupportedTokenizerError(TokenweirError, ValueError):
    """A tokenizer that uses a construct which cannot be reproduced bit for bit; the message names it."""


class TokenIdError(TokenweirError, ValueError):
    """A token id outside the vocabulary."""


class TextError(TokenweirError, ValueError):
    """Text that has no UTF-8 form, such as a lone surrogate."""


class TemplateError(TokenweirError, ValueError):
    """A chat template that is missing, does not parse, or refuses its input."""


class MediaError(TokenweirError, ValueError):
    """An image, a sound or a video that is malformed, too large, or that template or engine do not take.

    Attributes:
        place: The path of its part, such as `messages[0].content[1]`.

    """

    def __init__(self, message: str, *, place: str = "") -> None:
        super().__init__(message)
        self.place = place


class EngineError(TokenweirError, RuntimeError):
    """An engine that failed, that cannot do what is asked, or that yielded what is not token ids.

    Attributes:
        kind: "unsupported" if it cannot do what is asked of it; "refused" if a server refuses the request, and would
            again; "overloaded" if it has no room at the moment; "unreachable" if it does not answer, or the connection
            breaks; "timeout" if it takes too long; "failed" for everything else.
        option: The field of `Sampling` that it cannot honour, if that is what is wrong.

    """

    def __init__(self, message: str, *, kind: EngineFailure = "failed", option: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.option = option


class ContextLengthError(TokenweirError, ValueError):
    """A prompt, or a prompt and the tokens asked for, that do not fit into the engine's context."""


class ProtocolError(TokenweirError, ValueError):
    """A message on the wire that breaks the protocol."""


class CorpusError(TokenweirError, OSError, ValueError):
    """An input of `encode-files` that cannot be read or encoded, or an output folder that has something else."""


class StateError(TokenweirError, ValueError):
    """A saved state that is damaged, or of another version, tokenizer or other options."""


DeliveryOutcome = Literal["stalled", "too_far_behind", "abandoned", "closed"]


class DeliveryError(TokenweirError, RuntimeError):
    """A reader was cut off from a stream, or asks for items that are no longer kept.

    Attributes:
        outcome: "stalled" if it took nothing for too long; "too_far_behind" if what it lacks has been dropped;
            "abandoned" if the stream was stopped since nobody read it; "closed" if somebody closed it or this reader.

    """

    def __init__(self, message: str, outcome: DeliveryOutcome) -> None:
        super().__init__(message)
        self.outcome = outcome


class DeviceError(TokenweirError, RuntimeError):
    """A GPU, its driver or its software (CuPy, NVRTC) is missing or too old, or an operation on the GPU has failed."""


def without_number(error: Exception) -> str:
    """Return an error's message, without the number that Python puts before the system's."""
    strerror, path = getattr(error, "strerror", None), getattr(error, "filename", None)
    if strerror is None:
        return str(error)
    return strerror if path is None else f"{path}: {strerror}"


def without_path(error: Exception) -> str:
    """Return an error's message without the number and the path of an OSError, for messages that already name the path."""
    return getattr(error, "strerror", None) or str(error)
