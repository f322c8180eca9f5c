// Many texts on several threads.
//
// The unit of work is a run of adjacent texts, so one long text delays no other. Each thread appends the ids of its runs
// to one buffer. If one thread did all of them, its buffer is the result; otherwise the threads copy their runs to it.
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
#include "memory/id_buffer.h"

namespace tokenweir {

class Batch {
 public:
  // The size of a text may be an estimate until `run` has it prepared. `guards` has the guarded byte offsets of each
  // text, or is empty if no text has any. `spans`: the characters, the
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
    offsets_.reset(new int64_t[texts.size() + 1]);
    for (size_t i = 0, bytes = 0; i < texts.size(); i++) {
      bytes += texts[i].size() + 1;
      if (bytes < kRunBytes && i + 1 < texts.size()) continue;
      runs_.push_back({i + 1, bytes_ += bytes});
      bytes = 0;
    }
  }

  // Encodes all texts on up to `threads` threads; 0 means one per CPU. First, the calling thread calls
  // `prepare(first, end)` for each run of texts, and then `prepared()`; meanwhile the others encode what is prepared.
  template <class Prepare, class Prepared>
  void run(size_t threads, Prepare&& prepare, Prepared&& prepared) {
    if (threads == 0) threads = machine_threads();
    parts_.resize(std::max<size_t>(1, std::min(threads, runs_.size())));
    share_out(
        encoder_.pool(), nullptr, runs_.size(), threads,
        [this](size_t thread, size_t all) { return start(thread, all); },
        [&](size_t r, Workspace& w, size_t thread) { encode_run(r, runs_.size() == 1 ? threads : 1, w, thread); },
        [&](size_t r) { prepare(first_text(r), runs_[r].end_text); }, prepared);
    join(threads);
    offsets_[0] = 0;
    for (size_t i = 0; i < texts_.size(); i++) offsets_[i + 1] += offsets_[i];
  }

  IdBuffer& ids() { return ids_; }
  std::unique_ptr<int64_t[]> take_offsets() { return std::move(offsets_); }

  // The characters that each id covers in its text; none for ids around a text.
  std::vector<Span> spans() const { return joined(&Part::spans); }

  // The number of each id's piece in its text; -1 for ids around a text.
  std::vector<int32_t> words() const { return joined(&Part::words); }

  // The text of ids that are named by their text, with their indices.
  std::vector<std::pair<size_t, std::string>> called() const {
    std::vector<std::pair<size_t, std::string>> all;
    for (const Run& run : runs_)
      for (size_t i = run.first_called; i < run.end_called; i++) {
        const auto& [at, text] = parts_[run.part].called[i];
        all.emplace_back(run.place + at - run.first, text);
      }
    return all;
  }

 private:
  static constexpr size_t kRunBytes = 32 << 10;
  static constexpr size_t kIdBytes = 3;  // bytes of text an id, at least in most texts

  // The results of one thread, with the members of `Workspace`.
  struct Part {
    IdBuffer ids;
    std::vector<Span> spans;
    std::vector<int32_t> words;
    std::vector<std::pair<size_t, std::string>> called;

    void swap(Workspace& w) {
      ids.swap(w.ids);
      spans.swap(w.spans);
      words.swap(w.words);
      called.swap(w.called);
    }
  };

  struct Run {
    size_t end_text, end_bytes;               // of the texts up to its end; the bytes are an estimate
    size_t part = 0, first = 0, end = 0;      // its ids
    size_t first_called = 0, end_called = 0;  // of its part's `called`
    size_t place = 0;                         // of its ids in the result
  };

  size_t first_text(size_t r) const { return r > 0 ? runs_[r - 1].end_text : 0; }

  // The run that a thread begins with: each begins at an equal share of the bytes.
  size_t start(size_t thread, size_t all) const {
    const size_t bytes = bytes_ / all * thread;
    const auto starts_before = [](const Run& run, size_t at) { return run.end_bytes <= at; };
    return static_cast<size_t>(std::lower_bound(runs_.begin(), runs_.end(), bytes, starts_before) - runs_.begin());
  }

  void join(size_t threads) {
    size_t total = 0;
    bool in_order = true;
    for (Run& run : runs_) {
      in_order &= run.part == 0 && run.first == total;
      run.place = total;
      total += run.end - run.first;
    }
    if (in_order) return ids_.swap(parts_[0].ids);
    int32_t* const to = ids_.room(total);
    share_out(
        encoder_.pool(), nullptr, runs_.size(), threads,
        [this](size_t thread, size_t all) { return start(thread, all); },
        [&](size_t r, Workspace&, size_t) {
          const Run& run = runs_[r];
          const int32_t* const from = parts_[run.part].ids.data();
          std::copy(from + run.first, from + run.end, to + run.place);
        });
    ids_.advance(total);
  }

  template <class T>
  std::vector<T> joined(std::vector<T> Part::* member) const {
    std::vector<T> all;
    for (const Run& run : runs_) {
      const auto from = (parts_[run.part].*member).begin();
      all.insert(all.end(), from + static_cast<ptrdiff_t>(run.first), from + static_cast<ptrdiff_t>(run.end));
    }
    return all;
  }

  void around(const std::vector<int32_t>& ids, Workspace& w) const {
    for (const int32_t id : ids) w.ids.push(static_cast<uint32_t>(id));
    if (!spans_) return;
    w.spans.resize(w.ids.size());
    w.words.resize(w.ids.size(), -1);
  }

  // Returns the bytes of an equal share of the texts, as far as a prepared run tells.
  size_t thread_bytes(size_t r) const {
    size_t bytes = 0;
    for (size_t i = first_text(r); i < runs_[r].end_text; i++) bytes += texts_[i].size() + 1;
    const size_t estimate = runs_[r].end_bytes - (r > 0 ? runs_[r - 1].end_bytes : 0);
    return (bytes_ / parts_.size() + estimate - 1) / estimate * bytes;
  }

  void encode_run(size_t r, size_t threads, Workspace& w, size_t thread) {
    Run& run = runs_[r];
    EncodeOptions options{parse_special_, {}, threads};
    Part& part = parts_[thread];
    if (part.ids.capacity() == 0) part.ids.room(thread_bytes(r) / kIdBytes);
    part.swap(w);
    run.part = thread;
    run.first = w.ids.size();
    run.first_called = w.called.size();
    for (size_t i = first_text(r); i < run.end_text; i++) {
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
      offsets_[i + 1] = static_cast<int64_t>(w.ids.size() - before);
    }
    run.end = w.ids.size();
    run.end_called = w.called.size();
    part.swap(w);
  }

  const Encoder& encoder_;
  const std::vector<std::string_view>& texts_;
  const std::vector<std::vector<size_t>>& guards_;
  const std::vector<int32_t>&prefix_, &suffix_;
  const bool parse_special_, spans_;
  const size_t limit_;
  size_t bytes_ = 0;
  std::vector<Run> runs_;
  std::vector<Part> parts_;             // by thread
  std::unique_ptr<int64_t[]> offsets_;  // until the end of `run`: the number of ids of each text
  IdBuffer ids_;
};

}  // namespace tokenweir
