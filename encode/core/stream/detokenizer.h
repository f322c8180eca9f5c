// The ids of one answer to text, up to a stop string, and which ids go with which text.
//
// An id's text goes to whoever splits it into answer, thinking and tool calls; what that makes of it comes back, is
// searched for stops where they count, and goes out with its ids. That way is `step`, then `send`, `take` or `drop`.
// Most ids cannot concern the splitter: they are no control token and their text has none of the characters at which
// something begins for it, or, in the arguments of a tool call, JSON that goes on after it. `skim` takes as many of these
// as there are, and both ways give the same. Their text is kept for the splitter, which must know what stands before the
// next text that it gets.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "decoders/decode_stream.h"
#include "stream/id_set.h"
#include "stream/json_value.h"
#include "stream/pending_ids.h"
#include "stream/stop_strings.h"

namespace tokenweir {

template <class Id>
class Detokenizer {
 public:
  // `controls` are never skimmed, nor is the id that makes the count reach `limit`. No stop counts that completes before
  // id number `min_tokens`.
  Detokenizer(DecodeState state, StopStrings stops, std::shared_ptr<const IdSet> controls, size_t min_tokens, size_t limit)
      : state_(std::move(state)),
        stops_(std::move(stops)),
        controls_(std::move(controls)),
        min_tokens_(min_tokens),
        limit_(limit) {}

  // The characters at which something can begin that concerns the splitter. Others with the same first byte go the long
  // way for nothing.
  void watch(std::string_view starts) {
    stirs_.fill(false);
    for (size_t at = 0; at < starts.size(); at += utf8_length(static_cast<uint8_t>(starts[at])))
      stirs_[static_cast<uint8_t>(starts[at])] = true;
    watched_ = true;
  }

  // What comes is text of a JSON value, whose end concerns the splitter too, and an error in it; null for other text.
  // Skimming moves the value on, and the splitter, which shares it, does so by the text of other ids. No stop counts there.
  void follow(std::shared_ptr<JsonValue> value) { value_ = std::move(value); }

  // Whether stops count in the text that comes next, and whether that is dropped.
  void enter(bool search, bool drop) {
    search_ = search;
    drop_ = drop;
  }

  // Takes ids from `place` on, before `end`, that nothing but text comes of; returns the place of the first that it did
  // not take. `id_at(i)` gives an id's number, -1 for what is none, and `keep(i)` the id. `text` becomes what goes out.
  template <class IdAt, class Keep>
  size_t skim(size_t place, size_t end, IdAt&& id_at, Keep&& keep, std::string& text) {
    const std::string_view held = stops_.held();
    const size_t room = count_ < limit_ ? limit_ - count_ - 1 : 0;
    if (end > place && end - place > room) end = place + room;
    for (; place < end && !stirring_ && unshown_.size() + text.size() < kMostUnshown; place++) {
      const int64_t id = id_at(place);
      if (id < 0 || static_cast<uint64_t>(id) >= state_.tokens().size() || controls_->contains(id)) break;
      const size_t before = text.size();
      state_.take(static_cast<size_t>(id), text);
      const std::string_view added = std::string_view(text).substr(before);
      if (stirs(added) || (search_ && !stops_.skim(added))) {
        stirring_ = added;
        text.resize(before);
        break;
      }
      add(keep(place), added.size());
    }
    if (watched_) unshown_ += text;
    if (!held.empty() || !stops_.held().empty()) {
      text.insert(0, held);
      text.resize(text.size() - stops_.held().size());
    }
    let_go(text);
    return place;
  }

  // Takes the text that was skimmed and that the splitter has not been shown.
  std::string unshown() { return std::exchange(unshown_, {}); }

  // Takes one id; appends its text to `text`. After a `skim` that ended early, it takes the id there.
  void step(Id id, size_t number, std::string& text) {
    const size_t before = text.size();
    if (stirring_) {
      text += *stirring_;
      stirring_.reset();
    } else {
      state_.take(number, text);
    }
    add(std::move(id), text.size() - before);
  }

  // Takes an id that gives no text.
  void skip(Id id) { add(std::move(id), 0); }

  // Takes an id that stands for `shown`, whatever the table says.
  void show(Id id, std::string_view shown, std::string& text) {
    const size_t before = text.size();
    state_.flush(text);
    text += shown;
    add(std::move(id), text.size() - before);
  }

  // Ends the decoding: appends the text of what is held.
  void flush(std::string& text) { state_.flush(text); }

  // Takes back text to go out; appends to `sent` what is final.
  void send(std::string_view text, std::string& sent) {
    if (search_) {
      const size_t from = pending_.sent() + stops_.held().size();
      const size_t ignore = count_ < min_tokens_ ? text.size() : floor_ > from ? floor_ - from : 0;
      stops_.take(text, ignore, sent);
    } else {
      sent += text;
    }
    let_go(sent);
  }

  // Ends the search: appends to `sent` what is held, since no stop reaches over what comes.
  void release(std::string& sent) {
    stops_.flush(sent);
    let_go(sent);
  }

  // Takes back `length` bytes of text that something else goes out for, or nothing.
  void take(size_t length) {
    pending_.drop(length);
    pending_.release();
  }
  void drop(size_t length) { pending_.drop(length); }

  // No text follows: the ids that are left are done.
  void finish() { pending_.finish(); }

  void set_limit(size_t limit) { limit_ = limit; }

  size_t count() const { return count_; }
  const StopStrings& stops() const { return stops_; }
  PendingIds<Id>& pending() { return pending_; }

 private:
  static constexpr size_t kMostUnshown = 1024;  // bytes; then an id goes the long way

  bool stirs(std::string_view text) {
    for (const char c : text)
      if (stirs_[static_cast<uint8_t>(c)]) return true;
    return value_ && !value_->pass(text);
  }

  void add(Id id, size_t length) {
    if (++count_ == min_tokens_) floor_ = pending_.end();
    pending_.add(std::move(id), length, state_.calm() || state_.pending() == 0);
  }

  void let_go(std::string& text) {
    if (!drop_) return pending_.send(text.size());
    pending_.drop(text.size());
    text.clear();
  }

  DecodeState state_;
  StopStrings stops_;
  std::shared_ptr<const IdSet> controls_;
  PendingIds<Id> pending_;
  std::array<bool, 256> stirs_{};
  std::shared_ptr<JsonValue> value_;  // that the text which comes is of
  bool watched_ = false, search_ = false, drop_ = false;
  std::string unshown_;  // text that was skimmed, which the splitter has not been shown
  std::optional<std::string> stirring_;  // the text of an id that has been decoded and not yet been stepped
  size_t count_ = 0, min_tokens_, limit_;
  size_t floor_ = 0;  // the position before which no stop may complete, once `min_tokens` have come
};

}  // namespace tokenweir
