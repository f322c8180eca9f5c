// The ids of one answer to text, up to a stop string, and which ids go with which text.
//
// An id's text goes to whoever splits it into answer, thinking and tool calls. What that makes of it comes back, is
// searched for stops where they count, and goes out with its ids. Most ids cannot concern the splitter: a `Passage` says
// which. Their text passes: it goes out, or is held, at once. It is given to the splitter together with the next text
// that does concern it; what comes back of it has gone out before, and is left out then.
//
// So all text is given, and all of it comes back, in order. What comes back without having been given is refused.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/saving.h"
#include "decoders/decode_stream.h"
#include "stream/id_set.h"
#include "stream/json_value.h"
#include "stream/pending_ids.h"
#include "stream/stop_strings.h"

namespace tokenweir {

// What does not change during an answer.
struct AnswerRules {
  AnswerRules(std::vector<int64_t> end_ids, std::unordered_map<int64_t, std::string> shown_texts, bool has_splitter, size_t least)
      : end_ids(std::move(end_ids)), shown(std::move(shown_texts)), marked(all()), splits(has_splitter), min_tokens(least) {}

  // Whether an id ends the answer.
  bool ends(int64_t id) const { return std::find(end_ids.begin(), end_ids.end(), id) != end_ids.end(); }

  // What an id stands for whatever the table says, or null.
  const std::string* text(int64_t id) const {
    const auto found = shown.find(id);
    return found == shown.end() ? nullptr : &found->second;
  }

  std::vector<int64_t> end_ids;
  std::unordered_map<int64_t, std::string> shown;
  IdSet marked;       // the ids of both, which are few
  bool splits;        // there is a splitter, which must see all text
  size_t min_tokens;  // no stop counts that completes before so many ids

 private:
  std::vector<int64_t> all() const {
    std::vector<int64_t> ids = end_ids;
    for (const auto& [id, text] : shown) ids.push_back(id);
    return ids;
  }
};

// Text that a splitter need not see at once: none of the bytes `until`, and the value goes on after all of it.
struct Passage {
  // Of other characters with the same first byte the text does not pass either.
  Passage(std::string_view chars, std::optional<JsonValue> scanner, bool is_held) : value(std::move(scanner)), held(is_held) {
    for (size_t at = 0; at < chars.size(); at += utf8_length(static_cast<uint8_t>(chars[at])))
      until[static_cast<uint8_t>(chars[at])] = true;
  }

  bool takes(std::string_view text) {
    for (const char c : text)
      if (until[static_cast<uint8_t>(c)]) return false;
    return !value || value->pass(text);
  }

  std::array<bool, 256> until{};
  std::optional<JsonValue> value;
  bool held;  // it is held back, rather than sent
};

template <class Id>
class Detokenizer {
 public:
  // The id that makes the count reach `limit` never passes.
  Detokenizer(DecodeState state, StopStrings stops, std::shared_ptr<const AnswerRules> rules, size_t limit)
      : state_(std::move(state)), stops_(std::move(stops)), rules_(std::move(rules)), limit_(limit) {}

  // What may pass from here on, or nothing.
  void let_pass(std::optional<Passage> passage) {
    expect(unseen_.empty(), "text has passed that was not given");
    expect(!passage || passage->held || back_ == pending_.end(), "text was given that has not come back");
    passage_ = std::move(passage);
  }

  // Whether stops count in the text that comes back next, and whether that is dropped.
  void enter(bool search, bool drop) {
    search_ = search;
    drop_ = drop;
  }

  // Takes ids from `place` on, before `end`, as long as their text passes, and one more, whose text is given as `next`
  // behind the text that has passed and was not given. Returns the place behind the last one, and whether there is such
  // a text. It ends early before an id that ends the answer, and before what is no id. `id_at(i)` gives an id's number,
  // -1 for what is none, and `keep(i)` the id. `sent` becomes what goes out.
  template <class IdAt, class Keep>
  std::pair<size_t, bool> feed(size_t place, size_t end, IdAt&& id_at, Keep&& keep, std::string& sent, std::string& next) {
    const std::string_view held = stops_.held();
    const bool passing = passage_.has_value(), keeps = passing && passage_->held, search = search_ && !keeps;
    const size_t most = keeps ? kMostHeld : kMostUnseen;
    bool stirred = false;
    for (; place < end && !stirred; place++) {
      const int64_t id = id_at(place);
      if (id < 0 || static_cast<uint64_t>(id) >= state_.tokens().size()) break;
      const bool marked = rules_->marked.contains(id);
      if (marked && rules_->ends(id)) break;
      const size_t before = sent.size();
      if (marked)
        decode(static_cast<size_t>(id), sent);
      else
        state_.take(static_cast<size_t>(id), sent);
      const std::string_view text = std::string_view(sent).substr(before);
      stirred = !passing || marked || count_ + 1 >= limit_ || (rules_->splits && unseen_.size() + sent.size() > most) ||
                !passage_->takes(text) || (search && !stops_.skim(text));
      add(keep(place), text.size());
      if (stirred) {
        next = text;
        sent.resize(before);
      }
    }
    if (!sent.empty()) pass(sent, held, keeps);
    if (stirred && !unseen_.empty()) {
      next.insert(0, unseen_);
      unseen_.clear();
    }
    return {place, stirred};
  }

