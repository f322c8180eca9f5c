// Bindings of vocabularies.

#include <algorithm>
#include <optional>
#include "python/bindings.h"

#include "python/interop.h"
#include "python/vocabulary.h"
#include "vocabulary/vocabulary.h"

namespace tokenweir {

int64_t vocabulary_id(nb::handle value) {
  if (const auto id = integer(value)) return *id;
  throw Unsupported("a token id of more than 64 bits; ids from 0 to " + std::to_string(PairTable::kMaxId) + " fit");
}

namespace {

// Makes token ids from a mapping of names to ids.
TokenIds token_ids(nb::handle tokens) {
  if (nb::isinstance<TokenIds>(tokens)) return nb::cast<TokenIds>(tokens);
  nb::dict ids;
  ids.update(tokens);
  TokenIds::Named named;  // views of Python's strings, which the dictionary keeps alive
  named.reserve(ids.size());
  for (auto [name, id] : ids) named.emplace_back(utf8(name, "a token"), vocabulary_id(id));
  return TokenIds(named);
}

// Names as str, and as bytes.
struct TextNames {
  static std::optional<std::string_view> read(nb::handle name) {
    Py_ssize_t size;
    const char* text = PyUnicode_Check(name.ptr()) ? PyUnicode_AsUTF8AndSize(name.ptr(), &size) : nullptr;
    if (text) return std::string_view(text, static_cast<size_t>(size));
    PyErr_Clear();  // a str without a UTF-8 form is not a token
    return {};
  }
  static nb::object object(std::string_view name) { return text_object(name); }
  static TokenIds ids(const nb::dict& tokens) { return token_ids(tokens); }
};

struct ByteNames {
  static std::optional<std::string_view> read(nb::handle name) {
    if (!PyBytes_Check(name.ptr())) return {};
    const auto bytes = nb::borrow<nb::bytes>(name);
    return std::string_view(bytes.c_str(), bytes.size());
  }
  static nb::object object(std::string_view name) { return nb::bytes(name.data(), name.size()); }
  static TokenIds ids(const nb::dict& tokens) {
    TokenIds::Named named;  // views of Python's bytes, which the dictionary keeps alive
    for (auto [name, id] : tokens) {
      const auto bytes = nb::cast<nb::bytes>(name);
      named.emplace_back(std::string_view(bytes.c_str(), bytes.size()), vocabulary_id(id));
    }
    return TokenIds(named);
  }
};

template <class Names>
nb::object id_of(const TokenIds& ids, nb::handle name, nb::handle otherwise) {
  const auto text = Names::read(name);
  const uint32_t id = text ? ids.find(*text) : kNone;
  return id == kNone ? nb::borrow(otherwise) : nb::int_(id);
}

template <class Names>
nb::dict dict_of(const TokenIds& ids) {
  nb::dict dict;
  for (uint32_t id = 0; id < ids.names().size(); id++)
    if (ids.given()[id]) dict[Names::object(ids.names()[id])] = nb::int_(id);
  return dict;
}

// Adds the methods of a mapping to a class.
template <class Names, class Class>
void bind_mapping(nb::class_<Class>& mapping) {
  mapping.def(
             "__init__", [](Class* self, const nb::dict& tokens) { new (self) Class{Names::ids(tokens)}; }, "tokens"_a)
      .def("__len__", [](const Class& self) { return std::count(self.given().begin(), self.given().end(), true); })
      .def("__getitem__",
           [](const Class& self, nb::handle name) {
             nb::object id = id_of<Names>(self, name, nb::none());
             if (id.is_none()) throw nb::key_error(nb::cast<std::string>(nb::repr(name)).c_str());
             return id;
           })
      .def("__contains__",
           [](const Class& self, nb::handle name) { return !id_of<Names>(self, name, nb::none()).is_none(); })
      .def(
          "get",
          [](const Class& self, nb::handle name, nb::handle otherwise) { return id_of<Names>(self, name, otherwise); },
          "name"_a, "default"_a = nb::none())
      .def("__iter__", [](const Class& self) { return nb::iter(dict_of<Names>(self)); })
      .def_prop_ro("longest_probe", [](const Class& self) { return self.table()->longest_probe(); })
      .def("keys", [](const Class& self) { return dict_of<Names>(self).keys(); })
      .def("values", [](const Class& self) { return dict_of<Names>(self).values(); })
      .def("items", [](const Class& self) { return dict_of<Names>(self).items(); })
      .def("__eq__",
           [](const Class& self, nb::handle other) {
             if (nb::isinstance<Class>(other))
               return dict_of<Names>(self).equal(dict_of<Names>(nb::cast<Class>(other)));
             return dict_of<Names>(self).equal(other);
           })
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(self.type(), nb::make_tuple(dict_of<Names>(nb::cast<Class>(self))));
      });
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

  nb::class_<TokenIds> token_ids_class(m, "TokenIds");
  bind_mapping<TextNames>(token_ids_class);
  token_ids_class.def_static(
      "from_json",
      [](const Table8& json) { return TokenIds::from_json({reinterpret_cast<const char*>(json.data()), json.size()}); },
      "json"_a);

  nb::class_<RankIds> rank_ids_class(m, "RankIds");
  bind_mapping<ByteNames>(rank_ids_class);
  rank_ids_class
      .def_static(
          "read",
          [](const nb::bytes& data) -> std::optional<RankIds> {
            auto ids = TokenIds::from_ranks({data.c_str(), data.size()});
            if (!ids) return {};
            return RankIds{std::move(*ids)};
          },
          "data"_a)
      .def(
          "tokens",
          [](const RankIds& self, const std::vector<int64_t>& ids) {
            nb::dict tokens;
            for (const int64_t id : ids)
              if (id >= 0 && static_cast<size_t>(id) < self.given().size() && self.given()[static_cast<size_t>(id)])
                tokens[nb::int_(id)] = ByteNames::object(self.names()[static_cast<size_t>(id)]);
            return tokens;
          },
          "ids"_a);

  nb::class_<Vocabulary>(m, "Vocabulary")
      .def_static("byte_level", [](nb::handle tokens) { return Vocabulary(token_ids(tokens), Names::kAlphabet); })
      .def_static("ranks",
                  [](nb::handle tokens) {
                    const bool kept = nb::isinstance<RankIds>(tokens);
                    return Vocabulary(kept ? nb::cast<RankIds>(tokens) : ByteNames::ids(nb::cast<nb::dict>(tokens)),
                                      Names::kPlain);
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
