"""States that nobody has written: what is read is refused, and nothing is trusted."""

import pytest
from msgspec.structs import replace

from tokenweir.encode.errors import StateError
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.saved_state import DIGEST, MAGIC, read_state, write_state


def forged(decoder, change):
    """A decoder's state with its core's bytes changed; the checks around them hold."""
    data = decoder.state()
    belongs = data[len(MAGIC) + 1 :][:DIGEST]
    state = read_state(data, belongs)
    return write_state(replace(state, core=change(state.core)), belongs)


def test_a_state_that_is_not_changed_is_read(tok):
    decoder = ChatDecoder.from_state(tok, forged(ChatDecoder(tok), lambda core: core))
    assert decoder.feed([72])[0].text == "H"


def test_a_first_token_is_not_awaited_where_it_is_like_any_other(tok):
    """The names of tokens, which only such a first token needs, are not there: reading them left the memory."""
    with pytest.raises(StateError, match="first token"):
        ChatDecoder.from_state(tok, forged(ChatDecoder(tok), lambda core: b"\x01" + core[1:]))


@pytest.mark.parametrize("value", [0, 1, 0x7F, 0xFF])
def test_any_byte_of_the_core_can_be_wrong(tok, value):
    decoder = ChatDecoder(tok, stop=["stop"])
    decoder.feed([*b"st\xe6"])
    for at in range(len(read_state(state := decoder.state(), state[len(MAGIC) + 1 :][:DIGEST]).core)):
        try:
            broken = ChatDecoder.from_state(
                tok,
                forged(decoder, lambda core, at=at: core[:at] + bytes([value]) + core[at + 1 :]),
                stop=["stop"],
            )
            broken.feed([*b"op and more"])
            broken.finish()
        except (StateError, RuntimeError):  # or it goes on, elsewhere
            pass