  // Takes any one id; appends to `next` the text that is to be given.
  void step(Id id, size_t number, std::string& next) {
    next += std::exchange(unseen_, {});
    const size_t before = next.size();
    decode(number, next);
    add(std::move(id), next.size() - before);
  }

  // Takes an id that gives no text.
  void skip(Id id) { add(std::move(id), 0); }

  // Takes the text that has passed and was not given.
  std::string unseen() { return std::exchange(unseen_, {}); }

  // Ends the decoding: appends the text that is left to be given.
  void flush(std::string& next) {
    next += std::exchange(unseen_, {});
    const size_t before = next.size();
    state_.flush(next);
    pending_.extend(next.size() - before);
  }

  // Takes back text to go out; appends to `sent` what is final.
  void send(std::string_view text, std::string& sent) {
    text.remove_prefix(come_back(text.size()));
    if (search_) {
      const size_t from = pending_.sent() + stops_.held().size();
      const size_t ignore = count_ < rules_->min_tokens ? text.size() : floor_ > from ? floor_ - from : 0;
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
    drop(length);
    pending_.release();
  }
  void drop(size_t length) { pending_.drop(length - come_back(length)); }

  // No text follows: the ids that are left are done.
  void finish() { pending_.finish(); }

  void set_limit(size_t limit) { limit_ = limit; }

  size_t count() const { return count_; }
  const StopStrings& stops() const { return stops_; }
  PendingIds<Id>& pending() { return pending_; }

  // Where it is; not what may pass, nor what `enter` has said.
  template <class Number>
  void save(Saver& to, Number&& number) const {
    expect(unseen_.empty(), "text has passed that was not given");
    state_.save(to);
    stops_.save(to);
    pending_.save(to, number);
    for (const size_t value : {count_, floor_, back_, ahead_}) to.number(value);
  }

  template <class MakeId>
  void load(Loader& from, MakeId&& id) {
    state_.load(from);
    stops_.load(from);
    pending_ = PendingIds<Id>::load(from, state_.tokens().size(), id);
    count_ = from.number(Loader::kMostBytes);
    floor_ = from.number(pending_.end());
    back_ = from.number(pending_.end());
    ahead_ = from.number(back_);
    passage_.reset();
    unseen_.clear();
  }

 private:
  static constexpr size_t kMostUnseen = 4096, kMostHeld = 512;  // bytes; the latter is MAX_PASSED in parsers/base.py

  static void expect(bool holds, const char* what) {
    if (!holds) throw std::logic_error(what);
  }

  // Appends an id's text.
  void decode(size_t id, std::string& text) {
    const std::string* shown = rules_->text(static_cast<int64_t>(id));
    if (shown == nullptr) return state_.take(id, text);
    state_.flush(text);
    text += *shown;
  }

  void add(Id id, size_t length) {
    if (++count_ == rules_->min_tokens) floor_ = pending_.end();
    pending_.add(std::move(id), length, state_.calm() || state_.pending() == 0);
  }

  // Lets text pass behind what the stops have held. `text` becomes what goes out.
  void pass(std::string& text, std::string_view held, bool keeps) {
    if (rules_->splits) unseen_ += text;
    if (keeps) return text.clear();
    if (rules_->splits) ahead_ += text.size();
    back_ += text.size();
    if (search_ && (!held.empty() || !stops_.held().empty())) {
      text.insert(0, held);
      text.resize(text.size() - stops_.held().size());
    }
    let_go(text);
  }

  // Counts text that comes back; returns how many bytes of it have passed before.
  size_t come_back(size_t length) {
    const size_t passed = std::min(ahead_, length);
    expect(length - passed <= pending_.end() - back_, "text comes back that was not given");
    ahead_ -= passed;
    back_ += length - passed;
    return passed;
  }

  void let_go(std::string& text) {
    if (!drop_) return pending_.send(text.size());
    pending_.drop(text.size());
    text.clear();
  }

  DecodeState state_;
  StopStrings stops_;
  std::shared_ptr<const AnswerRules> rules_;
  PendingIds<Id> pending_;
  std::optional<Passage> passage_;
  bool search_ = false, drop_ = false;
  std::string unseen_;             // text that has passed and was not given
  size_t back_ = 0, ahead_ = 0;    // bytes that have come back or passed; of these, that have yet to come back
  size_t count_ = 0, limit_;
  size_t floor_ = 0;  // the position before which no stop may complete, once `min_tokens` have come
};

}  // namespace tokenweir
