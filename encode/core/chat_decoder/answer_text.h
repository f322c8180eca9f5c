// The text of an answer between decoding and going out: which ids go with which text, up to a stop string.
//
// Ids come with their text (`add`), which then comes back, all of it and in order: what goes out (`search`, `let_go`)
// is searched for stops where they count; for other text something else goes out (`take`), or nothing (`drop`). Text
// may also pass: it goes out at once, and is left out when it comes back. What comes back without having been added is
// refused.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/saving.h"
#include "base/utf8.h"
#include "chat_decoder/pending_ids.h"
#include "chat_decoder/stop_strings.h"

namespace tokenweir {

// The stops of an answer, which others may read as well. A copy has stops of its own.
class SharedStops {
 public:
  explicit SharedStops(std::shared_ptr<StopStrings> stops) : stops_(std::move(stops)) {}
  SharedStops(const SharedStops& other) : stops_(std::make_shared<StopStrings>(*other.stops_)) {}
  SharedStops(SharedStops&&) = default;
  SharedStops& operator=(SharedStops other) {
    stops_ = std::move(other.stops_);
    return *this;
  }

  StopStrings* operator->() const { return stops_.get(); }

 private:
  std::shared_ptr<StopStrings> stops_;
};

template <class Id>
class AnswerText {
 public:
  // No stop counts that completes before `min_tokens` ids.
  explicit AnswerText(std::shared_ptr<StopStrings> stops, size_t min_tokens = 0)
      : stops_(std::move(stops)), min_tokens_(min_tokens) {}

  // Whether stops count in the text that comes back next, and whether that is dropped.
  void enter(bool search, bool drop) {
    search_ = search;
    drop_ = drop;
  }

  // Whether the ids of the text that comes back next count as thinking.
  void think(bool on) {
    thinking_ = thinking();
    since_ = pending_.passed();
    thinks_ = on;
  }

  // Adds an id that ends with the next `length` bytes; not `whole` if the last of its own begin the character after.
  void add(Id id, size_t length, bool whole) {
    count();
    extend(length);
    pending_.add(std::move(id), length > 0 && whole);
  }

  // Adds an id that ends with the last byte that was added; or with the next character, if it has no text.
  void add_at_end(Id id, bool has_text) {
    count();
    pending_.add(std::move(id), has_text);
  }

  // Adds text that no id comes with.
  void extend(size_t length) { pending_.extend(length); }

  // Searches a text that is to pass; returns false, and has not searched it, if a stop completes in it.
  bool skim(std::string_view text) { return stops_->skim(text); }

  // Lets text pass that `skim` has seen, behind the `held` that the stops held before. `text` becomes what goes out. It
  // comes back later, or not.
  void pass(std::string& text, std::string_view held, bool comes_back) {
    if (comes_back) ahead_ += text.size();
    back_ += text.size();
    if (search_ && (!held.empty() || !stops_->held().empty())) {
      text.insert(0, held);
      text.resize(text.size() - stops_->held().size());
    }
    let_go(text);
  }

  // A tag of `length` bytes comes, with which thinking begins or ends. It is cut out, and its ids count as thinking; the
  // text that has passed before it does not come back. What the stops have held goes out, at the end of `sent`.
  void cross(size_t length, std::string& sent) {
    ahead_ = 0;
    end_search(sent);
    const bool closes = thinks_;
    think(true);
    drop(length);
    think(!closes);
  }

  // A tag comes with which a block of calls begins. The text that has passed before it does not come back; the tag does.
  void keep_back() { ahead_ = 0; }

  // A tag comes with which a block of calls ends. It is cut out, with all text that has not come back. What the stops have
  // held goes out, at the end of `sent`.
  void drop_rest(std::string& sent) {
    end_search(sent);
    drop(pending_.end() - back_);
  }

  // Takes back text to go out; appends to `sent` what is final, for `let_go`.
  void search(std::string_view text, std::string& sent) {
    text.remove_prefix(come_back(text.size()));
    if (!search_) {
      sent += text;
      return;
    }
    const size_t from = pending_.sent() + stops_->held().size();
    const size_t ignore = count_ < min_tokens_ ? text.size() : floor_ > from ? floor_ - from : 0;
    stops_->take(text, ignore, sent);
  }

