// Assignment of an answer's ids to the text that is emitted, and the search for stop strings in that text.
//
// Ids are added with their text (`add`). The splitter returns all of that text in order. Text that is emitted
// (`search`, `emit`) is searched for stops where they count. Other text is replaced (`take`) or removed (`drop`), which
// ends a block of text: white space alone between two such places is removed, too (`leading_space.h`).
// Text of the fast path (`pass`) is emitted at once, and skipped when it is returned. Returning text that was not added
// is an error.
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
#include "chat_decoder/hidden_text.h"
#include "chat_decoder/leading_space.h"
#include "chat_decoder/pending_ids.h"
#include "chat_decoder/stop_strings.h"

namespace tokenweir {

// The stops of an answer, shared with its other readers. A copy has stops of its own.
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
  // Stops that complete before `min_tokens` ids are ignored. `trims`: white space alone between markup is removed.
  explicit AnswerText(std::shared_ptr<StopStrings> stops, size_t min_tokens = 0, bool trims = false)
      : stops_(std::move(stops)), space_(trims), min_tokens_(min_tokens) {}

  // Sets whether stops count in the text that is returned next, whether that text is dropped, and whether it belongs to
  // a call, in which white space counts.
  void enter(bool search, bool drop, bool call) {
    search_ = search;
    drop_ = drop;
    call_ = call;
  }

  // Begins a block of text: white space that alone makes up the block before is removed.
  void begin_block() {
    pending_.drop(space_.held().size());
    space_.begin_block();
  }

  // Lets held white space pass: `search` returns it with the next text, which may be empty. White space behind markup is
  // removed instead, unless `anywhere`. Returns whether there is any to pass.
  bool end_block(bool anywhere) {
    if (space_.end_block(anywhere)) begin_block();
    return !space_.held().empty();
  }

  // Whether white space that comes next is held back.
  bool holds_space() const { return space_.at_start() && !call_; }

  // Whether white space is held back.
  bool has_space() const { return !space_.held().empty(); }

  // Sets whether the ids of the text that is returned next count as thinking.
  void think(bool on) {
    if (on != thinks_ && has_space()) begin_block();
    thinking_ = thinking();
    since_ = pending_.passed();
    thinks_ = on;
  }

  // Adds an id that ends with the next `length` bytes; `whole` is false if its last bytes begin the next character.
  void add(Id id, size_t length, bool whole) {
    count();
    extend(length);
    pending_.add(std::move(id), length > 0 && whole, length > 0 || !whole);
  }

  // Adds an id that ends with the last byte that was added, or, without text, with the next character.
  void add_at_end(Id id, bool has_text) {
    count();
    pending_.add(std::move(id), has_text, has_text);
  }

  // Hides the last `length` bytes that were added: they are searched for stops, and not emitted.
  void hide(size_t length) { hidden_.hide(pending_.end() - length, pending_.end()); }

  // Adds text without an id.
  void extend(size_t length) { pending_.extend(length); }

  // Searches text of the fast path. Returns false, and changes nothing, if a stop completes in it.
  bool skim(std::string_view text) { return stops_->skim(text); }

  // Emits text of the fast path that `skim` has searched, behind `held`, which the stops held before. `text` becomes
  // the emitted text. `comes_back`: the splitter returns it later.
  void pass(std::string& text, std::string_view held, bool comes_back) {
    if (comes_back) ahead_ += text.size();
    back_ += text.size();
    if (search_ && (!held.empty() || !stops_->held().empty())) {
      text.insert(0, held);
      text.resize(text.size() - stops_->held().size());
    }
    emit(text);
  }

  // Removes a tag of `length` bytes that begins or ends thinking; its ids count as thinking. The text emitted before it
  // is not returned any more. Text that the stops have held is emitted, at the end of `sent`.
  void remove_tag(size_t length, std::string& sent) {
    ahead_ = 0;
    end_search(sent);
    const bool closes = thinks_;
    think(true);
    drop(length);
    think(!closes);
  }

  // Begins a block of calls at its tag. The text emitted before the tag is not returned any more; the tag is.
  void keep_back() { ahead_ = 0; }

  // Ends a block of calls: removes its tag, and all text that was not returned. Text that the stops have held is
  // emitted, at the end of `sent`.
  void drop_rest(std::string& sent) {
    end_search(sent);
    drop(pending_.end() - back_);
  }

  // Searches returned text for stops; appends the final part to `sent`, for `emit`.
  void search(std::string_view text, std::string& sent) {
    text.remove_prefix(come_back(text.size()));
    if (holds_space() || has_space()) {
      std::string whole(text);
      if (space_.take(whole)) find_stop(whole, sent);
    } else {
      find_stop(text, sent);
    }
  }

  // Ends the search, because no stop reaches over markup: appends the held text to `sent`, for `emit`.
  void release(std::string& sent) { stops_->flush(sent); }

  // Emits text, whose ids are ready then; or clears `text`, if it is dropped.
  void emit(std::string& text) {
    if (!drop_ && hidden_.empty()) return pending_.send(text.size());
    std::string visible;
    size_t at = 0;
    hidden_.split(pending_.sent(), pending_.sent() + text.size(), [&](size_t length, bool is_hidden) {
      if (drop_ || is_hidden) {
        pending_.drop(length);
      } else {
        visible.append(text, at, length);
        pending_.send(length);
      }
      at += length;
    });
    text = std::move(visible);
  }

