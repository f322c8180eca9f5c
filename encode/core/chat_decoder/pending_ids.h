// Queue of ids whose text has not been emitted, each with the byte position in the text where it ends.
//
// An id is emitted with the last byte of its text. One without text of its own is emitted with the next character.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/saving.h"

namespace tokenweir {

template <class Id>
class PendingIds {
 public:
  // The position up to which text has been added.
  size_t end() const { return end_; }

  // The position up to which text has been emitted or dropped, and the number of ids in that text.
  size_t sent() const { return sent_; }
  size_t passed() const { return passed_; }

  // Adds an id that ends with the last byte that was added; unless `whole`, with the next character. `has_text`: it has
  // text of its own, or a part of that character.
  void add(Id id, bool whole, bool has_text) { waiting_.push_back({std::move(id), whole ? end_ : end_ + 1, has_text}); }

  // Adds text without an id.
  void extend(size_t length) { end_ += length; }

  // Emits the next `length` bytes: their ids are ready, and those that waited for text.
  void send(size_t length) {
    pass(length, true);
    if (length > 0) release();
  }

  // Makes the ids of dropped text ready: something is emitted in its place.
  void release() { ready_ = done_; }

  // Drops the next `length` bytes: their ids wait for the next emission.
  void drop(size_t length) { pass(length, false); }

  // Ends the text: all ids are ready.
  void finish() {
    for (size_t at = done_; at < waiting_.size(); at++) waiting_[at].in_text = false;
    passed_ += waiting_.size() - done_;
    ready_ = done_ = waiting_.size();
  }

  // The position up to which the next text is emitted: the next one where ids end, or `most` if that is earlier.
  size_t next_end(size_t most) const {
    return done_ < waiting_.size() && waiting_[done_].end < most ? waiting_[done_].end : most;
  }

  // Number of ids that have not been taken; and of those whose text has been neither emitted nor dropped.
  size_t kept() const { return waiting_.size() - first_; }
  size_t open() const { return waiting_.size() - done_; }

  // Number of ids that are ready.
  size_t ready() const { return ready_ - first_; }

  // Takes the first ready id. `in_text` becomes whether the last byte of the id's own text was emitted.
  Id take(bool& in_text) {
    in_text = waiting_[first_].in_text;
    Id id = std::move(waiting_[first_++].id);
    if (first_ == waiting_.size() || (first_ >= kMostTaken && first_ * 2 >= waiting_.size())) forget();
    return id;
  }

  // `number(id)` gives an id's number, `id(number)` makes one of it.
  template <class Number>
  void save(Saver& to, Number&& number) const {
    for (const size_t position : {end_, sent_, passed_, waiting_.size() - first_, ready_ - first_, done_ - first_})
      to.number(position);
    for (size_t at = first_; at < waiting_.size(); at++) {
      to.number(number(waiting_[at].id));
      to.number(waiting_[at].end);
      to.number(waiting_[at].in_text);
    }
  }

  template <class MakeId>
  static PendingIds load(Loader& from, size_t ids, MakeId&& id) {
    PendingIds pending;
    pending.end_ = from.number(Loader::kMostBytes);
    pending.sent_ = from.number(pending.end_);
    pending.passed_ = from.number(Loader::kMostBytes);
    const size_t waiting = from.number(Loader::kMostBytes);
    pending.ready_ = from.number(waiting);
    pending.done_ = from.number(waiting);
    check_state(pending.ready_ <= pending.done_, "ids are ready that are not done");
    for (size_t at = 0; at < waiting; at++) {
      const size_t number = from.number(ids - 1);
      const size_t end = from.number(pending.end_ + 1);
      const bool in_text = from.flag();
      check_state(at == 0 || end >= pending.waiting_.back().end, "an id ends before the one that came before it");
      check_state(at < pending.done_ || end > pending.sent_, "the text of an id has gone out without it");
      pending.waiting_.push_back({id(number), end, in_text});
    }
    return pending;
  }

 private:
  struct Waiting {
    Id id;
    size_t end;
    bool in_text;
  };

  static constexpr size_t kMostTaken = 64;  // that are kept, at least, before the rest moves up

  void pass(size_t length, bool emitted) {
    sent_ += length;
    const size_t before = done_;
    for (; done_ < waiting_.size() && waiting_[done_].end <= sent_; done_++)
      if (!emitted) waiting_[done_].in_text = false;
    passed_ += done_ - before;
  }

  void forget() {
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(first_));
    ready_ -= first_;
    done_ -= first_;
    first_ = 0;
  }

  std::vector<Waiting> waiting_;
  size_t first_ = 0, ready_ = 0, done_ = 0;  // places in it: before them all are taken, ready, done
  size_t end_ = 0, sent_ = 0, passed_ = 0;
};

}  // namespace tokenweir
