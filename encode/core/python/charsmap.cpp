// Bindings of SentencePiece's files and character maps.

#include "normalizers/charsmap.h"
#include "normalizers/precompiled.h"
#include "normalizers/sentencepiece_normalizer.h"
#include "python/bindings.h"
#include "python/interop.h"
#include "vocabulary/sentencepiece_file.h"

namespace tokenweir {

namespace {

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace

void bind_charsmap(nb::module_& m) {
  nb::class_<Precompiled, NormalizerStep>(m, "Precompiled")
      .def(
          "__init__",
          [](Precompiled* self, const nb::bytes& charsmap) { new (self) Precompiled(Charsmap(view(charsmap))); },
          "charsmap"_a);

  nb::class_<SentencePieceText, NormalizerStep>(m, "SentencePieceText")
      .def(
          "__init__",
          [](SentencePieceText* self, const nb::bytes& charsmap, const std::vector<std::string>& user_defined,
             bool add_dummy_prefix, bool remove_extra_whitespaces, bool escape_whitespaces, bool suffix) {
            for (const std::string& piece : user_defined)
              if (piece.empty()) throw FileError("an empty user-defined piece");
            new (self) SentencePieceText(charsmap.size() ? Charsmap(view(charsmap)) : Charsmap(), user_defined,
                                         {add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, suffix});
          },
          "charsmap"_a, "user_defined"_a, nb::kw_only(), "add_dummy_prefix"_a, "remove_extra_whitespaces"_a,
          "escape_whitespaces"_a, "suffix"_a);

  m.def("sentencepiece_pieces", [](const nb::bytes& data) {
    const SentencePieceFile file(view(data));
    nb::list pieces;
    for (const std::string_view piece : file.pieces) pieces.append(nb::str(piece.data(), piece.size()));
    const nb::bytes scores(reinterpret_cast<const char*>(file.scores.data()), file.scores.size() * sizeof(float));
    const nb::bytes types(reinterpret_cast<const char*>(file.types.data()), file.types.size());
    return nb::make_tuple(pieces, scores, types, file.rest);
  });

  m.def(
      "protobuf_fields",
      [](const nb::bytes& data, size_t start, size_t end, const std::string& path, size_t most) {
        ProtobufMessage message(view(data), start, std::min(end, data.size()));
        nb::list fields;
        while (message.more() && fields.size() < most) {
          const auto field = message.next([&] { return path; });
          const nb::object value = field.wire == ProtobufMessage::kVarint ? nb::object(nb::int_(field.varint))
                                                                          : nb::make_tuple(field.at, field.end);
          fields.append(nb::make_tuple(field.number, static_cast<uint32_t>(field.wire), field.start, value));
        }
        return fields;
      },
      "data"_a, "start"_a, "end"_a, "path"_a, "most"_a);
}

}  // namespace tokenweir
