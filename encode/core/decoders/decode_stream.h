// Incremental decoding: ids to text, one by one; emitted text is final.
//
// Fast path: in mid-text with nothing held, a token that is text is emitted as it is in the table. The slow path
// handles
// - the first token, which may lose its space;
// - the last token, which may lose its word separator (the part that depends on this is held);
// - a run of bytes: an incomplete character is held, at most 3 bytes. With `whole_runs`, HuggingFace's rule, a run that
//   is not UTF-8 as a whole is one U+FFFD per byte, complete characters included. So the run is held while that is
//   open, and nothing is held after its first invalid byte;
// - steps that see the whole text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "decoders/decoder.h"

namespace tokenweir {

class DecodeState {
 public:
  DecodeState(const TokenBytes& tokens, bool skip_special, bool whole_runs)
      : tokens_(&tokens),
        skip_special_(skip_special),
        whole_runs_(whole_runs && !tokens.all_bytes()),
        first_(tokens.first_differs()),
        text_states_(tokens.text_steps().begin()) {
    update_fast_path();
  }

  const TokenBytes& tokens() const { return *tokens_; }

  // Whether the fast path applies: mid-text, nothing held. A token that is text is then emitted unchanged, without a
  // new state.
  bool calm() const { return fast_path_; }

  // Whether an id is skipped: it decodes to nothing, and does not count as a first or last token.
  bool skips(size_t id) const { return !tokens_->given(id) || (skip_special_ && tokens_->special(id)); }

  // Takes an id, which must be in range; appends the text that it completes to `out`.
  void take(size_t id, std::string& out) {
    if (skips(id)) return;
    if (fast_path_ && !tokens_->is_bytes(id)) {
      out += tokens_->content(id);
      return;
    }
    take_slow_path(id, out);
    update_fast_path();
  }

  // Appends all held text to `out`, as at the end of the text. Later tokens do not count as first tokens.
  void flush(std::string& out) {
    if (tokens_->last_differs()) {
      emit(if_last_, out);
      if_last_.clear();
      if_followed_.clear();
    }
    end_run(out);
    emit("", out, true);
    update_fast_path();
  }

  // An upper bound for the held bytes; 0 if the text of all ids has been emitted.
  size_t pending() const {
    return run_.size() + tokens_->run_steps().pending(run_states_) + tokens_->text_steps().pending(text_states_) +
           std::max(if_last_.size(), if_followed_.size());
  }

  void save(Saver& to) const {
    for (const bool flag : {first_, run_open_, run_invalid_, run_first_}) to.number(flag);
    to.text(run_);
    to.number(run_valid_);
    tokens_->run_steps().save(run_states_, to);
    tokens_->text_steps().save(text_states_, to);
    to.text(if_followed_);
    to.text(if_last_);
  }

  void load(Loader& from) {
    for (bool* flag : {&first_, &run_open_, &run_invalid_, &run_first_}) *flag = from.flag();
    run_ = from.text();
    run_valid_ = from.number(run_.size());
    run_states_ = tokens_->run_steps().load(from);
    text_states_ = tokens_->text_steps().load(from);
    if_followed_ = from.text();
    if_last_ = from.text();
    check_state(!run_open_ || run_states_.size() == tokens_->run_steps().size(), "a run of bytes has no state");
    check_state(text_states_.size() == tokens_->text_steps().size(), "the text has no state");
    check_state(is_utf8(std::string_view(run_).substr(0, run_valid_)) && is_utf8(if_followed_) && is_utf8(if_last_),
                "held text is no UTF-8");
    check_state(run_open_ || run_.empty(), "bytes are held of no run");
    check_state(run_.size() - run_valid_ <= 3 && (whole_runs_ || run_valid_ == 0),
                "more bytes are held than a character lacks");
    check_state(!first_ || tokens_->first_differs(), "the first token is no other than the rest");
    text_passes_ = tokens_->text_steps().are_idle(text_states_);
    update_fast_path();
  }

  // Sets the state after the `n` ids of a prompt, which `id(i)` returns, as if all complete characters had been
  // emitted. Reads the first ids up to the first text, and the last ids back to where nothing can be held. Reads all
  // ids only for steps that depend on more of the whole text than its start.
  template <class IdAt>
  void follow(size_t n, IdAt&& id) {
    std::string shown;
    size_t next = 0;
    const bool all = tokens_->text_steps().depend_on_history();
    const bool whole_runs = whole_runs_ || !tokens_->run_steps().empty();
    for (; next < n && (all || first_ || !tokens_->text_steps().are_idle(text_states_)); shown.clear())
      take(id(next++), shown);
    size_t from = n, bytes = 0;
    bool clean = false;  // nothing held before this point can still be held at the end
    while (from > next && !clean) {
      const size_t token = id(--from);
      if (skips(token)) continue;
      const std::string_view content = tokens_->content(token);
      if (tokens_->is_bytes(token))
        clean = (bytes += content.size()) >= 3 && !whole_runs;
      else
        clean = !content.empty() || !tokens_->all_bytes();
    }
    if (clean) clear_held();
    for (; from < n; shown.clear()) take(id(from++), shown);
    if (run_open_ && whole_runs_) {
      emit_run(std::string_view(run_).substr(0, run_valid_), shown);
      run_.erase(0, run_valid_);
      run_valid_ = 0;
    }
    update_fast_path();
  }

