// Decoder of one answer's ids to text, with a fast path for text that the splitter need not see at once.
//
// The splitter assigns an id's text to answer, thinking and tool calls, and returns its pieces to `AnswerText`. Most
// ids have text whose pieces are known; a `SkippableText` describes it. This text takes the fast path: it is emitted, or
// held, at once. The splitter gets it together with the next text of the slow path, and returns it as text that was
// emitted before. A complete tag of that text is reported by name; neither it nor the text emitted before it is given
// to the splitter. Tags of thinking, and those that end a block of calls, are removed here.
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

// The options of an answer.
struct AnswerRules {
  AnswerRules(std::vector<int64_t> end_ids, std::unordered_map<int64_t, std::string> shown_texts, bool has_splitter)
      : end_ids(std::move(end_ids)), shown(std::move(shown_texts)), marked(all()), splits(has_splitter) {}

  // Whether an id ends the answer.
  bool ends(int64_t id) const { return std::find(end_ids.begin(), end_ids.end(), id) != end_ids.end(); }

  // The text that replaces an id's own, or null.
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

// Text that takes the fast path: it has none of the characters `until`, or only white space. If it is part of a JSON
// value, the value must be unfinished behind it.
class SkippableText {
 public:
  // Match of a text with the tags: no match, a proper prefix, a tag of thinking, or one that begins or ends a block of
  // calls.
  enum class Match { kNone, kBeginning, kTag, kOpener, kCloser };

  // The tags of an answer.
  struct Tags {
    std::vector<std::string> anywhere, line;    // of thinking; `line`: only white space precedes them on their line
    std::vector<std::string> openers, closers;  // of blocks of calls
  };

  // `is_bare`: only white space precedes the text on its line. Bytes are compared, so a character with the first byte
  // of one in `until` ends the text too. Without `until`, any character except white space does. Of `line_chars`, in
  // ASCII, one ends the text where only white space precedes it on its line.
  SkippableText(std::optional<std::string> chars, bool is_held, Tags all_tags, bool is_bare,
                std::string line_chars = {})
      : until(std::move(chars)),
        held(is_held),
        tags(std::move(all_tags)),
        bare(is_bare),
        line_until(std::move(line_chars)) {
    stops_.fill(until ? kPasses : kStops);
    for (const char space : std::string_view(" \t\r\n")) stops_[static_cast<uint8_t>(space)] = kPasses;
    for (const char c : line_until) stops_[static_cast<uint8_t>(c)] = kStopsOnLine;
    for (size_t at = 0; until && at < until->size(); at += utf8_length(static_cast<uint8_t>((*until)[at])))
      stops_[static_cast<uint8_t>((*until)[at])] = kStops;
  }

  // Whether `text` passes behind the text that has passed, which comes in two parts.
  bool takes(std::string_view text, std::string_view passed, std::string_view more) const {
    uint8_t found = kPasses;
    for (const char c : text) found |= stops_[static_cast<uint8_t>(c)];
    if (found < kStopsOnLine) return true;
    return found < kStops && !stops_on_line(text, may_be_bare(more, may_be_bare(passed, bare)));
  }

  // Matches `text` behind the text of the fast path, which is given in two parts.
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
  const std::string line_until;

 private:
  static constexpr uint8_t kPasses = 0, kStopsOnLine = 1, kStops = 2;

  bool stops_on_line(std::string_view text, bool is_bare) const {
    for (size_t at = 0; at < text.size(); at++)
      if (stops_[static_cast<uint8_t>(text[at])] != kPasses && may_be_bare(text.substr(0, at), is_bare)) return true;
    return false;
  }

  // Whether a line may be bare after more text: no visible character of ASCII stands on it. Others may be white space, and
  // the splitter knows better.
  static bool may_be_bare(std::string_view text, bool before) {
    const size_t line = text.rfind('\n');
    const std::string_view last = line == std::string_view::npos ? text : text.substr(line);
    const bool visible = std::any_of(last.begin(), last.end(), [](char c) { return c > ' ' && c <= '~'; });
    return (line != std::string_view::npos || before) && !visible;
  }

  static Match match_one(const std::vector<std::string>& any_of, std::string_view text, Match whole) {
    for (const std::string& tag : any_of)
      if (tag.compare(0, text.size(), text) == 0) return tag.size() == text.size() ? whole : Match::kBeginning;
    return Match::kNone;
  }

  // Whether a line has only white space after more text. White space outside of ASCII does not count here: the tag then
  // takes the slow path, through the splitter, which counts it.
  static bool bare_after(std::string_view text, bool before) {
    const size_t line = text.rfind('\n');
    const std::string_view last = line == std::string_view::npos ? text : text.substr(line);
    return (line != std::string_view::npos || before) && last.find_first_not_of(" \t\r\n") == std::string_view::npos;
  }

  std::array<uint8_t, 256> stops_;  // the bytes that end it
};

template <class Id>
class Detokenizer {
 public:
  // Result of `feed`: all ids took the fast path, text for the splitter, or a tag.
  enum class Fed { kPassed, kGiven, kTag };

