// One long text on several threads: each encodes a part, and adjacent parts are joined at a junction.
//
// Without a pre-tokenizer, a text is split at the model's split points, where parts join exactly. A scanner's pieces
// depend on nothing before them, but only a scan from the start knows where one begins. So a part begins at any
// character, perhaps inside a piece, and its first pieces are speculative. The part before overlaps it by some bytes. A
// junction is a place where both have a piece that begins there; from it on, their pieces are equal. It nearly always
// comes within a word. If the overlap has none, because a piece is very long, the calling thread bridges the distance
// to the next part.
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
  static constexpr size_t kMinBytes = 1 << 20;  // shorter texts are not worth a thread

  // Whether a text can be split: by a scanner, or at split points.
  static bool can_split(const PreTokenizer& pre_tokenizer, const Model& model) {
    return pre_tokenizer.scanner() || (pre_tokenizer.is_identity() && model.split_points());
  }

  // Takes the text [p, end).
  LongText(const PreTokenizer& pre_tokenizer, const Model& model, bool guarded, WorkspacePool& pool, const uint8_t* p,
           const uint8_t* end)
      : scanner_(pre_tokenizer.scanner()), model_(model), guarded_(guarded), pool_(pool), text_{p, end, nullptr, p} {}

  // Appends the ids of the text to `own.ids`.
  void encode(size_t threads, Workspace& own) {
    IdBuffer ids = std::move(own.ids);
    split(threads);
    each_part(threads, own, [&](size_t i, Workspace& w, size_t) { encode_part(parts_[i], i == 0, w); });
    for (size_t i = 0; i + 1 < parts_.size(); i++)
      if (!find_junction(parts_[i], parts_[i + 1])) bridge(i, own);
    join(threads, own, ids);
    own.ids = std::move(ids);
  }

 private:
  static constexpr ptrdiff_t kOverlap = 2048;  // bytes in which a junction is looked for
  static constexpr size_t kMinPart = 1 << 18,
                          kMaxPart = 1 << 22;  // bytes; the ids of a part are there twice at the end

  // The start of a piece, and how many ids of its part come before it.
  struct PieceStart {
    const uint8_t* at;
    size_t count;
  };

  struct Part {
    const uint8_t *begin, *until;               // `until`: start of the next part
    const uint8_t* stopped = nullptr;           // end of the last piece that was encoded
    std::vector<PieceStart> piece_starts = {};  // of pieces near `begin` and behind `until`
    IdBuffer ids = {};
    size_t from = 0, to = 0;  // the ids of the text, without what a neighbour has
  };

  template <class Work>
  void each_part(size_t threads, Workspace& own, Work&& work) {
    const auto begin = [n = parts_.size()](size_t thread, size_t all) { return n * thread / all; };
    share_out(pool_, &own, parts_.size(), threads, begin, work);
  }

  void split(size_t threads) {
    const uint8_t *p = text_.start, *end = text_.end;
    const size_t n = static_cast<size_t>(end - p);
    const ptrdiff_t size = static_cast<ptrdiff_t>(std::clamp(n / (16 * threads) + 1, kMinPart, kMaxPart));
    while (p < end) {
      const uint8_t* next = end - p > size ? p + size : end;
      while (next < end && utf8_continues(*next)) next++;
      if (next < end && !scanner_) next = model_.split_points()->next(next, end);
      parts_.push_back({p, next});
      p = next;
    }
  }

  // Encodes a part. `starts_piece`: the part is known to begin at the start of a piece. Otherwise it gives up at a
  // piece that reaches beyond the overlap, because several parts would scan such a piece in full.
  void encode_part(Part& part, bool starts_piece, Workspace& w) const {
    w.ids.clear();
    PieceEncoder encode(model_, guarded_, w.caches, w.model, w.ids);
    if (scanner_) {
      scan(part, starts_piece, encode, w.ids);
    } else {
      encode(part.begin, part.until, text_);
      part.stopped = part.until;
    }
    encode.flush();
    part.ids = std::move(w.ids);
    part.to = part.ids.size();
  }

  void scan(Part& part, bool starts_piece, PieceEncoder& encode, const IdBuffer& ids) const {
    const uint8_t *p = part.begin, *const end = text_.end;
    const uint8_t* const head_end = p + std::min(end - p, kOverlap);
    const uint8_t* const tail_end = part.until + std::min(end - part.until, kOverlap);
    uint32_t ends[Scanner::kMaxEnds];
    for (bool continues = true; continues && p < tail_end;) {
      const size_t n = scanner_->scan(p, end, ends);
      if (p >= head_end && p + ends[n - 1] <= part.until) {
        encode(p, ends, n, text_);
        p += ends[n - 1];
        continue;
      }
      const uint8_t* const first = p;
      for (size_t i = 0; i < n && p < tail_end; i++) {
        const uint8_t* const piece_end = first + ends[i];
        if (p < head_end || p >= part.until) {
          encode.flush();
          part.piece_starts.push_back({p, ids.size()});
        }
        continues = starts_piece || piece_end <= tail_end;
        if (!continues) break;
        encode(p, piece_end, text_);
        p = piece_end;
      }
    }
    part.stopped = p;
  }

  // Finds the junction of a part and the next one, and drops the ids on the wrong side of it. Returns false if there is
  // none.
  static bool find_junction(Part& part, Part& next) {
    if (part.stopped == next.begin) return true;
    const std::vector<PieceStart>&here = part.piece_starts, &there = next.piece_starts;
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

  // Bridges a missing junction: encodes a part from where part `i` stopped to the next part, unless the text ends
  // there.
  void bridge(size_t i, Workspace& own) {
    const auto behind = parts_.begin() + static_cast<ptrdiff_t>(i) + 1;
    const uint8_t* const from = parts_[i].stopped;
    const auto next = std::find_if(behind, parts_.end(), [&](const Part& part) { return part.begin > from; });
    const uint8_t* const until = next == parts_.end() ? text_.end : next->begin;
    const auto place = parts_.erase(behind, next);
    if (from == text_.end) return;
    encode_part(*parts_.insert(place, {from, until}), true, own);
  }

  // Appends the ids of all parts, in parallel.
  void join(size_t threads, Workspace& own, IdBuffer& ids) {
    std::vector<size_t> places{0};
    for (const Part& part : parts_) places.push_back(places.back() + part.to - part.from);
    int32_t* const to = ids.room(places.back());
    each_part(threads, own, [&](size_t i, Workspace&, size_t) {
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
  const AlignedText text_;
  std::vector<Part> parts_;
};

}  // namespace tokenweir
