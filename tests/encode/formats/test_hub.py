"""Tokenizers from the cache of the HuggingFace hub, laid out as `huggingface_hub` lays it out."""

import shutil
from pathlib import Path

import pytest
from case_tables import cases

import tokenweir
from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.formats.hub import cache_folder
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)

EMBEDDED = Path(tokenweir.__file__).parent / "encode" / "data"
COMMIT = "a" * 40
VARIABLES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(cache, name, *, commit=COMMIT, refs=("main",), files=("tokenizer.json", "tokenizer_config.json")):
    """Put the embedded tokenizer there under a name, with links from snapshots to blobs."""
    model = cache / f"models--{name.replace('/', '--')}"
    (model / "blobs").mkdir(parents=True, exist_ok=True)
    snapshot = model / "snapshots" / commit
    snapshot.mkdir(parents=True)
    for number, file in enumerate(files):
        shutil.copy(EMBEDDED / file, model / "blobs" / f"{number}")
        (snapshot / file).symlink_to(Path("../../blobs") / f"{number}")
    for ref in refs:
        (model / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
        (model / "refs" / ref).write_text(commit)


@pytest.mark.parametrize("name", ["org/model-1.5", "plain"])
def test_a_name_in_the_cache(home, name):
    put(home / ".cache/huggingface/hub", name)
    tok = Tokenizer.from_pretrained(name)
    assert tok.encode("A weir") == Tokenizer.default().encode("A weir")
    assert tok.eos_ids


def test_revisions(home):
    cache = home / ".cache/huggingface/hub"
    put(cache, "org/model", commit="b" * 40, refs=("v1", "refs/pr/7"))
    for revision in ("v1", "refs/pr/7", "b" * 40):
        assert Tokenizer.from_pretrained("org/model", revision=revision).vocab_size
    with pytest.raises(TokenizerFileError) as caught:
        Tokenizer.from_pretrained("org/model")  # main was never fetched
    assert str(caught.value) == (
        f"org/model is not in the hub's cache at {cache}, and nothing is fetched here: first run hf download org/model"
    )
    with pytest.raises(TokenizerFileError, match="^org/model at v2 is not in .* hf download org/model --revision v2$"):
        Tokenizer.from_pretrained("org/model", revision="v2")


@pytest.mark.parametrize(("variables", "folder"), CASES["where_the_cache_is"])
def test_where_the_cache_is(monkeypatch, variables, folder):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(folder).expanduser()


def test_a_snapshot_without_a_tokenizer(home):
    put(home / ".cache/huggingface/hub", "org/model", files=("generation_config.json",))
    with pytest.raises(TokenizerFileError, match=f"{COMMIT}: no tokenizer.json, tekken.json"):
        Tokenizer.from_pretrained("org/model")


@pytest.mark.parametrize("name", ["../etc", "a/b/c", "/abs", "org/..", "", "a b", "./folder", "tokenizer.json"])
def test_what_is_no_name(name):
    with pytest.raises(
        ValueError, match=r"is not a name on the hub such as 'Qwen/Qwen3-8B'; for files write Tokenizer"
    ):
        Tokenizer.from_pretrained(name)
    with pytest.raises(ValueError, match="^None is not a name on the hub such as 'Qwen/Qwen3-8B'$"):
        Tokenizer.from_pretrained(None)


@pytest.mark.parametrize("revision", ["../../x", "", "/etc", "a b", None])
def test_what_is_no_revision(revision):
    with pytest.raises(ValueError, match="is not a revision: a branch, a tag or a commit's hash$"):
        Tokenizer.from_pretrained("org/model", revision=revision)


def test_a_reference_that_leads_out_of_the_cache(home):
    put(home / ".cache/huggingface/hub", "org/model")
    (home / ".cache/huggingface/hub/models--org--model/refs/main").write_text("../../../..")
    with pytest.raises(TokenizerFileError, match="is not in the hub's cache"):
        Tokenizer.from_pretrained("org/model")


def test_a_name_where_a_path_is_wanted():
    for name in ("Qwen/Qwen3-8B", "gpt2"):
        with pytest.raises(TokenizerFileError) as caught:
            Tokenizer.from_file(name)
        assert str(caught.value) == (
            f"{name}: no such file or folder; for a model in the hub's cache write Tokenizer.from_pretrained({name!r})"
        )
    with pytest.raises(TokenizerFileError, match="^missing.json: No such file or directory$"):
        Tokenizer.from_file("missing.json")
