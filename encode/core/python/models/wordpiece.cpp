// Binding of WordPiece.

#include "models/wordpiece.h"
#include "python/bindings.h"
#include "python/interop.h"
#include "python/vocabulary.h"

namespace tokenweir {

void bind_wordpiece(nb::module_& m) {
  nb::class_<WordPiece, Model>(m, "WordPiece")
      .def(
          "__init__",
          [](WordPiece* self, nb::handle vocab, const std::string& unknown, const std::string& prefix,
             nb::handle max_chars, const std::vector<uint32_t>& control) {
            std::vector<Trie::Key> tokens;  // views of strings that `vocab` owns
            if (nb::isinstance<TokenIds>(vocab)) {
              const auto& ids = nb::cast<const TokenIds&>(vocab);
              tokens.reserve(ids.names().size());
              for (uint32_t id = 0; id < ids.names().size(); id++)
                if (ids.given()[id]) tokens.push_back({ids.names()[id], id});
            } else {
              for (auto [name, value] : nb::cast<nb::dict>(vocab)) {
                const int64_t id = vocabulary_id(value);
                if (id < 0 || id > PairTable::kMaxId)
                  throw Unsupported("token id " + std::to_string(id) + "; ids from 0 to " +
                                    std::to_string(PairTable::kMaxId) + " fit");
                tokens.push_back({utf8(name, "a token"), static_cast<uint32_t>(id)});
              }
            }
            const auto most = integer(max_chars);
            if (!most || *most < 0)
              throw FileError("model: max_input_chars_per_word is " + nb::cast<std::string>(nb::str(max_chars)));
            new (self) WordPiece(tokens, unknown, prefix, static_cast<uint64_t>(*most), control);
          },
          "vocab"_a, "unk_token"_a, "prefix"_a, "max_chars"_a, "control"_a);
}

}  // namespace tokenweir
