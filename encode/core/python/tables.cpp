// Bindings of a tokenizer's tables as a block for a file (memory/table_file.h).

#include <optional>
#include <variant>
#include "python/bindings.h"

#include "memory/table_file.h"
#include "models/bpe.h"
#include "models/character_bpe.h"
#include "python/decoders/decoding.h"
#include "python/interop.h"
#include "python/vocabulary.h"
#include "vocabulary/merge_ids.h"
#include "vocabulary/merges.h"

namespace tokenweir {

namespace {

enum class Kind : uint8_t { kMerges, kRanks, kCharacters };

// Counts the merges in a model's tables.
template <class Model>
size_t count_merges(const Model& model) {
  size_t n = model.omitted().size();
  model.pairs().for_each([&n](uint32_t, uint32_t, uint32_t) { n++; });
  return n;
}

// The tables of a block, which are read in the order of the members.
class KeptTables {
 public:
  KeptTables(const TableBlock& block, size_t start) : block_(block), reader_(block_, start) {
    reader_(kind_, ids_, lists_merges_, merges_);
    if (kind_ > static_cast<uint8_t>(Kind::kCharacters)) throw FileError("tables of an unknown kind");
    if (static_cast<Kind>(kind_) == Kind::kCharacters)
      model_ = std::make_shared<CharacterBpe>(reader_);
    else
      model_ = std::make_shared<Bpe>(reader_);
  }

  nb::object ids() const {
    if (static_cast<Kind>(kind_) == Kind::kRanks) return nb::cast(RankIds{ids_});
    return nb::cast(ids_);
  }

  std::optional<Merges> merges() const {
    if (static_cast<Kind>(kind_) == Kind::kRanks) return {};
    if (lists_merges_) return merges_;
    const auto later = [this](const auto& model) {
      return Merges::lazy([pairs = model->pairs(), omitted = model->omitted(), names = ids_.names()] {
        return listed_merges(pairs, omitted, names);
      });
    };
    return std::visit(later, model_);
  }

  std::shared_ptr<Model> model(const std::vector<uint32_t>& control) {
    const auto controlled = [&](const auto& model) -> std::shared_ptr<Model> {
      model->set_control(control);
      return model;
    };
    return std::visit(controlled, model_);
  }

  std::shared_ptr<PyTokenBytes> token_bytes(Decoding decoding) {
    TokenBytes table(std::move(decoding), reader_);
    reader_.end();
    const size_t size = table.size();
    return std::shared_ptr<PyTokenBytes>(new PyTokenBytes{std::move(table), ObjectCache(size)});
  }

 private:
  TableBlock block_;
  TableReader reader_;
  uint8_t kind_ = 0;
  TokenIds ids_;
  bool lists_merges_ = false;  // the block has the merge list, because the pair table has not all merges
  Merges merges_;
  std::variant<std::shared_ptr<Bpe>, std::shared_ptr<CharacterBpe>> model_;
};

}  // namespace

void bind_tables(nb::module_& m) {
  nb::class_<TableBlock>(m, "TableBlock")
      .def(nb::init<size_t>(), "size"_a)
      .def_prop_ro(
          "memory",
          [](const TableBlock& self) {
            auto* owner = new std::shared_ptr<const void>(self.owner());
            nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
            return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(self.data(), {self.size()}, capsule);
          },
          nb::rv_policy::reference);

  m.def("checksum", [](const Table8& bytes) { return checksum(bytes.data(), bytes.size()); }, "bytes"_a);

  m.def(
      "keep_tables",
      [](nb::handle ids, std::optional<Merges> merges, const Model& model,
         const PyTokenBytes& tokens) -> std::optional<nb::ndarray<nb::numpy, uint8_t>> {
        TableWriter writer;
        const bool ranks = nb::isinstance<RankIds>(ids);
        const TokenIds& names = ranks ? nb::cast<const RankIds&>(ids) : nb::cast<const TokenIds&>(ids);
        const auto write = [&](Kind kind, const auto& kept) {
          const bool lists_merges = merges && merges->size() != count_merges(kept);
          writer(static_cast<uint8_t>(kind), names, lists_merges, lists_merges ? *merges : Merges(), kept,
                 tokens.table);
          return to_numpy(writer.block());
        };
        if (const auto* bpe = dynamic_cast<const Bpe*>(&model))
          return write(ranks ? Kind::kRanks : Kind::kMerges, *bpe);
        if (const auto* bpe = dynamic_cast<const CharacterBpe*>(&model)) return write(Kind::kCharacters, *bpe);
        return {};
      },
      "ids"_a, "merges"_a.none(), "model"_a, "tokens"_a);

  nb::class_<KeptTables>(m, "KeptTables")
      .def(nb::init<const TableBlock&, size_t>(), "block"_a, "start"_a)
      .def_prop_ro("ids", &KeptTables::ids)
      .def_prop_ro("merges", &KeptTables::merges)
      .def("model", &KeptTables::model, "control"_a)
      .def(
          "token_bytes",
          [](KeptTables& self, nb::handle token, Spelling spelling, nb::handle run, nb::handle text,
             FirstUntil first_until) { return self.token_bytes(decoding_of(token, spelling, run, text, first_until)); },
          "token"_a, "spelling"_a, "run"_a, "text"_a, "first_until"_a);
}

}  // namespace tokenweir
