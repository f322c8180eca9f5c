"""Text to ids and back. No async anywhere in this folder.

The way from a file to ids:

    formats/     one reader a file format; each fills a `TokenizerSpec`
    spec/        the description of a tokenizer, in HuggingFace's component terms
    pattern/     a pre-tokenizer's regular expression to a small automaton, over the tables of unicode/
    build.py     a spec to the compiled core, component by component: components/
    core/        the C++ core; its README lists its folders
    tokenizer.py `Tokenizer`, the public class

The parts of its methods are in `encoding/` and `decode/`, which also decodes incrementally; what they take and give is checked and
described in `values/`, `options.py` and `errors.py`. `files.py` reads the files that users name, and `table_cache.py` keeps loaded
tokenizers in the folder of `cache.py`; `per_tokenizer.py` caches facts about a tokenizer in memory. `reference.py` is byte-level
BPE in plain Python, to be read first.
"""
