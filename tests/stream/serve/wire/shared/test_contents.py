"""Contents of messages: heads of data URLs."""

import pytest

from tokenweir.stream.serve.wire.shared.contents import InputFile, file_part
from tokenweir.stream.serve.wire.shared.errors import RequestError

LONG = 1_000_000


def refusal(url):
    with pytest.raises(RequestError) as caught:
        file_part(InputFile(file_data=url), "file")
    return caught.value.code


@pytest.mark.parametrize(
    "url",
    [
        "data:a/" + "b" * LONG,
        "data:" + "a" * LONG,
        "data:a/b" + ";" * LONG,
        "data:a/b" + ";c=d" * (LONG // 4),
        "data:text/plain;" + "b" * LONG,
        "data:a/" + "b/" * (LONG // 2),
        "data:a/b " + "b" * LONG,
    ],
    ids=lambda url: url[:18],
)
def test_data_urls_without_a_comma_are_refused_in_linear_time(url):
    assert refusal(url) == "unsupported_content"


@pytest.mark.parametrize("url", ["data:text/" + "b" * 65 + ";base64,YQ==", "data:" + "a" * 65 + "/plain;base64,YQ=="])
def test_media_types_have_at_most_64_characters_on_each_side(url):
    assert refusal(url) == "unsupported_content"


@pytest.mark.parametrize(
    "head", ["text/plain", "TEXT/x-c++", "text/" + "b" * 64, "text/plain;charset=utf-8", "text/plain "]
)
def test_the_text_of_a_file_begins_behind_the_comma(head):
    assert file_part(InputFile(file_data=f"data:{head};base64,YQ=="), "file") == {"type": "text", "text": "a"}
