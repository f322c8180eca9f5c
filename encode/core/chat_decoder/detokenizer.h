// The ids of one answer to text.
//
// An id's text goes to whoever splits it into answer, thinking and tool calls; what that makes of it comes back to the
// `AnswerText`. Most ids cannot concern the splitter: a `Passage` says which. Their text passes: it goes out, or is
// held, at once. It is given to the splitter together with the next text that does concern it; what comes back of it
// has gone out before, and is left out then. A tag that the passage knows is only named; neither it nor what has passed
// before it is given. A tag of thinking, or one that ends a block of calls, is cut out here.
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
#include "chat_decoder/answer_text.h"
#include "chat_decoder/id_set.h"
#include "chat_decoder/json_value.h"
#include "decoders/decode_stream.h"

namespace tokenweir {

// What does not change during an answer.
struct AnswerRules {
  AnswerRules(std::vector<int64_t> end_ids, std::unordered_map<int64_t, std::string> shown_texts, bool has_splitter)
      : end_ids(std::move(end_ids)), shown(std::move(shown_texts)), marked(all()), splits(has_splitter) {}

  // Whether an id ends the answer.
  bool ends(int64_t id) const { return std::find(end_ids.begin(), end_ids.end(), id) != end_ids.end(); }

  // What an id stands for whatever the table says, or null.
  const std::string* text(int64_t id) const {
    const auto found = shown.find(id);
    return found == shown.end() ? nullptr : &found->second;
  }

  std::vector<int64_t> end_ids;
  std::unordered_map<int64_t, std::string> shown;
  IdSet marked;  // the ids of both, which are few
  bool splits;   // there is a splitter, which must see all text

 private:
  std::vector<int64_t> all() const {
    std::vector<int64_t> ids = end_ids;
    for (const auto& [id, text] : shown) ids.push_back(id);
    return ids;
  }
};

// Text that a splitter need not see at once: none of the characters `until`, or nothing but white space. A JSON value may
// follow it, and must go on.
class Passage {
 public:
  // What a text is to the tags: none of them, the beginning of one, a tag of thinking, or one that begins or ends a block
  // of calls.
  enum class Match { kNone, kBeginning, kTag, kOpener, kCloser };

  // The tags of an answer.
  struct Tags {
    std::vector<std::string> anywhere, line;    // of thinking; `line` counts first on its line but for white space
    std::vector<std::string> openers, closers;  // of blocks of calls
  };

  // The text begins behind nothing but white space on its line, or not. Of other characters with the same first byte as
  // one of `until` the text does not pass either. Without `until` it is white space.
  Passage(std::optional<std::string> chars, bool is_held, Tags all_tags, bool is_bare)
      : until(std::move(chars)), held(is_held), tags(std::move(all_tags)), bare(is_bare) {
    stops_.fill(!until);
    for (const char space : std::string_view(" \t\r\n")) stops_[static_cast<uint8_t>(space)] = false;
    for (size_t at = 0; until && at < until->size(); at += utf8_length(static_cast<uint8_t>((*until)[at])))
      stops_[static_cast<uint8_t>((*until)[at])] = true;
  }

  bool takes(std::string_view text) const {
    return std::none_of(text.begin(), text.end(), [this](char c) { return stops_[static_cast<uint8_t>(c)]; });
  }

  // Matches `text` behind the text that has passed, which comes in two parts.
  Match match(std::string_view text, std::string_view passed, std::string_view more) const {
    Match found = match_one(tags.anywhere, text, Match::kTag);
    if (found == Match::kNone) found = match_one(tags.openers, text, Match::kOpener);
    if (found == Match::kNone) found = match_one(tags.closers, text, Match::kCloser);
    if (found != Match::kNone || tags.line.empty() || !bare_after(more, bare_after(passed, bare))) return found;
    return match_one(tags.line, text, Match::kTag);
  }

  const std::optional<std::string> until;
  const bool held;  // it is held back, rather than sent
  const Tags tags;
  const bool bare;

 private:
  static Match match_one(const std::vector<std::string>& any_of, std::string_view text, Match whole) {
    for (const std::string& tag : any_of)
      if (tag.compare(0, text.size(), text) == 0) return tag.size() == text.size() ? whole : Match::kBeginning;
    return Match::kNone;
  }

  // Whether a line is bare after more text. Behind white space outside of ASCII it is not: the tag then goes the long
  // way, through the splitter, which knows better.
  static bool bare_after(std::string_view text, bool before) {
    const size_t line = text.rfind('\n');
    const std::string_view last = line == std::string_view::npos ? text : text.substr(line);
    return (line != std::string_view::npos || before) && last.find_first_not_of(" \t\r\n") == std::string_view::npos;
  }

  std::array<bool, 256> stops_;  // the bytes that end it
};

template <class Id>
class Detokenizer {
 public:
  // What came of a call of `feed`.
  enum class Fed { kPassed, kGiven, kTag };