  // Emits text in parts, one for each place where ids end. Calls `give(part)` when the ids of a part are ready.
  template <class Give>
  void emit_in_parts(std::string& text, Give&& give) {
    if (drop_) return emit(text);
    std::string_view rest = text;
    while (!rest.empty()) {
      size_t length = pending_.next_end(pending_.sent() + rest.size()) - pending_.sent();
      while (length < rest.size() && utf8_continues(static_cast<uint8_t>(rest[length]))) length++;
      pending_.send(length);
      give(rest.substr(0, length));
      rest.remove_prefix(length);
    }
  }

  // Replaces `length` bytes of returned text by other text (`take`), or removes them (`drop`).
  void take(size_t length) {
    drop(length);
    pending_.release();
  }
  void drop(size_t length) {
    begin_block();
    pending_.drop(length - come_back(length));
  }

  // Ends the text: the remaining ids are ready.
  void finish() { pending_.finish(); }

  // Bytes of text that have not been returned yet, including those of the fast path.
  size_t awaited() const { return pending_.end() - back_ + ahead_; }

  // Whether all text has been returned or took the fast path.
  bool is_back() const { return back_ == pending_.end(); }

  bool searches() const { return search_; }
  bool thinks() const { return thinks_; }

  // Number of ids of thinking whose text is done; and the number if all added ids count as the next ones do.
  size_t thinking() const { return thinks_ ? thinking_ + pending_.passed() - since_ : thinking_; }
  size_t thought() const { return thinks_ ? thinking_ + count_ - since_ : thinking_; }

  size_t ids() const { return count_; }
  const StopStrings& stops() const { return *stops_.operator->(); }

  // Number of ids that are ready or wait; and of those that are ready.
  size_t kept() const { return pending_.kept(); }
  size_t ready() const { return pending_.ready(); }

  // Takes the first ready id.
  Id take_id() {
    bool in_text = false;
    Id id = pending_.take(in_text);
    if (records_) in_text_ += in_text ? '\1' : '\0';
    return id;
  }

  // From here on, `in_text` records for each id that is taken whether the last byte of its own text was emitted.
  void record() { records_ = true; }
  std::string& in_text() { return in_text_; }

  // Saves the state, except the values of `enter`.
  template <class Number>
  void save(Saver& to, Number&& number) const {
    stops_->save(to);
    pending_.save(to, number);
    space_.save(to);
    hidden_.save(to);
    to.text(in_text_);
    for (const size_t value : {count_, floor_, back_, ahead_, thinking()}) to.number(value);
    to.number(thinks_);
  }

  // Loads a state; one with an id outside of the `ids` of the vocabulary is refused.
  template <class MakeId>
  void load(Loader& from, size_t ids, MakeId&& id) {
    stops_->load(from);
    pending_ = PendingIds<Id>::load(from, ids, id);
    space_.load(from);
    hidden_.load(from, pending_.end());
    in_text_ = from.text();
    count_ = from.number(Loader::kMostBytes);
    floor_ = from.number(pending_.end());
    back_ = from.number(pending_.end());
    ahead_ = from.number(back_);
    thinking_ = from.number(pending_.passed());
    thinks_ = from.flag();
    since_ = pending_.passed();
    check_state(count_ == pending_.passed() + pending_.open(), "it counts other ids than it has");
    check_state(stops_->matched() != nullptr || pending_.sent() + stops_->held().size() + space_.held().size() == back_,
                "other text is held than what has come back");
  }

 private:
  // Searches text for stops; appends the final part to `sent`.
  void find_stop(std::string_view text, std::string& sent) {
    if (!search_) {
      sent += text;
      return;
    }
    const size_t from = pending_.sent() + stops_->held().size();
    const size_t ignore = count_ < min_tokens_ ? text.size() : floor_ > from ? floor_ - from : 0;
    stops_->take(text, ignore, sent);
  }

  void count() {
    if (++count_ == min_tokens_) floor_ = pending_.end();
  }

  // Emits the text that the stops have held, at the end of `sent`: no stop reaches over markup.
  void end_search(std::string& sent) {
    if (!search_) return;
    std::string held;
    release(held);
    emit(held);
    sent += held;
  }

  // Counts returned text; returns how many bytes of it took the fast path.
  size_t come_back(size_t length) {
    const size_t passed = std::min(ahead_, length);
    if (length - passed > pending_.end() - back_) throw std::logic_error("text comes back that was not given");
    ahead_ -= passed;
    back_ += length - passed;
    return passed;
  }

  SharedStops stops_;
  PendingIds<Id> pending_;
  LeadingSpace space_;
  HiddenText hidden_;
  std::string in_text_;  // a byte for each id that was taken: 1 or 0
  bool records_ = false;
  size_t min_tokens_;
  bool search_ = false, drop_ = false, call_ = false;
  size_t back_ = 0, ahead_ = 0;  // bytes returned or emitted by the fast path; of these, not returned yet
  size_t count_ = 0;
  bool thinks_ = false;
  size_t thinking_ = 0, since_ = 0;  // ids of thinking before the last change, and all done ids at that time
  size_t floor_ = 0;                 // no stop may complete before this position, once there are `min_tokens` ids
};

}  // namespace tokenweir
