// One long text on several threads: each encodes a part, and the parts are joined where their pieces meet.
//
// A model that has no pre-tokenizer but split points tells by itself where a text may be parted. A scanner's pieces depend
// on nothing before them, but where one begins is only known from the start of the text. So a part begins at some
// character, perhaps inside a piece, and its first pieces are a guess. The part before goes on a little behind its end:
// where both have a piece that begins at the same place, they are the same from there on. Nearly always that is within a
// word. If they never meet (a piece goes on for long), the caller's thread goes on alone up to the next part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "encoder/workspace.h"

namespace tokenweir {

class LongText {
 public:
  static constexpr size_t kLeast = 1 << 20;  // bytes that are worth threads

  // Whether the pieces of a text can be found in parts.
  static bool may_part(const PreTokenizer& pre_tokenizer, const Model& model) {
    return pre_tokenizer.scanner() || (pre_tokenizer.cuts_nothing() && model.split_points());
  }

  // Of [p, end).
  LongText(const PreTokenizer& pre_tokenizer, const Model& model, bool guarded, WorkspacePool& pool, const uint8_t* p,
           const uint8_t* end)
      : scanner_(pre_tokenizer.scanner()), model_(model), guarded_(guarded), pool_(pool), frame_{p, end, nullptr, p} {}

  // Appends the ids to those of the workspace.
  void encode(size_t threads, Workspace& own) {
    IdBuffer ids = std::move(own.ids);
    part(threads);
    share_out(pool_, &own, parts_.size(), threads, [&](size_t i, Workspace& w) { encode_part(parts_[i], i == 0, w); });
    for (size_t i = 0; i + 1 < parts_.size(); i++)
      if (!meet(parts_[i], parts_[i + 1])) go_on(i, own);
    join(threads, own, ids);
    own.ids = std::move(ids);
  }

 private:
  static constexpr ptrdiff_t kOverlap = 2048;  // bytes in which neighbours may meet
  static constexpr size_t kLeastPart = 1 << 18, kMostPart = 1 << 22;  // bytes; the ids of a part are there twice at the end

  // The piece that begins at `at` is the first one whose ids come behind `count` ids of its part.
  struct Mark {
    const uint8_t* at;
    size_t count;
  };

  struct Part {
    const uint8_t *begin, *until;      // `until`: where the next one begins
    const uint8_t* stopped = nullptr;  // where the pieces end that were encoded
    std::vector<Mark> marks = {};      // of pieces near `begin` and behind `until`
    IdBuffer ids = {};
    size_t from = 0, to = 0;  // the ids of the text, without what a neighbour has
  };

  void part(size_t threads) {
    const uint8_t *p = frame_.start, *end = frame_.end;
    const size_t n = static_cast<size_t>(end - p);
    const ptrdiff_t size = static_cast<ptrdiff_t>(std::clamp(n / (16 * threads) + 1, kLeastPart, kMostPart));
    while (p < end) {
      const uint8_t* next = end - p > size ? p + size : end;
      while (next < end && utf8_continues(*next)) next++;
      if (next < end && !scanner_) next = model_.split_points()->next(next, end);
      parts_.push_back({p, next});
      p = next;
    }
  }

  // `certain`: a piece begins where the part does. Only then pieces may be long; others would be long for several parts.
  void encode_part(Part& part, bool certain, Workspace& w) const {
    w.ids.clear();
    PieceEncoder encode(model_, guarded_, w.seen, w.model, w.ids);
    if (scanner_) {
      scan(part, certain, encode, w.ids);
    } else {
      encode(part.begin, part.until, frame_);
      part.stopped = part.until;
    }
    encode.flush();
    part.ids = std::move(w.ids);
    part.to = part.ids.size();
  }

  void scan(Part& part, bool certain, PieceEncoder& encode, const IdBuffer& ids) const {
    const uint8_t *p = part.begin, *const end = frame_.end;
    const uint8_t *const head_end = p + std::min(end - p, kOverlap);
    const uint8_t* const tail_end = part.until + std::min(end - part.until, kOverlap);
    uint32_t ends[Scanner::kRoom];
    for (bool goes_on = true; goes_on && p < tail_end;) {
      const size_t n = scanner_->scan(p, end, ends);
      if (p >= head_end && p + ends[n - 1] <= part.until) {
        encode(p, ends, n, frame_);
        p += ends[n - 1];
        continue;
      }
      const uint8_t* const first = p;
      for (size_t i = 0; i < n && p < tail_end; i++) {
        const uint8_t* const piece_end = first + ends[i];
        if (p < head_end || p >= part.until) {
          encode.flush();
          part.marks.push_back({p, ids.size()});
        }
        goes_on = certain || piece_end <= tail_end;
        if (!goes_on) break;
        encode(p, piece_end, frame_);
        p = piece_end;
      }
    }
    part.stopped = p;
  }

  // Whether a part and the next one meet; if so, their ids are parted there.
  static bool meet(Part& part, Part& next) {
    if (part.stopped == next.begin) return true;
    const std::vector<Mark>&here = part.marks, &there = next.marks;
    for (auto a = here.begin(), b = there.begin(); a != here.end() && b != there.end();) {
      if (a->at == b->at) {
        part.to = a->count;
        next.from = b->count;
        return true;
      }
      a->at < b->at ? ++a : ++b;
    }
    return false;
  }

  // Puts a part behind part `i` that begins where that one stopped, unless the text ends there.
  void go_on(size_t i, Workspace& own) {
    const auto behind = parts_.begin() + static_cast<ptrdiff_t>(i) + 1;
    const uint8_t* const from = parts_[i].stopped;
    const auto next = std::find_if(behind, parts_.end(), [&](const Part& part) { return part.begin > from; });
    const uint8_t* const until = next == parts_.end() ? frame_.end : next->begin;
    const auto place = parts_.erase(behind, next);
    if (from == frame_.end) return;
    encode_part(*parts_.insert(place, {from, until}), true, own);
  }

  // Appends what the parts have, all at the same time.
  void join(size_t threads, Workspace& own, IdBuffer& ids) {
    std::vector<size_t> places{0};
    for (const Part& part : parts_) places.push_back(places.back() + part.to - part.from);
    int32_t* const to = ids.room(places.back());
    share_out(pool_, &own, parts_.size(), threads, [&](size_t i, Workspace&) {
      Part& part = parts_[i];
      std::copy(part.ids.data() + part.from, part.ids.data() + part.to, to + places[i]);
      part.ids = IdBuffer();
    });
    ids.advance(places.back());
  }

  const Scanner* const scanner_;
  const Model& model_;
  const bool guarded_;
  WorkspacePool& pool_;
  const Frame frame_;
  std::vector<Part> parts_;
};

}  // namespace tokenweir