  // The id that makes the count reach `limit` never passes.
  Detokenizer(DecodeState state, AnswerText<Id> answer, std::shared_ptr<const AnswerRules> rules, size_t limit)
      : state_(std::move(state)), answer_(std::move(answer)), rules_(std::move(rules)), limit_(limit) {}

  // What may pass from here on, or nothing; `value` must go on after all of it.
  void let_pass(std::shared_ptr<const Passage> passage, std::optional<JsonValue> value = {}) {
    expect(unseen_.empty() && tag_.empty(), "text has passed that was not given");
    expect(!passage || passage->held || answer_.is_back(), "text was given that has not come back");
    passage_ = std::move(passage);
    value_ = std::move(value);
  }

  // Takes ids from `place` on, before `end`, as long as their text passes, and one more. Its text is given as `next`
  // behind the text that has passed and was not given; or `next` becomes the tag that it ends. Returns the place behind
  // the last one, and which of these it was. It ends early before an id that ends the answer, and before what is no id.
  // `id_at(i)` gives an id's number, -1 for what is none, and `keep(i)` the id. `sent` becomes what goes out.
  template <class IdAt, class Keep>
  std::pair<size_t, Fed> feed(size_t place, size_t end, IdAt&& id_at, Keep&& keep, std::string& sent,
                              std::string& next) {
    const std::string_view held = answer_.stops().held();
    const bool passing = passage_ != nullptr, keeps = passing && passage_->held, search = answer_.searches() && !keeps;
    const size_t most = keeps ? kMostHeld : kMostUnseen;
    Fed fed = Fed::kPassed;
    Passage::Match match = Passage::Match::kNone;
    for (; place < end && fed == Fed::kPassed; place++) {
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
      const bool full = rules_->splits && unseen_.size() + sent.size() > most;
      const bool may = passing && answer_.ids() + 1 < limit_ && !full;
      const bool passes = may && !marked && tag_.empty() && passage_->takes(text) && (!value_ || value_->pass(text)) &&
                          (!search || answer_.skim(text));
      add(keep(place), text.size());
      if (passes) continue;
      tag_ += text;
      sent.resize(before);
      match = may ? passage_->match(tag_, unseen_, sent) : Passage::Match::kNone;
      if (match != Passage::Match::kBeginning) fed = match == Passage::Match::kNone ? Fed::kGiven : Fed::kTag;
    }
    if (!sent.empty()) pass(sent, held, keeps);
    if (fed == Fed::kGiven) next = unseen();
    if (fed == Fed::kTag) {
      next = std::exchange(tag_, {});
      unseen_.clear();
      cross(match, next.size(), sent);
    }
    return {place, fed};
  }

  // Takes any one id; appends to `next` the text that is to be given.
  void step(Id id, size_t number, std::string& next) {
    next += unseen();
    const size_t before = next.size();
    decode(number, next);
    add(std::move(id), next.size() - before);
  }

  // Takes the text that has passed and was not given, and what may have become a tag.
  std::string unseen() {
    std::string text = std::exchange(unseen_, {});
    text += tag_;
    tag_.clear();
    return text;
  }

  // Ends the decoding: appends the text that is left to be given.
  void flush(std::string& next) {
    next += unseen();
    const size_t before = next.size();
    state_.flush(next);
    answer_.extend(next.size() - before);
  }

  void set_limit(size_t limit) { limit_ = limit; }

  AnswerText<Id>& answer() { return answer_; }

  // Where it is; not what may pass, nor what `AnswerText::enter` has said.
  template <class Number>
  void save(Saver& to, Number&& number) const {
    expect(unseen_.empty() && tag_.empty(), "text has passed that was not given");
    state_.save(to);
    answer_.save(to, number);
  }

  template <class MakeId>
  void load(Loader& from, MakeId&& id) {
    state_.load(from);
    answer_.load(from, state_.tokens().size(), id);
    passage_.reset();
    value_.reset();
    unseen_.clear();
    tag_.clear();
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

  void add(Id id, size_t length) { answer_.add(std::move(id), length, state_.calm() || state_.pending() == 0); }

  void cross(Passage::Match tag, size_t length, std::string& sent) {
    if (tag == Passage::Match::kTag) answer_.cross(length, sent);
    if (tag == Passage::Match::kOpener) answer_.keep_back();
    if (tag == Passage::Match::kCloser) answer_.drop_rest(sent);
  }

  // Lets text pass behind what the stops have held. `text` becomes what goes out.
  void pass(std::string& text, std::string_view held, bool keeps) {
    if (rules_->splits) unseen_ += text;
    if (keeps) return text.clear();
    answer_.pass(text, held, rules_->splits);
  }

  DecodeState state_;
  AnswerText<Id> answer_;
  std::shared_ptr<const AnswerRules> rules_;
  std::shared_ptr<const Passage> passage_;
  std::optional<JsonValue> value_;
  std::string unseen_;  // text that has passed and was not given
  std::string tag_;     // text behind it that has not passed: the beginning of a tag
  size_t limit_;
};

}  // namespace tokenweir