 private:
  void take_slow_path(size_t id, std::string& out) {
    const TokenBytes& tokens = *tokens_;
    const bool first = first_;
    std::pair<std::string, bool> here;
    std::string_view content = tokens.content(id);
    bool bytes = tokens.is_bytes(id);
    if (first) {
      here = tokens.content_at(id, {true, false});
      bytes = here.second;
      first_ = tokens.stays_first(id, here.first, bytes);
      content = here.first;
    }
    if (bytes) return take_bytes(content, first, out);
    if (content.empty() && tokens.all_bytes()) return;
    end_run(out);
    if (!tokens.last_differs()) return emit(content, out);
    emit(if_followed_, out);
    // The common prefix of both forms is final.
    const std::string last = tokens.content_at(id, {first, true}).first;
    size_t same = 0;
    while (same < content.size() && same < last.size() && content[same] == last[same]) same++;
    while (same > 0 && ((same < content.size() && utf8_continues(static_cast<uint8_t>(content[same]))) ||
                        (same < last.size() && utf8_continues(static_cast<uint8_t>(last[same])))))
      same--;
    emit(content.substr(0, same), out);
    if_followed_ = content.substr(same);
    if_last_ = last.substr(same);
  }

  void take_bytes(std::string_view bytes, bool first, std::string& out) {
    if (!run_open_) {
      run_open_ = true;
      run_first_ = first;
      run_states_ = tokens_->run_steps().begin();
    }
    run_ += bytes;
    if (!whole_runs_) {
      std::string text;
      decode_replace(run_, text);
      emit_run(text, out);
      if (run_.empty() && tokens_->run_steps().empty()) run_open_ = false;
      return;
    }
    while (!run_invalid_ && run_valid_ < run_.size()) {
      const Utf8Start start =
          utf8_start(reinterpret_cast<const uint8_t*>(run_.data()) + run_valid_, run_.size() - run_valid_);
      if (start.kind == Utf8Start::kUnfinished) break;
      run_invalid_ = start.kind == Utf8Start::kBad;
      run_valid_ += start.length;
    }
    if (run_invalid_) emit_replacements(out);
  }

  void end_run(std::string& out) {
    if (!run_open_) return;
    if (whole_runs_ && run_valid_ < run_.size()) run_invalid_ = true;
    if (run_invalid_)
      emit_replacements(out);
    else if (whole_runs_)
      emit_run(run_, out, true);
    else
      emit_run(run_.empty() ? "" : kReplacement, out, true);
    clear_run();
  }

  // Emits a U+FFFD for each byte of the run; each counts as a token.
  void emit_replacements(std::string& out) {
    for (size_t n = run_.size(); n > 0; n--) {
      emit(tokens_->run_steps().apply(std::string(kReplacement), {run_first_, false}), out);
      run_first_ = false;
    }
    run_.clear();
    run_valid_ = 0;
  }

  void emit_run(std::string_view text, std::string& out, bool end = false) {
    if (tokens_->run_steps().empty()) return emit(text, out);
    std::string changed;
    tokens_->run_steps().feed(text, {run_first_, false}, end, run_states_, changed);
    emit(changed, out);
  }

  void emit(std::string_view text, std::string& out, bool end = false) {
    if (tokens_->text_steps().empty() || (!end && text_passes_)) {
      out += text;
      return;
    }
    tokens_->text_steps().feed(text, {true, true}, end, text_states_, out);
    text_passes_ = tokens_->text_steps().are_idle(text_states_);
  }

  void clear_run() {
    run_.clear();
    run_states_.clear();
    run_valid_ = 0;
    run_open_ = run_invalid_ = false;
  }

  void clear_held() {
    clear_run();
    if_last_.clear();
    if_followed_.clear();
  }

  void update_fast_path() {
    fast_path_ = !first_ && !run_open_ && !tokens_->last_differs() && tokens_->text_steps().are_idle(text_states_);
  }

  const TokenBytes* tokens_;
  bool skip_special_, whole_runs_;
  bool first_;  // the next token is the first, and that makes a difference
  bool fast_path_ = false, text_passes_ = false;
  bool run_open_ = false;     // a run of bytes has begun, and its end matters
  bool run_invalid_ = false;  // it is no UTF-8 as a whole, and that matters
  bool run_first_ = false;    // it is the first token
  std::string run_;           // its bytes that are held
  size_t run_valid_ = 0;      // so many of them are whole characters; counted for whole runs only
  TextSteps::States run_states_, text_states_;
  std::string if_followed_, if_last_;  // what is held of the last token: one if another follows, else the other
};

}  // namespace tokenweir
