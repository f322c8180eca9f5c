"""Text to ids and back. No async anywhere in this folder.

The way from a file to ids:

    formats/     one reader a file format; each fills a `TokenizerSpec`
    spec/        the description of a tokenizer, in HuggingFace's component terms
    pattern/     a pre-tokenizer's regular expression to a small automaton, over the tables of unicode/
    build.py     a spec to the compiled core, component by component: components/
    core/        the C++ core; its README lists its folders
    tokenizer.py `Tokenizer`, the public class; decode.py and decode_batch.py decode incrementally

`sequence_encoder.py` encodes pairs and words with offsets, into the columns of `encoding.py`; `selection.py` chooses the added
tokens to match; `text_chunks.py` truncates and cuts texts. `table_cache.py` keeps loaded tokenizers in the folder of `cache.py`.
The types and checks of arguments and results are in `texts.py`, `ids.py`, `options.py`, `encoded.py` and `errors.py`.
"""