  // The id that makes the count reach `limit` never takes the fast path.
  Detokenizer(DecodeState state, AnswerText<Id> answer, std::shared_ptr<const AnswerRules> rules, size_t limit)
      : state_(std::move(state)), answer_(std::move(answer)), rules_(std::move(rules)), limit_(limit) {}

  // Sets the text that takes the fast path from here on, or null; `value` must be unfinished behind all of it.
  void allow_skip(std::shared_ptr<const SkippableText> skippable, std::optional<JsonValue> value = {}) {
    expect(unseen_.empty() && tag_.empty(), "text has passed that was not given");
    expect(!skippable || skippable->held || answer_.is_back(), "text was given that has not come back");
    skippable_ = std::move(skippable);
    value_ = std::move(value);
  }

  // Takes ids from `place` on, before `end`, as long as they take the fast path, and one more. `next` becomes the text
  // for the
  // splitter: what was emitted but not given yet, and the text of that id; or the tag that the id completes. Returns
  // the place behind the last id, and the result. Ends early before an id that ends the answer, and before a value that
  // is not an id. `id_at(i)` returns an id's number, or -1 for a value that is not an id; `keep(i)` returns the id.
  // `sent` becomes the emitted text.
  template <class IdAt, class Keep>
  std::pair<size_t, Fed> feed(size_t place, size_t end, IdAt&& id_at, Keep&& keep, std::string& sent,
                              std::string& next) {
    const std::string_view held = answer_.stops().held();
    const bool passing = skippable_ != nullptr, keeps = passing && skippable_->held,
               search = answer_.searches() && !keeps;
    const size_t most = keeps ? kMostHeld : kMostUnseen;
    Fed fed = Fed::kPassed;
    SkippableText::Match match = SkippableText::Match::kNone;
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
      const bool may = passing && answer_.ids() + 1 < limit_ && !full && (keeps || !answer_.holds_space());
      const bool passes = may && !marked && tag_.empty() &&
                          skippable_->takes(text, unseen_, std::string_view(sent).substr(0, before)) &&
                          (!value_ || value_->pass(text)) && (!search || answer_.skim(text));
      add(keep(place), text.size());
      if (passes) continue;
      tag_ += text;
      sent.resize(before);
      match = may ? skippable_->match(tag_, unseen_, sent) : SkippableText::Match::kNone;
      if (match != SkippableText::Match::kBeginning)
        fed = match == SkippableText::Match::kNone ? Fed::kGiven : Fed::kTag;
    }
    if (!sent.empty()) pass(sent, held, keeps);
    if (fed == Fed::kGiven) next = unseen();
    if (fed == Fed::kTag) {
      next = std::exchange(tag_, {});
      unseen_.clear();
      apply_tag(match, next.size(), sent);
    }
    return {place, fed};
  }

  // Takes one id; appends the text for the splitter to `next`. `hidden`, if not empty, stands in place of the id's text: the
  // splitter and the stops get it, and it is not emitted.
  void step(Id id, size_t number, std::string& next, std::string_view hidden = {}) {
    next += unseen();
    const size_t before = next.size();
    if (hidden.empty()) {
      decode(number, next);
    } else {
      state_.flush(next);
      next += hidden;
    }
    add(std::move(id), next.size() - before);
    if (!hidden.empty()) answer_.hide(hidden.size());
  }

  // Takes the text that was emitted but not given to the splitter yet, and the prefix of a tag behind it.
  std::string unseen() {
    std::string text = std::exchange(unseen_, {});
    text += tag_;
    tag_.clear();
    return text;
  }

  // Ends the decoding: appends the rest of the text for the splitter.
  void flush(std::string& next) {
    next += unseen();
    const size_t before = next.size();
    state_.flush(next);
    answer_.extend(next.size() - before);
  }

  void set_limit(size_t limit) { limit_ = limit; }

  AnswerText<Id>& answer() { return answer_; }

  // Saves the state, except the values of `allow_skip` and `AnswerText::enter`.
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
    skippable_.reset();
    value_.reset();
    unseen_.clear();
    tag_.clear();
  }

 private:
  static constexpr size_t kMostUnseen = 4096, kMostHeld = 512;  // bytes; the latter is MAX_PASSED of splitter.py

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

  void apply_tag(SkippableText::Match tag, size_t length, std::string& sent) {
    if (tag == SkippableText::Match::kTag) answer_.remove_tag(length, sent);
    if (tag == SkippableText::Match::kOpener) answer_.keep_back();
    if (tag == SkippableText::Match::kCloser) answer_.drop_rest(sent);
  }

  // Emits text of the fast path behind the text that the stops have held. `text` becomes the emitted text.
  void pass(std::string& text, std::string_view held, bool keeps) {
    if (rules_->splits) unseen_ += text;
    if (keeps) return text.clear();
    answer_.pass(text, held, rules_->splits);
  }

  DecodeState state_;
  AnswerText<Id> answer_;
  std::shared_ptr<const AnswerRules> rules_;
  std::shared_ptr<const SkippableText> skippable_;
  std::optional<JsonValue> value_;
  std::string unseen_;  // text that was emitted but not given to the splitter yet
  std::string tag_;     // text behind it that was not emitted: a proper prefix of a tag
  size_t limit_;
};

}  // namespace tokenweir
