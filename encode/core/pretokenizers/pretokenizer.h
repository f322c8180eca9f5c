// Text to pieces, by stages. Each stage works inside the pieces of the stage before.
//
// Most pre-tokenizers only split, many with one automaton; their pieces are spans of the text itself. A stage that changes
// text takes each piece and passes on a changed copy. `Frame` leads from the copy back to the original.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "pretokenizers/split.h"
#include "pretokenizers/frame.h"
#include "pretokenizers/text_change.h"

namespace tokenweir {

// Where a thread keeps changed text, for each stage that changes any.
struct PreTokenizerScratch {
  std::vector<ChangedText> texts;

  size_t capacity() const {
    size_t largest = 0;
    for (const ChangedText& text : texts) largest = std::max(largest, text.capacity());
    return largest;
  }
};

class PreTokenizer {
 public:
  explicit PreTokenizer(std::vector<std::shared_ptr<const PreTokenizerStage>> stages) : owned_(std::move(stages)) {
    for (const auto& stage : owned_) {
      stages_.push_back({dynamic_cast<const Split*>(stage.get()), dynamic_cast<const TextChange*>(stage.get()), n_changes_});
      n_changes_ += stages_.back().change != nullptr;
      looks_at_beginning_ |= stages_.back().change && stages_.back().change->looks_at_beginning();
    }
  }
  PreTokenizer(const PreTokenizer&) = delete;

  // Whether `first` matters.
  bool looks_at_beginning() const { return looks_at_beginning_; }

  // The scanner that alone finds all pieces; or null.
  const Scanner* scanner() const { return stages_.size() == 1 && stages_[0].cut ? stages_[0].cut->scanner() : nullptr; }

  // Whether a text is one piece, as it is.
  bool cuts_nothing() const { return stages_.empty(); }

  // Calls `piece(begin, end, frame)` for each piece of [p, end), in order, or `piece(begin, ends, n, frame)` for several
  // neighbours, as `Split::scan` has them, where `piece` takes these. The pieces may lie in `scratch`;
  // `piece.flush()` is called before the text of earlier ones is overwritten, and they hold until the next split.
  // `first`: how many of the bytes from `p` on stand at the very beginning of the original; one says that its first
  // character does. With `Spans`, frames have origins.
  template <bool Spans, class Visitor>
  void split(const uint8_t* p, const uint8_t* end, size_t first, PreTokenizerScratch& scratch, Visitor& piece) const {
    if (p == end) return;
    const Frame frame{p, end, nullptr, p + first};
    if (n_changes_ > 0) {
      scratch.texts.resize(n_changes_);
      for (ChangedText& text : scratch.texts) text.clear();
      return Walk<Spans, Visitor>{*this, scratch, piece}.from(0, p, end, frame);
    }
    const auto use = [&](const uint8_t* b, const uint8_t* e) { piece(b, e, frame); };
    if (stages_.size() != 1) return cut_from(0, p, end, use);
    const Split& only = *stages_[0].cut;  // the usual case, without a call per stage
    if constexpr (std::is_invocable_v<Visitor&, const uint8_t*, const uint32_t*, size_t, const Frame&>)
      if (only.scanner()) {
        return only.scan(p, end, [&](const uint8_t* b, const uint32_t* ends, size_t n) { piece(b, ends, n, frame); });
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
  void cut_from(size_t stage, const uint8_t* p, const uint8_t* end, Piece& piece) const {
    if (stage == stages_.size())
      piece(p, end);
    else
      stages_[stage].cut->split(p, end, [&](const uint8_t* b, const uint8_t* e) { cut_from(stage + 1, b, e, piece); });
  }

  // The same where some stage changes text.
  template <bool Spans, class Visitor>
  struct Walk {
    const PreTokenizer& self;
    PreTokenizerScratch& scratch;
    Visitor& piece;

    void from(size_t stage, const uint8_t* p, const uint8_t* end, const Frame& frame) {
      if (stage == self.stages_.size()) return piece(p, end, frame);
      const auto& [cut, change, n_changes_before] = self.stages_[stage];
      if (cut) return cut->split(p, end, [&](const uint8_t* b, const uint8_t* e) { from(stage + 1, b, e, frame); });
      if (change->keeps(p, end, p < frame.first_end)) return from(stage + 1, p, end, frame);
      ChangedText& text = scratch.texts[n_changes_before];
      text.begin(change->room(p, end), Spans, [&] { piece.flush(); });
      change->apply(p, end, frame, Spans, text);
      const Frame changed = text.frame(Spans);
      from(stage + 1, changed.start, changed.end, changed);
    }
  };

  std::vector<std::shared_ptr<const PreTokenizerStage>> owned_;
  std::vector<Stage> stages_;
  size_t n_changes_ = 0;
  bool looks_at_beginning_ = false;
};

}  // namespace tokenweir
