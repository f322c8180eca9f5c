// Decides whether the walks of an automaton may read the same long text many times. scan_memo.h makes such walks
// linear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pattern/automaton.h"

namespace tokenweir {

// `transitions`: rows of `width` entries, as in `Automaton`.
class RescanAnalysis {
 public:
  RescanAnalysis(const std::vector<uint16_t>& transitions, size_t width)
      : transitions_(transitions), width_(width), n_states_(transitions.size() / width), failing_(n_states_) {
    find_failing();
  }

  // The number of failing states: those in which a walk can continue without bound beyond its match, and then fail.
  size_t n_states() const {
    size_t n = 0;
    for (const bool failing : failing_) n += failing;
    return n;
  }

  // Whether text that one walk has read in vain may be read in vain by many later walks. Reading it once more is
  // common: with `\s*\n|\s+`, a run of spaces without a line feed is read twice, because it is a match of its own.
  // Returns true if unknown.
  bool may_repeat() const {
    std::vector<size_t> first, index(n_states_);
    for (size_t state = 0; state < n_states_; state++) {
      index[state] = first.size();
      if (failing_[state]) first.push_back(state);
    }
    if (first.size() * n_states_ > kMaxPairs) return true;
    // Pairs of a state of the walk that fails, and one of a walk that started later.
    const auto each_step = [&](size_t pair, auto&& use) {
      const uint16_t* a = row(first[pair / n_states_]);
      const uint16_t* b = row(pair % n_states_);
      for (size_t symbol = 0; symbol < width_; symbol++) {
        const size_t next = a[symbol] & kStateMask, other = b[symbol] & kStateMask;
        if (!(a[symbol] & kMatchEnds) && next != kDead && failing_[next] && other != kDead)
          use(index[next] * n_states_ + other, b[symbol]);
      }
    };
    std::vector<bool> reached(first.size() * n_states_);
    std::vector<size_t> pairs;
    const auto reach = [&](size_t pair, uint16_t) {
      if (!reached[pair]) pairs.push_back(pair);
      reached[pair] = true;
    };
    for (size_t i = 0; i < first.size(); i++) reach(i * n_states_, 0);
    for (size_t i = 0; i < pairs.size(); i++) each_step(pairs[i], reach);

    Graph both_failing(reached.size());
    for (const size_t pair : pairs)
      each_step(pair, [&](size_t next, uint16_t entry) {
        if (failing_[pair % n_states_] && failing_[next % n_states_] && !(entry & kMatchEnds))
          both_failing.add(pair, next);
      });
    for (const bool endless : both_failing.endless())
      if (endless) return true;
    return false;
  }

 private:
  static constexpr size_t kMaxPairs = 1 << 14;

  struct Graph {
    explicit Graph(size_t n) : sources(n), ways(n) {}

    void add(size_t source, size_t target) {
      sources[target].push_back(source);
      ways[source]++;
    }

    // Returns the nodes that begin an infinite path.
    std::vector<bool> endless() {
      std::vector<bool> found(ways.size(), true);
      std::vector<size_t> queue;
      for (size_t node = 0; node < ways.size(); node++)
        if (ways[node] == 0) queue.push_back(node);
      for (size_t i = 0; i < queue.size(); i++) {
        found[queue[i]] = false;
        for (const size_t source : sources[queue[i]])
          if (--ways[source] == 0) queue.push_back(source);
      }
      return found;
    }

    std::vector<std::vector<size_t>> sources;
    std::vector<size_t> ways;
  };

  const uint16_t* row(size_t state) const { return &transitions_[state * width_]; }

  // Calls `use(source, target)` for each step between states without a match.
  template <class Use>
  void each_silent_step(Use&& use) const {
    for (size_t i = 0; i < transitions_.size(); i++)
      if (!(transitions_[i] & kMatchEnds) && (transitions_[i] & kStateMask) != kDead) use(i / width_, transitions_[i]);
  }

  void find_failing() {
    Graph silent(n_states_);
    each_silent_step([&](size_t source, size_t target) { silent.add(source, target); });
    std::vector<bool> may_fail(n_states_);  // a walk from here can end without a further match
    std::vector<size_t> queue;
    const auto fails = [&](size_t state) {
      if (!may_fail[state]) queue.push_back(state);
      may_fail[state] = true;
    };
    for (size_t i = 0; i < transitions_.size(); i++)
      if (transitions_[i] == kDead) fails(i / width_);
    for (size_t i = 0; i < queue.size(); i++)
      for (const size_t source : silent.sources[queue[i]]) fails(source);

    Graph failing(n_states_);
    each_silent_step([&](size_t source, size_t target) {
      if (may_fail[source] && may_fail[target]) failing.add(source, target);
    });
    failing_ = failing.endless();
  }

  const std::vector<uint16_t>& transitions_;
  size_t width_, n_states_;
  std::vector<bool> failing_;  // a walk from here can continue without bound, and then fail
};

}  // namespace tokenweir
