// Cuts: places in a text at which its encoding may be resumed, whatever comes before. See encoder/tape.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokenweir {

// A cut, and how many ids come before it.
struct Cut {
  uint32_t byte, ids;
};

// Takes the cuts that an encoder finds, in order. Keeps some of them, not too close together, and stops the encoder at
// the first one that coincides with a cut of an earlier text.
class CutRecorder {
 public:
  static constexpr size_t kDistance = 512;  // bytes, the least between two kept cuts

  // `base`: the place where the encoding begins. The coinciding cuts are [earlier, earlier_end) moved by `shift` bytes,
  // in order.
  CutRecorder(Cut base, const Cut* earlier, const Cut* earlier_end, int64_t shift)
      : base_(base), last_(base.byte), earlier_(earlier), earlier_end_(earlier_end), shift_(shift) {}

  // Asks about one place: the encoder stops there, if it is a cut, or at a cut behind it.
  CutRecorder(Cut base, const Cut& place)
      : base_(base), last_(base.byte), earlier_(&place), earlier_end_(&place + 1), shift_(0), asks_(true) {}

  // The first place whose cut is of interest.
  size_t wanted() const { return earlier_ < earlier_end_ && target() < next() ? target() : next(); }

  // Takes the cut at `byte`, before which the encoder has made `ids` ids. Returns whether it is to stop there.
  bool stops_at(size_t byte, size_t ids) {
    while (earlier_ < earlier_end_ && target() < byte) earlier_++;
    if (earlier_ < earlier_end_ && target() == byte) return stopped_ = true;
    if (asks_ && earlier_ == earlier_end_) return true;
    if (byte < next()) return false;
    kept_.push_back({static_cast<uint32_t>(byte), static_cast<uint32_t>(base_.ids + ids)});
    last_ = byte;
    return false;
  }

  const std::vector<Cut>& kept() const { return kept_; }

  // The cut of the earlier text at which the encoder has stopped, or null.
  const Cut* coincidence() const { return stopped_ ? earlier_ : nullptr; }

 private:
  size_t target() const { return static_cast<size_t>(static_cast<int64_t>(earlier_->byte) + shift_); }
  size_t next() const { return last_ + kDistance; }

  const Cut base_;
  size_t last_;  // place of the last kept cut
  const Cut *earlier_, *const earlier_end_;
  const int64_t shift_;
  std::vector<Cut> kept_;
  bool stopped_ = false, asks_ = false;
};

}  // namespace tokenweir
