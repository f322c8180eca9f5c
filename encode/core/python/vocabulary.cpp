// Vocabularies as Python sees them.

#include "python/bindings.h"
#include "python/interop.h"
#include "python/vocabulary.h"
#include "vocabulary/rank_file.h"
#include "vocabulary/vocabulary.h"

namespace tokenweir {

int64_t vocabulary_id(nb::handle value) {
  if (const auto id = integer(value)) return *id;
  throw Unsupported("a token id of more than 64 bits; ids from 0 to " + std::to_string(PairTable::kMaxId) + " fit");
}

namespace {

// From a mapping of names to ids.
TokenIds token_ids(nb::handle tokens) {
  if (nb::isinstance<TokenIds>(tokens)) return nb::cast<TokenIds>(tokens);
  nb::dict ids;
  ids.update(tokens);
  TokenIds::Named named;  // views of Python's strings, which the dictionary keeps alive
  named.reserve(ids.size());
  for (auto [name, id] : ids) named.emplace_back(utf8(name, "a token"), vocabulary_id(id));
  return TokenIds(named);
}

nb::object id_of(const TokenIds& ids, nb::handle name, nb::handle otherwise) {
  Py_ssize_t size;
  const char* text = PyUnicode_Check(name.ptr()) ? PyUnicode_AsUTF8AndSize(name.ptr(), &size) : nullptr;
  if (!text) PyErr_Clear();  // what is no text is no token
  const uint32_t id = text ? ids.find({text, static_cast<size_t>(size)}) : kNone;
  return id == kNone ? nb::borrow(otherwise) : nb::int_(id);
}

template <class Use>
void for_each_token(const TokenIds& ids, Use&& use) {
  for (uint32_t id = 0; id < ids.names().size(); id++)
    if (ids.given()[id]) use(text_object(ids.names()[id]), nb::int_(id));
}

nb::dict dict_of(const TokenIds& ids) {
  nb::dict dict;
  for_each_token(ids, [&](nb::object name, nb::object id) { dict[name] = id; });
  return dict;
}

}  // namespace

void bind_vocabulary(nb::module_& m) {
  m.def("byte_alphabet", [] {
    std::string letters;
    for (int byte = 0; byte < 256; byte++) letters += ByteAlphabet().letter(static_cast<uint8_t>(byte));
    return letters;
  });

  m.def("utf8_bytes", [] {
    std::string bytes;
    for (int byte = 0; byte < 256; byte++)
      if (utf8_contains(static_cast<uint8_t>(byte))) bytes += static_cast<char>(byte);
    return nb::bytes(bytes.data(), bytes.size());
  });

  m.def(
      "read_ranks",
      [](const nb::bytes& data) -> std::optional<nb::dict> {
        RankFile file({data.c_str(), data.size()});
        nb::dict ranks;
        std::string token;
        std::vector<bool> seen;
        size_t lines = 0;
        for (int64_t rank; !file.ended(); lines++) {
          if (!file.line(token, rank) || rank > PairTable::kMaxId) return {};
          const size_t at = static_cast<size_t>(rank);
          if (at >= seen.size()) seen.resize(std::max(at + 1, 2 * seen.size()));
          if (seen[at]) return {};
          seen[at] = true;
          ranks[nb::bytes(token.data(), token.size())] = rank;
        }
        if (lines == 0 || ranks.size() != lines) return {};
        return ranks;
      },
      "data"_a);

  nb::class_<TokenIds>(m, "TokenIds")
      .def("__init__", [](TokenIds* self, nb::dict tokens) { new (self) TokenIds(token_ids(tokens)); }, "tokens"_a)
      .def_static(
          "from_json",
          [](const Table8& json) {
            return TokenIds::from_json({reinterpret_cast<const char*>(json.data()), json.size()});
          },
          "json"_a)
      .def("__len__",
           [](const TokenIds& self) { return std::count(self.given().begin(), self.given().end(), true); })
      .def("__getitem__",
           [](const TokenIds& self, nb::handle name) {
             nb::object id = id_of(self, name, nb::none());
             if (id.is_none()) throw nb::key_error(nb::cast<std::string>(nb::repr(name)).c_str());
             return id;
           })
      .def("__contains__", [](const TokenIds& self, nb::handle name) { return !id_of(self, name, nb::none()).is_none(); })
      .def("get", id_of, "name"_a, "default"_a = nb::none())
      .def("__iter__", [](const TokenIds& self) { return nb::iter(dict_of(self)); })
      .def("keys", [](const TokenIds& self) { return dict_of(self).keys(); })
      .def("values", [](const TokenIds& self) { return dict_of(self).values(); })
      .def("items", [](const TokenIds& self) { return dict_of(self).items(); })
      .def("__eq__",
           [](const TokenIds& self, nb::handle other) {
             if (nb::isinstance<TokenIds>(other)) return dict_of(self).equal(dict_of(nb::cast<TokenIds>(other)));
             return dict_of(self).equal(other);
           })
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(self.type(), nb::make_tuple(dict_of(nb::cast<TokenIds>(self))));
      });

  nb::class_<Vocabulary>(m, "Vocabulary")
      .def_static("byte_level", [](nb::handle tokens) { return Vocabulary(token_ids(tokens), Names::kAlphabet); })
      .def_static("ranks",
                  [](nb::dict tokens) {
                    TokenIds::Named named;  // views of Python's bytes, which the dictionary keeps alive
                    for (auto [name, id] : tokens) {
                      const auto bytes = nb::cast<nb::bytes>(name);
                      named.emplace_back(std::string_view(bytes.c_str(), bytes.size()), vocabulary_id(id));
                    }
                    return Vocabulary(TokenIds(named), Names::kPlain);
                  })
      .def_static("plain",
                  [](nb::handle tokens) {
                    if (nb::hasattr(tokens, "keys")) return Vocabulary(token_ids(tokens), Names::kPlain);
                    const nb::list list(tokens);
                    TokenIds::Named named;  // views of Python's strings, which the list keeps alive
                    for (nb::handle name : list)
                      named.emplace_back(utf8(name, "a token"), static_cast<int64_t>(named.size()));
                    return Vocabulary(TokenIds(named), Names::kPlain);
                  })
      .def("__len__", &Vocabulary::size);
}

}  // namespace tokenweir
