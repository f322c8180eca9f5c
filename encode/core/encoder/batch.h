// Many texts on several threads.
//
// The unit of work is a run of adjacent texts, so one long text delays no other. Each run keeps its ids, and the caller
// joins them in order at the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/character_offsets.h"
#include "encoder/encoder.h"

namespace tokenweir {

class Batch {
 public:
  // `guards` has the guarded byte offsets of each text, or is empty if no text has any. `spans`: the characters, the
  // number of the piece and the name of each id are collected, too. `limit`: this many ids of each text are enough; 0
  // means all.
  Batch(const Encoder& encoder, const std::vector<std::string_view>& texts,
        const std::vector<std::vector<size_t>>& guards, bool parse_special, const std::vector<int32_t>& prefix,
        const std::vector<int32_t>& suffix, bool spans = false, size_t limit = 0)
      : encoder_(encoder),
        texts_(texts),
        guards_(guards),
        prefix_(prefix),
        suffix_(suffix),
        parse_special_(parse_special),
        spans_(spans),
        limit_(limit) {
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

  // The characters that each id covers in its text; none for ids around a text.
  std::vector<Span> spans() const { return joined(&Run::spans); }

  // The number of each id's piece in its text; -1 for ids around a text.
  std::vector<int32_t> words() const { return joined(&Run::words); }

  // The text of ids that are named by their text, with their indices.
  std::vector<std::pair<size_t, std::string>> called() const {
    std::vector<std::pair<size_t, std::string>> all;
    size_t shift = 0;
    for (const Run& run : runs_) {
      for (const auto& [at, text] : run.called) all.emplace_back(shift + at, text);
      shift += run.ids.size();
    }
    return all;
  }

 private:
  static constexpr size_t kRunBytes = 32 << 10;

  struct Run {
    std::vector<int32_t> ids;
    std::vector<size_t> counts;
    std::vector<Span> spans;
    std::vector<int32_t> words;
    std::vector<std::pair<size_t, std::string>> called;
  };

  template <class T>
  std::vector<T> joined(std::vector<T> Run::* member) const {
    std::vector<T> all;
    for (const Run& run : runs_) all.insert(all.end(), (run.*member).begin(), (run.*member).end());
    return all;
  }

  void around(const std::vector<int32_t>& ids, Workspace& w) const {
    for (const int32_t id : ids) w.ids.push(static_cast<uint32_t>(id));
    if (!spans_) return;
    w.spans.resize(w.ids.size());
    w.words.resize(w.ids.size(), -1);
  }

  void encode_run(size_t r, size_t threads, Workspace& w) {
    Run& run = runs_[r];
    EncodeOptions options{parse_special_, {}, threads};
    w.clear();
    for (size_t i = starts_[r]; i < starts_[r + 1]; i++) {
      const size_t before = w.ids.size();
      around(prefix_, w);
      if (!guards_.empty()) options.guards = guards_[i];
      if (spans_) {
        const size_t first = w.ids.size();
        encoder_.encode<true>(texts_[i], options, w);
        to_characters(texts_[i], w.spans.data() + first, w.ids.size() - first);
      } else {
        options.enough = limit_ > 0 ? w.ids.size() + limit_ : 0;
        encoder_.encode<false>(texts_[i], options, w);
      }
      around(suffix_, w);
      run.counts.push_back(w.ids.size() - before);
    }
    run.ids.assign(w.ids.data(), w.ids.data() + w.ids.size());
    run.spans = w.spans;
    run.words = w.words;
    run.called = w.called;
  }

  const Encoder& encoder_;
  const std::vector<std::string_view>& texts_;
  const std::vector<std::vector<size_t>>& guards_;
  const std::vector<int32_t>&prefix_, &suffix_;
  const bool parse_special_, spans_;
  const size_t limit_;
  std::vector<size_t> starts_;  // of runs, in texts
  std::vector<Run> runs_;
};

}  // namespace tokenweir
