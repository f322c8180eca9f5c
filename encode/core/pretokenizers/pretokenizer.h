// Text to pieces, in stages. Each stage works inside the pieces of the stage before.
//
// Most pre-tokenizers only split, many with one automaton; their pieces are spans of the text itself. A stage that
// changes text takes each piece and passes on a changed copy, whose `AlignedText` maps it to the original.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "pretokenizers/aligned_text.h"
#include "pretokenizers/split.h"
#include "pretokenizers/text_change.h"

namespace tokenweir {

// A thread's scratch text for each stage that changes text.
struct PreTokenizerScratch {
  std::vector<ScratchText> texts;

  size_t capacity() const {
    size_t largest = 0;
    for (const ScratchText& text : texts) largest = std::max(largest, text.capacity());
    return largest;
  }
};

class PreTokenizer {
 public:
  explicit PreTokenizer(std::vector<std::shared_ptr<const PreTokenizerStage>> stages) : owned_(std::move(stages)) {
    for (const auto& stage : owned_) {
      stages_.push_back(
          {dynamic_cast<const Split*>(stage.get()), dynamic_cast<const TextChange*>(stage.get()), n_changes_});
      n_changes_ += stages_.back().change != nullptr;
      depends_on_start_ |= stages_.back().change && stages_.back().change->depends_on_start();
    }
  }
  PreTokenizer(const PreTokenizer&) = delete;

  // Whether the pieces depend on `first` of `split`.
  bool depends_on_start() const { return depends_on_start_; }

  // The scanner that finds all pieces by itself, or null.
  const Scanner* scanner() const { return stages_.size() == 1 && stages_[0].cut ? stages_[0].cut->scanner() : nullptr; }

  // Whether there are no stages: a text is one unchanged piece.
  bool is_identity() const { return stages_.empty(); }

  // Whether a piece begins at `at`, inside a text of valid UTF-8, whatever stands before and behind its two neighbours.
  // The first stage splits there, and later stages work inside its pieces.
  bool is_sync(const uint8_t* at) const { return !stages_.empty() && stages_[0].cut && stages_[0].cut->is_sync(at); }

  // Calls `piece(begin, end, source)` for each piece of [p, end), in order. If `piece` accepts `(begin, ends, n,
  // source)`, it gets several adjacent pieces at once, as from `Split::scan`. Pieces may lie in `scratch` and are valid
  // until the next split; `piece.flush()` is called before the text of earlier ones is overwritten. `first`: how many
  // bytes from `p` on are aligned to the original's start; 1 means the first character. With `Spans`, sources have
  // origins.
  template <bool Spans, class Visitor>
  void split(const uint8_t* p, const uint8_t* end, size_t first, PreTokenizerScratch& scratch, Visitor& piece) const {
    if (p == end) return;
    const AlignedText source{p, end, nullptr, p + first};
    if (n_changes_ > 0) {
      scratch.texts.resize(n_changes_);
      for (ScratchText& text : scratch.texts) text.clear();
      return StageWalk<Spans, Visitor>{*this, scratch, piece}.from(0, p, end, source);
    }
    const auto use = [&](const uint8_t* b, const uint8_t* e) { piece(b, e, source); };
    if (stages_.size() != 1) return split_from(0, p, end, use);
    const Split& only = *stages_[0].cut;  // the usual case, without a call per stage
    if constexpr (std::is_invocable_v<Visitor&, const uint8_t*, const uint32_t*, size_t, const AlignedText&>)
      if (only.scanner()) {
        return only.scan(p, end, [&](const uint8_t* b, const uint32_t* ends, size_t n) { piece(b, ends, n, source); });
      }
    only.split(p, end, use);
  }

 private:
  struct Stage {
    const Split* cut;
    const TextChange* change;  // one of the two is null
    size_t n_changes_before;
  };

  template <class Piece>
  void split_from(size_t stage, const uint8_t* p, const uint8_t* end, Piece& piece) const {
    if (stage == stages_.size())
      piece(p, end);
    else
      stages_[stage].cut->split(p, end,
                                [&](const uint8_t* b, const uint8_t* e) { split_from(stage + 1, b, e, piece); });
  }

  // Runs the stages recursively, where some stage changes text.
  template <bool Spans, class Visitor>
  struct StageWalk {
    const PreTokenizer& self;
    PreTokenizerScratch& scratch;
    Visitor& piece;

    void from(size_t stage, const uint8_t* p, const uint8_t* end, const AlignedText& source) {
      if (stage == self.stages_.size()) return piece(p, end, source);
      const auto& [cut, change, n_changes_before] = self.stages_[stage];
      if (cut) return cut->split(p, end, [&](const uint8_t* b, const uint8_t* e) { from(stage + 1, b, e, source); });
      if (change->is_unchanged(p, end, p < source.first_end)) return from(stage + 1, p, end, source);
      ScratchText& text = scratch.texts[n_changes_before];
      text.begin(change->max_bytes(p, end), Spans, [&] { piece.flush(); });
      change->apply(p, end, source, Spans, text);
      const AlignedText changed = text.piece(Spans);
      from(stage + 1, changed.start, changed.end, changed);
    }
  };

  std::vector<std::shared_ptr<const PreTokenizerStage>> owned_;
  std::vector<Stage> stages_;
  size_t n_changes_ = 0;
  bool depends_on_start_ = false;
};

}  // namespace tokenweir
