// Tapes: encoded texts that later texts resume. A tape has the ids of `Encoder::encode`, and costs what has changed.
//
// A cut is a place at which the encoding of a text may be resumed: the ids behind it depend on nothing before it but the
// character beside it. There are four kinds.
// - A side of a matched added token, where neither a strip nor an earlier match reaches across (added_tokens.h).
// - A sync point of the pattern in the first stage of the pre-tokenizer: the classes of its two characters say that a
//   piece begins there.
// - A split point of the model, where there is no pre-tokenizer (cuts/split_points.h).
// - The last two only where the normalizer leaves the segment as it is, and allows a boundary.
// Whether a place is a cut is decided by the text up to `Encoder::lookahead` bytes behind it. So a cut of a text is a cut
// of each text that agrees with it so far, guards included, and has the same ids before it.
//
// docs/explanation/prompt-cache.md has the proof.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/common_prefix.h"
#include "encoder/encoder.h"

namespace tokenweir {

class Tape {
 public:
  // Encodes a text with sorted guards. `owner` keeps the bytes of the text, which are not copied. `earlier` is the tape of
  // another text by the same encoder, or null.
  Tape(const Encoder& encoder, std::string_view text, std::shared_ptr<const void> owner, std::vector<size_t> guards,
       const Tape* earlier, Workspace& w)
      : text_(text), owner_(std::move(owner)), guards_(std::move(guards)), rejoined_(text.size()) {
    Cut from{0, 0};
    const Cut *later = nullptr, *end = nullptr;
    if (earlier && (text.size() > kMaxBytes || !may_resume(encoder, *earlier))) earlier = nullptr;
    if (earlier) {
      earlier_ = earlier->number_;
      difference_ = first_difference(*earlier);
      from = earlier->last_cut(difference_, encoder.lookahead());
      const size_t tail = common_tail(*earlier);
      end = earlier->cuts_.data() + earlier->cuts_.size();
      later = std::lower_bound(earlier->cuts_.data(), end, earlier->text_.size() - tail + kMaxCharacter,
                               [](const Cut& cut, size_t byte) { return cut.byte < byte; });
    }
    resumed_ = from.byte;
    resumed_ids_ = from.ids;
    const int64_t shift =
        earlier ? static_cast<int64_t>(text_.size()) - static_cast<int64_t>(earlier->text_.size()) : 0;
    CutRecorder found(from, later, end, shift);
    w.ids.clear();
    EncodeOptions options{true, guards_};
    options.threads = 1;
    if (text_.size() <= kMaxBytes)
      encoder.encode_from(text_, from.byte, options, w, found);
    else
      encoder.encode<false>(text_, options, w);
    join(earlier, from, found, shift, w.ids);
  }

  // Takes the ids of a text that was encoded elsewhere. It has no cuts, so a later text resumes at its start.
  Tape(std::string_view text, std::shared_ptr<const void> owner, std::vector<size_t> guards, std::vector<int32_t> ids)
      : text_(text),
        owner_(std::move(owner)),
        guards_(std::move(guards)),
        ids_(std::move(ids)),
        rejoined_(text.size()) {}

  std::string_view text() const { return text_; }
  const std::vector<size_t>& guards() const { return guards_; }
  const std::vector<int32_t>& ids() const { return ids_; }
  const std::vector<Cut>& cuts() const { return cuts_; }

  // The first byte at which the earlier text differs; 0 without one.
  size_t difference() const { return difference_; }
  // The bytes [resumed, rejoined) were encoded, the others taken over.
  size_t resumed() const { return resumed_; }
  size_t rejoined() const { return rejoined_; }
  size_t reused_ids() const { return reused_ids_; }

  bool is_of(std::string_view text, const std::vector<size_t>& guards) const {
    return text == text_ && guards == guards_;
  }

  // Returns the number of ids before a byte that is a cut; SIZE_MAX if it is not one.
  size_t ids_before(const Encoder& encoder, size_t byte, Workspace& w) const {
    const Cut from = last_cut(byte, 0);
    if (from.byte == byte) return from.ids;
    if (byte >= text_.size() || text_.size() > kMaxBytes) return byte == text_.size() ? ids_.size() : SIZE_MAX;
    const Cut place{static_cast<uint32_t>(byte), 0};
    CutRecorder found(from, place);
    EncodeOptions options{true, guards_};
    options.threads = 1;
    w.ids.clear();
    encoder.encode_from(text_, from.byte, options, w, found);
    return found.coincidence() ? from.ids + w.ids.size() : SIZE_MAX;
  }

  // Returns the length of the common beginning of the text and another one, without a look at guards.
  size_t common_bytes(std::string_view text) const { return common_prefix(text_, text); }

  // Length of the common beginning of two tapes.
  struct Common {
    size_t bytes, ids;  // `bytes`: guards included
  };

  Common common(const Tape& other) const {
    if (this == &other) return {text_.size(), ids_.size()};
    const bool is_earlier = other.number_ == earlier_;
    size_t n = is_earlier ? resumed_ids_ : 0;
    const size_t most = std::min(ids_.size(), other.ids_.size());
    for (constexpr size_t kStep = 256; n + kStep <= most; n += kStep)
      if (std::memcmp(ids_.data() + n, other.ids_.data() + n, kStep * sizeof(int32_t)) != 0) break;
    while (n < most && ids_[n] == other.ids_[n]) n++;
    return {is_earlier ? difference_ : first_difference(other), n};
  }

