// Bindings of Encoder and its parts.

#include <optional>

#include "encoder/batch.h"
#include "memory/page_pool.h"
#include "python/arrays/texts.h"
#include "python/bindings.h"
#include "python/decoders/decoding.h"
#include "python/interop.h"
#include "python/py_encoder.h"

namespace tokenweir {

namespace {

// Converts the guarded offsets of one text, or of each of several.
template <class Offsets>
Offsets guarded_of(nb::handle given) {
  Offsets found;
  if (!nb::try_cast(given, found)) throw nb::type_error("guarded must be ascending offsets of characters, from 0 on");
  return found;
}

// Makes a call from the arguments of a method.
PyEncoder::Call call_of(const PyEncoder& self, nb::handle source, bool parse_special, nb::handle guarded) {
  if (PyList_Check(source.ptr()) || PyTuple_Check(source.ptr()))
    throw nb::type_error("text must be one str, not several: encode_batch() takes those");
  const std::string_view text = utf8(source);
  return {self, text, {parse_special, byte_offsets(text, guarded_of<std::vector<size_t>>(guarded))}};
}

// Returns a method that encodes a text to `result(encoder, ids)`.
template <class Result>
auto encoding(Result&& result) {
  return [result](PyEncoder& self, nb::handle text, bool parse_special, nb::handle guarded,
                  const PyEncoder::Affix& prefix, const PyEncoder::Affix& suffix) {
    PyEncoder::Call call = call_of(self, text, parse_special, guarded);
    call.run(prefix, suffix);
    return result(self, call.w->ids);
  };
}

}  // namespace

void bind_parts(nb::module_& m) {
  nb::class_<Model>(m, "Model")
      .def(
          "encode",
          [](const Model& self, nb::handle source, bool guarded) {
            const std::string_view text = utf8(source);
            ModelScratch scratch;
            IdBuffer ids;
            std::vector<Span> spans;
            if (!text.empty())
              self.encode(reinterpret_cast<const uint8_t*>(text.data()), text.size(), guarded, scratch, ids, &spans);
            return nb::make_tuple(std::vector<int32_t>(ids.data(), ids.data() + ids.size()),
                                  character_offsets(text, spans));
          },
          "piece"_a, "guarded"_a = false)
      .def(
          "encode_cut",
          [](const Model& self, nb::handle source, bool guarded) {
            const std::string_view text = utf8(source);
            ModelScratch scratch;
            std::vector<std::vector<int32_t>> parts;
            const auto *p = reinterpret_cast<const uint8_t*>(text.data()), *end = p + text.size();
            for (const uint8_t* cut; p < end; p = cut) {
              cut = self.split_points() ? self.split_points()->next(p, end) : end;
              IdBuffer ids;
              self.encode(p, cut - p, guarded, scratch, ids, nullptr);
              parts.emplace_back(ids.data(), ids.data() + ids.size());
            }
            return parts;
          },
          "piece"_a, "guarded"_a = false);
  nb::class_<AddedTokens>(m, "AddedTokens")
      .def(
          "__init__",
          [](AddedTokens* self, const std::vector<std::tuple<std::string, uint32_t, bool, bool, bool>>& tokens,
             const std::vector<uint32_t>& word_flips) {
            std::vector<AddedToken> built;
            for (const auto& [content, id, single_word, lstrip, rstrip] : tokens)
              built.push_back({content, id, single_word, lstrip, rstrip});
            new (self) AddedTokens(std::move(built), {word_flips});
          },
          "tokens"_a, "word_flips"_a)
      .def_prop_ro("tokens",
                   [](const AddedTokens& self) {
                     nb::list tokens;
                     for (const AddedToken& t : self.tokens())
                       tokens.append(nb::make_tuple(nb::bytes(t.content.data(), t.content.size()), t.id,
                                                    t.single_word || t.lstrip || t.rstrip));
                     return tokens;
                   })
      .def_prop_ro("trie", [](const AddedTokens& self) {
        return nb::make_tuple(rows<uint32_t>(self.trie().units()), self.trie().root());
      });
}

void bind_encoder(nb::module_& m) {
  m.def("kept_bytes", &PagePool::kept_bytes);
  nb::class_<PyEncoder>(m, "Encoder")
      .def(
          "__init__",
          [](PyEncoder* self, std::shared_ptr<Normalizer> normalizer, std::shared_ptr<PreTokenizer> pre_tokenizer,
             std::shared_ptr<Model> model, const AddedTokens& raw, const AddedTokens& normalized,
             const AddedTokens& own, const PyTokenBytes& tokens, bool by_characters, bool guarded) {
            new (self) PyEncoder{Encoder(std::move(normalizer), std::move(pre_tokenizer), std::move(model), raw,
                                         normalized, own, by_characters, guarded),
                                 ObjectCache(tokens.table.size())};
          },
          "normalizer"_a, "pre_tokenizer"_a, "model"_a, "raw"_a, "normalized"_a, "own"_a, "tokens"_a,
          "by_characters"_a = false, "guarded"_a = false)
      .def(
          "set_affixes",
          [](PyEncoder& self, PyEncoder::Affix prefix, PyEncoder::Affix suffix) {
            self.prefix = std::move(prefix);
            self.suffix = std::move(suffix);
          },
          "prefix"_a, "suffix"_a)
      .def("encode", encoding([](PyEncoder& self, IdBuffer& ids) { return self.to_list(ids); }), "text"_a.none(),
           "parse_special"_a, "guarded"_a, "prefix"_a, "suffix"_a)
      .def("encode_array", encoding([](PyEncoder&, IdBuffer& ids) { return id_array(ids); }), "text"_a.none(),
           "parse_special"_a, "guarded"_a, "prefix"_a, "suffix"_a)
      .def(
          "encode_with_offsets",
          [](PyEncoder& self, nb::handle text, bool parse_special, nb::handle guarded) {
            PyEncoder::Call call = call_of(self, text, parse_special, guarded);
            call.run<true>();
            return nb::make_tuple(self.to_list(call.w->ids), character_offsets(call.text, call.w->spans),
                                  call.w->called, to_numpy(call.w->words));
          },
          "text"_a.none(), "parse_special"_a, "guarded"_a)
      .def(
          "count",
          [](PyEncoder& self, nb::handle text, bool parse_special, nb::handle guarded) {
            PyEncoder::Call call = call_of(self, text, parse_special, guarded);
            call.run();
            return call.w->ids.size();
          },
          "text"_a.none(), "parse_special"_a, "guarded"_a)
      .def(
          "encode_batch",
          [](PyEncoder& self, nb::handle source, bool parse_special, nb::handle guarded_texts, size_t threads,
             const PyEncoder::Affix& prefix, const PyEncoder::Affix& suffix, bool offsets, size_t limit) {
            Texts texts(source);
            texts.check_utf8();
            const std::vector<std::string_view>& views = texts.views;
            auto guarded = guarded_of<std::vector<std::vector<size_t>>>(guarded_texts);
            if (!guarded.empty() && guarded.size() != views.size())
              throw nb::value_error(("guarded has " + std::to_string(guarded.size()) + " entries for " +
                                     std::to_string(views.size()) + " texts")
                                        .c_str());
            if (!guarded.empty()) texts.convert();
            for (size_t i = 0; i < guarded.size(); i++) guarded[i] = byte_offsets(views[i], guarded[i]);
            Batch batch(self.encoder, views, guarded, parse_special, prefix, suffix, offsets, limit);
            {
              std::optional<GilRelease> release;
              batch.run(
                  threads, [&](size_t first, size_t end) { texts.convert(first, end); }, [&] { release.emplace(); });
            }
            nb::object traced = nb::none();
            if (offsets) traced = nb::make_tuple(span_array(batch.spans()), batch.called(), to_numpy(batch.words()));
            return nb::make_tuple(id_array(batch.ids()), to_numpy(batch.take_offsets(), {views.size() + 1}), traced);
          },
          "texts"_a, "parse_special"_a, "guarded"_a, "threads"_a, "prefix"_a, "suffix"_a, "offsets"_a = false,
          "limit"_a = 0);
}

}  // namespace tokenweir
