"""Text to ids and back. No async anywhere in this folder.

The way from a file to ids:

    formats/     one reader a file format; each fills a `TokenizerSpec`
    spec/        the description of a tokenizer, in HuggingFace's component terms
    pattern/     a pre-tokenizer's regular expression to a small automaton, over the tables of unicode/
    build.py     a spec to the compiled core, component by component: components/
    core/        the C++ core; its README lists its folders
    tokenizer.py `Tokenizer`, the public class

The parts of its methods are in `encoding/`, what they take and give in `values/`. `decode/` decodes incrementally. `base/` has the
options, and asks for the system; `errors.py` has all exceptions. `files.py` reads the files that users name, `table_cache.py`
keeps loaded tokenizers in a folder, and `per_tokenizer.py` caches facts about a tokenizer in memory. `reference.py` is
byte-level BPE in plain Python, to be read first.
"""