  // Bytes of memory.
  size_t memory() const {
    return sizeof *this + text_.size() + guards_.capacity() * sizeof(size_t) + ids_.capacity() * sizeof(int32_t) +
           cuts_.capacity() * sizeof(Cut);
  }

 private:
  static constexpr size_t kMaxBytes = UINT32_MAX;  // of a text with cuts
  static constexpr size_t kMaxCharacter = 4;       // bytes: the character before a coincidence is of the common tail

  bool may_resume(const Encoder& encoder, const Tape& earlier) const {
    return !encoder.guards_everywhere() || guards_.empty() == earlier.guards_.empty();
  }

  // The first byte that differs, or over which one of the two has a guard.
  size_t first_difference(const Tape& earlier) const {
    size_t at = common_bytes(earlier.text_);
    const auto [here, there] =
        std::mismatch(guards_.begin(), guards_.end(), earlier.guards_.begin(), earlier.guards_.end());
    if (here != guards_.end()) at = std::min(at, *here);
    if (there != earlier.guards_.end()) at = std::min(at, *there);
    return at;
  }

  // Returns the number of equal bytes at the end, guards included, behind the first difference.
  size_t common_tail(const Tape& earlier) const {
    const size_t n = text_.size(), m = earlier.text_.size(), most = std::min(n, m) - difference_;
    size_t tail = 0;
    for (constexpr size_t kStep = 256; tail + kStep <= most; tail += kStep)
      if (std::memcmp(text_.data() + n - tail - kStep, earlier.text_.data() + m - tail - kStep, kStep) != 0) break;
    while (tail < most && text_[n - tail - 1] == earlier.text_[m - tail - 1]) tail++;
    const auto [here, there] =
        std::mismatch(guards_.rbegin(), guards_.rend(), earlier.guards_.rbegin(), earlier.guards_.rend(),
                      [&](size_t a, size_t b) { return n - a == m - b; });
    if (here != guards_.rend()) tail = std::min(tail, n - *here - 1);
    if (there != earlier.guards_.rend()) tail = std::min(tail, m - *there - 1);
    return tail;
  }

  // The last cut that is one of every text that agrees up to `difference`; the start of the text by default.
  Cut last_cut(size_t difference, size_t lookahead) const {
    if (difference < lookahead) return {0, 0};
    const auto behind = std::upper_bound(cuts_.begin(), cuts_.end(), difference - lookahead,
                                         [](size_t byte, const Cut& cut) { return byte < cut.byte; });
    return behind == cuts_.begin() ? Cut{0, 0} : behind[-1];
  }

  // Joins the ids before the cut, the new ones, and those behind the coincidence; likewise the cuts.
  void join(const Tape* earlier, Cut from, const CutRecorder& found, int64_t shift, const IdBuffer& ids) {
    const Cut* const same = found.coincidence();
    const Cut* const end = earlier ? earlier->cuts_.data() + earlier->cuts_.size() : nullptr;
    const size_t behind = same ? earlier->ids_.size() - same->ids : 0;
    ids_.reserve(from.ids + ids.size() + behind);
    if (from.ids) ids_.insert(ids_.end(), earlier->ids_.begin(), earlier->ids_.begin() + from.ids);
    ids_.insert(ids_.end(), ids.data(), ids.data() + ids.size());
    const auto id_shift = static_cast<int64_t>(ids_.size()) - (same ? static_cast<int64_t>(same->ids) : 0);
    if (same) ids_.insert(ids_.end(), earlier->ids_.end() - static_cast<ptrdiff_t>(behind), earlier->ids_.end());
    reused_ids_ = from.ids + behind;
    const Cut* const first = earlier ? earlier->cuts_.data() : nullptr;
    const Cut* const last = std::find_if(first, end, [&](const Cut& cut) { return cut.byte > from.byte; });
    const size_t n_before = static_cast<size_t>(last - first);
    cuts_.reserve(n_before + found.kept().size() + (same ? static_cast<size_t>(end - same) : 0));
    cuts_.insert(cuts_.end(), first, first + n_before);
    cuts_.insert(cuts_.end(), found.kept().begin(), found.kept().end());
    if (!same) return;
    rejoined_ = static_cast<size_t>(static_cast<int64_t>(same->byte) + shift);
    for (const Cut* cut = same; cut < end; cut++)
      cuts_.push_back({static_cast<uint32_t>(cut->byte + shift), static_cast<uint32_t>(cut->ids + id_shift)});
  }

  std::string_view text_;
  std::shared_ptr<const void> owner_;
  std::vector<size_t> guards_;
  std::vector<int32_t> ids_;
  std::vector<Cut> cuts_;
  size_t difference_ = 0, resumed_ = 0, resumed_ids_ = 0, rejoined_ = 0, reused_ids_ = 0;

  inline static std::atomic<uint64_t> made_{0};
  const uint64_t number_ = ++made_;  // from 1
  uint64_t earlier_ = 0;             // the number of the tape that was taken over
};

}  // namespace tokenweir
