// Many texts on several threads.
//
// The unit of work is a run of adjacent texts, so one long text delays no other. Each run keeps its ids, and the caller
// joins them in order at the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "encoder/encoder.h"

namespace tokenweir {

class Batch {
 public:
  // `guards` has the guarded byte offsets of each text, or is empty if no text has any.
  Batch(const Encoder& encoder, const std::vector<std::string_view>& texts,
        const std::vector<std::vector<size_t>>& guards, bool parse_special, const std::vector<int32_t>& prefix,
        const std::vector<int32_t>& suffix)
      : encoder_(encoder),
        texts_(texts),
        guards_(guards),
        prefix_(prefix),
        suffix_(suffix),
        parse_special_(parse_special) {
    size_t bytes = 0;
    starts_.push_back(0);
    for (size_t i = 0; i < texts.size(); i++) {
      bytes += texts[i].size() + 1;
      if (bytes >= kRunBytes || i + 1 == texts.size()) {
        starts_.push_back(i + 1);
        bytes = 0;
      }
    }
    runs_.resize(starts_.size() - 1);
  }

  // Encodes all texts on up to `threads` threads; 0 means one per CPU.
  void run(size_t threads) {
    if (threads == 0) threads = machine_threads();
    share_out(encoder_.pool(), nullptr, runs_.size(), threads,
              [&](size_t r, Workspace& w) { encode_run(r, runs_.size() == 1 ? threads : 1, w); });
  }

  size_t total() const {
    size_t total = 0;
    for (const Run& run : runs_) total += run.ids.size();
    return total;
  }

  std::unique_ptr<int32_t[]> take_ids() const {
    std::unique_ptr<int32_t[]> ids(new int32_t[total()]);
    int32_t* to = ids.get();
    for (const Run& run : runs_) to = std::copy(run.ids.begin(), run.ids.end(), to);
    return ids;
  }

  std::unique_ptr<int64_t[]> take_offsets() const {
    std::unique_ptr<int64_t[]> offsets(new int64_t[texts_.size() + 1]);
    int64_t *to = offsets.get(), at = 0;
    *to++ = 0;
    for (const Run& run : runs_)
      for (const size_t count : run.counts) {
        at += static_cast<int64_t>(count);
        *to++ = at;
      }
    return offsets;
  }

 private:
  static constexpr size_t kRunBytes = 32 << 10;

  struct Run {
    std::vector<int32_t> ids;
    std::vector<size_t> counts;
  };

  void encode_run(size_t r, size_t threads, Workspace& w) {
    Run& run = runs_[r];
    EncodeOptions options{parse_special_, {}, threads};
    w.ids.clear();
    for (size_t i = starts_[r]; i < starts_[r + 1]; i++) {
      const size_t before = w.ids.size();
      for (const int32_t id : prefix_) w.ids.push(static_cast<uint32_t>(id));
      if (!guards_.empty()) options.guards = guards_[i];
      encoder_.encode<false>(texts_[i], options, w);
      for (const int32_t id : suffix_) w.ids.push(static_cast<uint32_t>(id));
      run.counts.push_back(w.ids.size() - before);
    }
    run.ids.assign(w.ids.data(), w.ids.data() + w.ids.size());
  }

  const Encoder& encoder_;
  const std::vector<std::string_view>& texts_;
  const std::vector<std::vector<size_t>>& guards_;
  const std::vector<int32_t>&prefix_, &suffix_;
  const bool parse_special_;
  std::vector<size_t> starts_;  // of runs, in texts
  std::vector<Run> runs_;
};

}  // namespace tokenweir
