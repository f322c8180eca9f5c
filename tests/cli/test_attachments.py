"""Files of a message in the terminal chat."""

import asyncio
import json
from base64 import b64encode

import pytest
from chat_program import ANSWER
from click.shell_completion import get_completion_class
from commands import run

from tokenweir.cli import main
from tokenweir.cli.attachments import read_attachment
from tokenweir.cli.conversation import TerminalConversation
from tokenweir.cli.model import Model
from tokenweir.encode.errors import MediaError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.events.sampling import Sampling
from tokenweir.templates.chat_template import ChatTemplate

PIXEL = b"GIF89a\x01\x00\x01\x00\x00\x00\x00"
TEMPLATE = ChatTemplate(
    "{% for m in messages %}{{ m.role }}: {% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}"
    "{% if c.type == 'image' %}<image>{% else %}{{ c.text }}{% endif %}{% endfor %}{% endif %}\n{% endfor %}"
)


class Sighted:
    """An engine that takes images, and says what it got."""

    media = frozenset({"image"})

    def __init__(self):
        self.seen = []

    async def generate(self, prompt_ids, sampling, *, media=None):
        tok = Tokenizer.default()
        self.seen.append((tok.decode(prompt_ids), [each.media_type for each in media.media] if media else []))
        yield tok.encode("I see.<|im_end|>")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "cat.gif").write_bytes(PIXEL)
    (tmp_path / "note.md").write_text("# Wörld\n", "utf-8")
    (tmp_path / "data.bin").write_bytes(b"\xff\xfe\0")
    (tmp_path / "song.mp3").write_bytes(b"ID3")
    return tmp_path


def test_images_become_data_urls_and_other_files_text(files):
    image = read_attachment(str(files / "cat.gif"), Sighted())
    url = f"data:image/gif;base64,{b64encode(PIXEL).decode()}"
    assert (image.kind, image.part) == ("image", {"type": "image_url", "image_url": {"url": url}})
    note = read_attachment(str(files / "note.md"), object())
    assert (note.kind, note.part) == ("text", {"type": "text", "text": "note.md:\n# Wörld\n\n"})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("data.bin", r"^data.bin is neither an image, sound or video nor UTF-8$"),
        ("song.mp3", r"^song.mp3 is of type audio/mpeg, and this model's engine takes no audio$"),
    ],
)
def test_what_the_engine_cannot_take_is_refused(files, name, said):
    with pytest.raises(MediaError, match=said):
        read_attachment(str(files / name), Sighted())


def test_a_file_goes_with_the_next_message_only(files, capsys):
    engine = Sighted()
    model = Model(engine, Tokenizer.default(), TEMPLATE, "about")
    conversation = TerminalConversation(model, Sampling(), None, None, lambda spec: model)
    with asyncio.Runner() as runner:
        for line in (
            f"/attach {files}/cat.gif",
            f"/attach {files}/song.mp3",
            "What is it?",
            "Sure?",
            f"/attach {files}/cat.gif",
            "/attach",
            "Yes?",
        ):
            assert conversation.turn(line, runner)
        conversation.turn("/retry", runner)
    notes = capsys.readouterr().err
    assert "With the next message: cat.gif." in notes
    assert "not attached: song.mp3 is of type audio/mpeg" in notes
    assert "No file is attached." in notes
    first, second, third, again = engine.seen
    assert first == ("user: <image>What is it?", ["image/gif"])
    assert second == ("user: <image>What is it?assistant: I see.user: Sure?", ["image/gif"])
    assert third == again
    assert third[1] == ["image/gif"]


def test_a_text_file_goes_with_the_only_message(recording, files):
    saved = files / "saved.json"
    result = run("chat", recording(ANSWER), "--attach", files / "note.md", stdin=f"What?\n/save {saved}\n")
    assert result.exit_code == 0, result.output
    parts = json.loads(saved.read_text("utf-8"))[0]["content"]
    assert [part["text"] for part in parts] == ["note.md:\n# Wörld\n\n", "What?"]
    refused = run("chat", recording(ANSWER), "--attach", files / "cat.gif", "--once", "a")
    assert refused.exit_code == 1
    assert "cat.gif is of type image/gif, and this model's engine takes no image" in refused.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_can_complete_commands_and_options(shell):
    completion = get_completion_class(shell)(main, {}, "tokenweir", "_TOKENWEIR_COMPLETE")
    assert "_TOKENWEIR_COMPLETE" in completion.source()
    assert [item.value for item in completion.get_completions([], "ch")] == ["chat", "check"]
    assert "--attach" in [item.value for item in completion.get_completions(["chat"], "--a")]