  // Ends the search: appends to `sent` what is held, since no stop reaches over what comes, for `let_go`.
  void release(std::string& sent) { stops_->flush(sent); }

  // Text goes out, and its ids are ready; or `text` becomes empty, since it is dropped.
  void let_go(std::string& text) {
    if (!drop_) return pending_.send(text.size());
    pending_.drop(text.size());
    text.clear();
  }

  // Text goes out in parts, one for each place in it where ids end; `give(part)` is called when the ids of one are
  // ready.
  template <class Give>
  void let_go_in_parts(std::string& text, Give&& give) {
    if (drop_) return let_go(text);
    std::string_view rest = text;
    while (!rest.empty()) {
      size_t length = pending_.next_end(pending_.sent() + rest.size()) - pending_.sent();
      while (length < rest.size() && utf8_continues(static_cast<uint8_t>(rest[length]))) length++;
      pending_.send(length);
      give(rest.substr(0, length));
      rest.remove_prefix(length);
    }
  }

  // Takes back `length` bytes of text that something else goes out for, or nothing.
  void take(size_t length) {
    drop(length);
    pending_.release();
  }
  void drop(size_t length) { pending_.drop(length - come_back(length)); }

  // No text follows: the ids that are left are done.
  void finish() { pending_.finish(); }

  // Bytes of text that have yet to come back, including those that have passed.
  size_t awaited() const { return pending_.end() - back_ + ahead_; }

  // Whether all text has come back or passed.
  bool is_back() const { return back_ == pending_.end(); }

  bool searches() const { return search_; }
  bool thinks() const { return thinks_; }

  // How many ids have counted as thinking; and how many do if all that have been added are what the next ones are.
  size_t thinking() const { return thinks_ ? thinking_ + pending_.passed() - since_ : thinking_; }
  size_t thought() const { return thinks_ ? thinking_ + count_ - since_ : thinking_; }

  size_t ids() const { return count_; }
  const StopStrings& stops() const { return *stops_.operator->(); }
  PendingIds<Id>& pending() { return pending_; }

  // Where it is, but for what `enter` has said.
  template <class Number>
  void save(Saver& to, Number&& number) const {
    stops_->save(to);
    pending_.save(to, number);
    for (const size_t value : {count_, floor_, back_, ahead_, thinking()}) to.number(value);
    to.number(thinks_);
  }

  // `ids`: how many ids the vocabulary has; a state with another id is refused.
  template <class MakeId>
  void load(Loader& from, size_t ids, MakeId&& id) {
    stops_->load(from);
    pending_ = PendingIds<Id>::load(from, ids, id);
    count_ = from.number(Loader::kMostBytes);
    floor_ = from.number(pending_.end());
    back_ = from.number(pending_.end());
    ahead_ = from.number(back_);
    thinking_ = from.number(pending_.passed());
    thinks_ = from.flag();
    since_ = pending_.passed();
    check_state(count_ == pending_.passed() + pending_.open(), "it counts other ids than it has");
    check_state(stops_->matched() != nullptr || pending_.sent() + stops_->held().size() == back_,
                "other text is held than what has come back");
  }

 private:
  void count() {
    if (++count_ == min_tokens_) floor_ = pending_.end();
  }

  // Lets go what the stops have held, at the end of `sent`: none reaches over markup.
  void end_search(std::string& sent) {
    if (!search_) return;
    std::string held;
    release(held);
    let_go(held);
    sent += held;
  }

  // Counts text that comes back; returns how many bytes of it have passed before.
  size_t come_back(size_t length) {
    const size_t passed = std::min(ahead_, length);
    if (length - passed > pending_.end() - back_) throw std::logic_error("text comes back that was not given");
    ahead_ -= passed;
    back_ += length - passed;
    return passed;
  }

  SharedStops stops_;
  PendingIds<Id> pending_;
  size_t min_tokens_;
  bool search_ = false, drop_ = false;
  size_t back_ = 0, ahead_ = 0;  // bytes that have come back or passed; of these, that have yet to come back
  size_t count_ = 0;
  bool thinks_ = false;
  size_t thinking_ = 0, since_ = 0;  // ids of thinking, without those that have passed since so many had
  size_t floor_ = 0;                 // the position before which no stop may complete, once `min_tokens` have come
};

}  // namespace tokenweir
