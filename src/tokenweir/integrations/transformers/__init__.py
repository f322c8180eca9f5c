"""tokenweir inside transformers and tokenizers.

patch.py has `patch_transformers()`. backend.py is an object with the interface of `tokenizers.Tokenizer`, encoding.py has that of its
`Encoding`, and decode_stream.py that of `tokenizers.decoders.DecodeStream`. batches.py is what a backend encodes: ids, truncation,
padding (tensors.py makes tensors of them); inputs.py checks the forms of inputs. patched_tokenizer.py is the class in the place of
`tokenizers.Tokenizer` under the patch, and chat_templates.py has templates for `apply_chat_template`.
"""
