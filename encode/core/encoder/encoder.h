// Text to ids: added tokens, normalizer, pre-tokenizer, model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encoder/added_tokens.h"
#include "encoder/cuts.h"
#include "encoder/long_text.h"
#include "encoder/piece_encoder.h"
#include "encoder/pre_normalization_split.h"
#include "encoder/workspace.h"
#include "models/model.h"
#include "normalizers/normalizer.h"
#include "pretokenizers/pretokenizer.h"

namespace tokenweir {

// The options of one call. `guards` are sorted byte offsets of user text inside a rendered prompt. No added token
// covers one, and if there are any, the model yields no control token.
struct EncodeOptions {
  bool parse_special = true;
  std::vector<size_t> guards;
  size_t threads = 0;  // the most for a long text; 0 means one per CPU
  // The size of `Workspace::ids` from which on no more are needed, if a scanner splits the text; 0 means all.
  size_t enough = 0;
};

class Encoder {
 public:
  // `raw` tokens are searched for in the original text, `normalized` ones in the normalized text. `own` are control
  // tokens that the model itself makes of text. `by_characters`: each single character decides whether the
  // pre-tokenizer cuts beside it. `guarded`: the model yields no control token, whatever the options of a call.
  Encoder(std::shared_ptr<const Normalizer> normalizer, std::shared_ptr<const PreTokenizer> pre_tokenizer,
          std::shared_ptr<const Model> model, AddedTokens raw, AddedTokens normalized, AddedTokens own,
          bool by_characters, bool guarded)
      : normalizer_(std::move(normalizer)),
        pre_tokenizer_(std::move(pre_tokenizer)),
        model_(std::move(model)),
        raw_(std::move(raw)),
        normalized_(std::move(normalized)),
        own_(std::move(own)),
        guarded_(guarded) {
    if (by_characters && normalizer_->splits_in_ascii() && !pre_tokenizer_->depends_on_start())
      pre_split_.emplace(*normalizer_, *pre_tokenizer_);
    if (!model_->words()) return;
    auto first = pool_.take();
    PieceEncoder(*model_, false, first->caches, first->model, first->ids).fill();
    pool_.give_back(std::move(first));
  }

  WorkspacePool& pool() const { return pool_; }

  // Returns the bytes behind a cut that the encoding before it may depend on: the longest token and the next character.
  size_t lookahead() const {
    return std::max({raw_.max_bytes(), normalized_.max_bytes(), own_.max_bytes()}) + kMaxCharacter;
  }

  // Whether the ids of every text depend on whether it has a guard anywhere.
  bool guards_everywhere() const { return model_->guards(); }

  // Appends the ids of `text` from the cut `from` on to `w.ids`, and tells `cuts` of the cuts behind it, until that stops
  // it.
  void encode_from(std::string_view text, size_t from, const EncodeOptions& options, Workspace& w,
                   CutRecorder& cuts) const {
    encode_text<false>(text, from, options, w, &cuts);
  }

  // Appends the ids of `text` to `w.ids`. With `Spans`, also appends the byte span of each to `w.spans`, the number of
  // its piece or added token to `w.words`, and to `w.called` the text of ids that are named by their text: added tokens
  // and unknown text.
  template <bool Spans>
  void encode(std::string_view text, const EncodeOptions& options, Workspace& w) const {
    // A cached short text has all of its ids, so one that may be cut does not go through that cache.
    if (Spans || text.size() > WordKey::kMaxBytes || !options.guards.empty() || options.enough)
      return encode_text<Spans>(text, 0, options, w, nullptr);
    encode_short(text, options, w);
  }

 private:
  static constexpr size_t kMaxCharacter = 4;  // bytes

  // Fast path for a text no longer than a word: the whole text is cached as a word, because the pipeline takes several
  // times as long as the look-up.
  void encode_short(std::string_view text, const EncodeOptions& options, Workspace& w) const {
    WordKey key = WordKey::of(reinterpret_cast<const uint8_t*>(text.data()), text.size(), false);
    key.high |= options.parse_special ? WordKey::kText : WordKey::kText | WordKey::kGuarded;
    const uint32_t hash = key.hash();
    if (const size_t found = w.caches.words.find(key, hash, w.ids.room(WordCache::kMaxIds)))
      return w.ids.advance(found);
    const size_t first = w.ids.size();
    encode_text<false>(text, 0, options, w, nullptr);
    const size_t count = w.ids.size() - first;
    if (count > 0 && count <= WordCache::kMaxIds) w.caches.words.insert(key, hash, w.ids.data() + first, count);
  }

  template <bool Spans>
  void encode_text(std::string_view text, size_t from, const EncodeOptions& options, Workspace& w,
                   CutRecorder* cuts) const {
    const uint8_t* p = reinterpret_cast<const uint8_t*>(text.data());
    w.word = 0;
    const auto rest = [&](size_t begin, size_t end) { return segment<Spans>(p, begin, end, options, w, cuts); };
    const auto token = [&](const AddedTokenMatch& found) {
      if (cuts && found.clean_begin && cuts->stops_at(found.begin, w.ids.size())) return false;
      match<Spans>(found.id, {found.begin, found.end}, text.substr(found.begin, found.end - found.begin), w);
      return !(cuts && found.clean_end && cuts->stops_at(found.end, w.ids.size()));
    };
    if (options.parse_special)
      raw_.split(p, from, text.size(), options.guards, rest, token);
    else if (from < text.size())
      rest(from, text.size());
  }

  // Maps byte positions in a segment, normalized or not, to the original text.
  struct Position {
    size_t shift;                    // start of the segment in the original
    std::vector<size_t> characters;  // normalized byte -> character; empty if the segment is as it was
    std::vector<Span> origins;       // normalized character -> bytes of the original segment

    Span original(size_t begin, size_t end) const {
      if (origins.empty()) return {shift + begin, shift + end};
      return {shift + origins[characters[begin]].start, shift + origins[characters[end - 1]].end};
    }

    // Returns how many bytes from `begin` on are aligned to the start of the original.
    size_t first(size_t begin, size_t end) const {
      if (shift > 0) return 0;
      if (origins.empty()) return begin == 0;
      size_t at = begin;
      while (at < end && origins[characters[at]].start == 0) at++;
      return at - begin;
    }
  };

  template <bool Spans>
  static void match(uint32_t id, Span span, std::string_view taken, Workspace& w) {
    if constexpr (Spans) {
      w.called.emplace_back(w.ids.size(), taken);
      w.words.push_back(w.word++);
      w.spans.push_back(span);
    }
    w.ids.push(id);
  }

  // Encodes a segment: the original text between two raw added tokens. Returns false if `cuts` stops it.
  template <bool Spans>
  bool segment(const uint8_t* text, size_t begin, size_t end, const EncodeOptions& options, Workspace& w,
               CutRecorder* cuts) const {
    const uint8_t* p = text + begin;
    size_t n = end - begin;
    const bool second = options.parse_special && !normalized_.empty();
    Position position{begin, {}, {}};
    std::vector<size_t> guards;
    if (second || !own_.empty()) guards = guards_within(p, begin, end, options.guards);
    if (!Spans && !cuts && pre_split_ && !second && guards.empty()) {
      encode_unnormalized(p, n, options, w);
      return true;
    }
    std::string normal;
    if (!normalizer_->is_unchanged(p, n)) {
      const bool follow = Spans || pre_tokenizer_->depends_on_start();
      normalizer_->apply(p, n, normal, follow ? &position.origins : nullptr);
      p = reinterpret_cast<const uint8_t*>(normal.data());
      n = normal.size();
      cuts = nullptr;  // cuts are places in the original text
      for (size_t i = 0, c = 0; follow && i < n; i++) position.characters.push_back(utf8_continues(p[i]) ? c - 1 : c++);
    }
    if (cuts && !may_cut_segments(second)) cuts = nullptr;
    const auto rest = [&](size_t b, size_t e) {
      if (guards.empty()) return pieces<Spans>(p, b, e, n, position, options, w, cuts);
      bool goes_on = true;
      own_.tear(p, b, e, guards, [&](size_t from, size_t to) {
        if (goes_on) goes_on = pieces<Spans>(p, from, to, n, position, options, w, cuts);
      });
      return goes_on;
    };
    if (!second) return rest(0, n);
    bool goes_on = true;
    const auto stops_at = [&](size_t at, bool clean) {
      if (!cuts || !clean || at == 0 || at == n || !resumes_inside(p, at, n)) return false;
      return !(goes_on = !cuts->stops_at(begin + at, w.ids.size()));
    };
    normalized_.split(
        p, 0, n, guards, [&](size_t b, size_t e) { return goes_on = rest(b, e); },
        [&](const AddedTokenMatch& found) {
          if (stops_at(found.begin, found.clean_begin)) return false;
          match<Spans>(found.id, position.original(found.begin, found.end),
                       {reinterpret_cast<const char*>(p) + found.begin, found.end - found.begin}, w);
          return !stops_at(found.end, found.clean_end);
        });
    return goes_on;
  }

  // -- cuts inside segments that the normalizer leaves as they are ---------------------------------------------------

  // Whether a segment may have cuts. A normalizer must allow boundaries. Tokens in normalized text must not be found in
  // text that another ending of the segment would normalize otherwise.
  bool may_cut_segments(bool second) const {
    return normalizer_->is_identity() || (normalizer_->splits_in_ascii() && !second && own_.empty());
  }

  // Whether the searches for added tokens, and the normalizer, may be resumed at `at` in a segment of `n` bytes. A
  // normalizer needs ASCII on both sides, and behind it a character that does not compose with the one at `at`.
  bool resumes_inside(const uint8_t* segment, size_t at, size_t n) const {
    if (!raw_.resumes_at(segment, at) || !normalized_.resumes_at(segment, at)) return false;
    if (normalizer_->is_identity()) return true;
    const auto plain = [&](size_t i) { return segment[i] < 0x80 && segment[i] != '\r'; };
    return at + 1 < n && plain(at - 1) && plain(at) && plain(at + 1);
  }

  // Passes pieces to a `PieceEncoder`, and tells of cuts between them: sync points of the first stage, or split points
  // of the model where a text is one piece.
  struct CutVisitor {
    const Encoder& encoder;
    PieceEncoder& encode;
    CutRecorder& cuts;
    const IdBuffer& ids;
    const uint8_t *segment, *begin;  // `begin`: of the part that is split
    size_t n, shift;                 // bytes of the segment, and its place in the text
    bool stopped = false;

    void operator()(const uint8_t* b, const uint8_t* e, const AlignedText& text) {
      if (stopped) return;
      // A piece of a changed text is a copy elsewhere.
      if (text.start == begin && b > begin && is_wanted(b) && encoder.pre_tokenizer_->is_sync(b) && stop_at(b)) return;
      if (encoder.pre_tokenizer_->is_identity()) b = split_at_points(b, e, text);
      if (!stopped) encode(b, e, text);
    }

    // Passes on at once the pieces that begin before the next wanted place.
    void operator()(const uint8_t* b, const uint32_t* ends, size_t count, const AlignedText& text) {
      uint32_t run[Scanner::kMaxEnds], from = 0;
      for (size_t i = 0; i < count && !stopped;) {
        const uint8_t* const start = b + from;
        size_t n = 0;
        for (; i + n < count && !is_wanted(b + from); n++)
          run[n] = static_cast<uint32_t>(b + (from = ends[i + n]) - start);
        if (n > 0) {
          encode(start, run, n, text);
          i += n;
        } else {
          (*this)(start, b + ends[i], text);
          from = ends[i++];
        }
      }
    }

    void flush() { encode.flush(); }

   private:
    bool is_wanted(const uint8_t* at) const { return shift + static_cast<size_t>(at - segment) >= cuts.wanted(); }

    bool stop_at(const uint8_t* at) {
      const size_t place = static_cast<size_t>(at - segment);
      if (!encoder.resumes_inside(segment, place, n)) return false;
      encode.flush();
      return stopped = cuts.stops_at(shift + place, ids.size());
    }

    // Encodes a piece up to its last wanted cut, and returns that.
    const uint8_t* split_at_points(const uint8_t* b, const uint8_t* e, const AlignedText& text) {
      const SplitPoints* const points = encoder.model_->split_points();
      if (!points) return b;
      for (const uint8_t* at = b; !stopped;) {
        const size_t wanted = cuts.wanted(), from = shift + static_cast<size_t>(at - segment);
        if (wanted > from + 1) {
          if (wanted - from >= static_cast<size_t>(e - at)) break;
          at += wanted - from - 1;  // a cut is behind the character that is looked at
          while (utf8_continues(*at)) at--;
        }
        at = points->next(at, e);
        if (at == e) break;
        encode(b, at, text);
        b = at;
        stop_at(at);
      }
      return b;
    }
  };

  // Encodes a segment without a guard, split before normalization (pre_normalization_split.h).
  void encode_unnormalized(const uint8_t* p, size_t n, const EncodeOptions& options, Workspace& w) const {
    const bool guarded = is_guarded(options);
    std::unique_ptr<PieceCaches>& seen = w.unnormalized_caches[guarded];
    if (!seen) seen = std::make_unique<PieceCaches>();
    const PipelineModel way(*normalizer_, *pre_tokenizer_, *model_, guarded, w.pre_tokenizer);
    PieceEncoder encode(way, false, *seen, w.model, w.ids);
    const AlignedText source{p, p + n, nullptr, p};
    pre_split_->each(p, p + n, [&](const uint8_t* b, const uint8_t* e) { encode(b, e, source); });
    encode.flush();
  }

  // Whether the model may yield no control token.
  bool is_guarded(const EncodeOptions& options) const {
    return model_->guards() && (guarded_ || !options.parse_special || !options.guards.empty());
  }

  // Returns the guards of a segment as offsets in its normalized form: every character that a guarded character may
  // have become part of. The segment is [begin, end) of the text, and `p` points to its first byte.
  std::vector<size_t> guards_within(const uint8_t* p, size_t begin, size_t end,
                                    const std::vector<size_t>& guards) const {
    auto guard = std::lower_bound(guards.begin(), guards.end(), begin);
    std::vector<size_t> within;
    if (guard == guards.end() || *guard >= end) return within;
    std::string normal;
    std::vector<Span> origins;
    normalizer_->apply(p, end - begin, normal, &origins, Origin::kAll);
    size_t character = 0;
    for (size_t i = 0; i < normal.size(); i += utf8_length(static_cast<uint8_t>(normal[i]))) {
      const Span& from = origins[character++];
      guard = std::lower_bound(guards.begin(), guards.end(), begin + from.start);
      if (guard != guards.end() && *guard < begin + from.end) within.push_back(i);
    }
    return within;
  }

  // Encodes the part [begin, end) of a segment of `n` bytes, which has no added tokens. Returns false if `cuts` stops it,
  // or if there are enough ids.
  template <bool Spans>
  bool pieces(const uint8_t* segment, size_t begin, size_t end, size_t n, const Position& position,
              const EncodeOptions& options, Workspace& w, CutRecorder* cuts) const {
    if (begin == end) return true;
    const bool guarded = is_guarded(options);
    const size_t first = position.first(begin, end);
    const uint8_t* p = segment + begin;
    if constexpr (Spans) {
      Tracer tracer{*this, begin, position, guarded, w};
      pre_tokenizer_->split<true>(p, segment + end, first, w.pre_tokenizer, tracer);
    } else if (cuts) {
      PieceEncoder encode(*model_, guarded, w.caches, w.model, w.ids);
      CutVisitor visitor{*this, encode, *cuts, w.ids, segment, p, n, position.shift};
      pre_tokenizer_->split<false>(p, segment + end, first, w.pre_tokenizer, visitor);
      encode.flush();
      return !visitor.stopped;
    } else if (options.enough && pre_tokenizer_->scanner()) {
      PieceEncoder encode(*model_, guarded, w.caches, w.model, w.ids);
      return first_pieces(*pre_tokenizer_->scanner(), p, segment + end, options.enough, encode, w.ids);
    } else if (end - begin >= LongText::kMinBytes && options.threads != 1 &&
               LongText::can_split(*pre_tokenizer_, *model_)) {
      LongText text(*pre_tokenizer_, *model_, guarded, pool_, p, segment + end);
      text.encode(options.threads ? options.threads : machine_threads(), w);
    } else {
      PieceEncoder encode(*model_, guarded, w.caches, w.model, w.ids);
      pre_tokenizer_->split<false>(p, segment + end, first, w.pre_tokenizer, encode);
      encode.flush();
    }
    return true;
  }

  // Encodes the first pieces of [p, end), until there are `enough` ids or the pieces end. Returns false if there are.
  static bool first_pieces(const Scanner& scanner, const uint8_t* p, const uint8_t* end, size_t enough,
                           PieceEncoder& encode, const IdBuffer& ids) {
    const AlignedText source{p, end, nullptr, p};
    const size_t first = ids.size();
    uint32_t ends[Scanner::kMaxEnds], run[Scanner::kMaxEnds];
    size_t pieces = 0;
    while (p < end && ids.size() < enough) {
      const size_t count = scanner.scan(p, end, ends);
      uint32_t from = 0;
      for (size_t i = 0; i < count && ids.size() < enough;) {
        // As many pieces as have the missing ids, if they have as many each as those before.
        const size_t made = ids.size() - first;
        const size_t wanted = made == 0 ? 16 : 1 + (enough - ids.size()) * pieces / made;
        const size_t n = std::min(count - i, wanted);
        for (size_t j = 0; j < n; j++) run[j] = ends[i + j] - from;
        encode(p + from, run, n, source);
        encode.flush();
        from = ends[(i += n) - 1];
        pieces += n;
      }
      p += from;
    }
    return ids.size() < enough;
  }

  // Encodes pieces and records the span of each id.
  struct Tracer {
    const Encoder& encoder;
    size_t begin;
    const Position& position;
    bool guarded;
    Workspace& w;
    std::optional<uint32_t> nameless = encoder.model_->nameless();

    void operator()(const uint8_t* b, const uint8_t* e, const AlignedText& source) {
      w.piece_spans.clear();
      size_t at = w.ids.size();
      encoder.model_->encode(b, e - b, guarded, w.model, w.ids, &w.piece_spans);
      for (const Span& span : w.piece_spans) {
        if (static_cast<uint32_t>(w.ids.data()[at]) == nameless)
          w.called.emplace_back(at, std::string(b + span.start, b + span.end));
        at++;
        const bool nothing = span.start == span.end;  // an id that shares its character with the next one
        const Span in_text = source.original(b + span.start, b + span.end + nothing);
        Span original = position.original(begin + in_text.start, begin + in_text.end);
        if (nothing) original.end = original.start;
        w.spans.push_back(original);
        w.words.push_back(w.word);
      }
      w.word++;
    }
    void flush() {}
  };

  std::shared_ptr<const Normalizer> normalizer_;
  std::shared_ptr<const PreTokenizer> pre_tokenizer_;
  std::shared_ptr<const Model> model_;
  AddedTokens raw_, normalized_, own_;
  const bool guarded_;
  std::optional<const PreNormalizationSplit> pre_split_;
  mutable WorkspacePool pool_;
};

}  // namespace tokenweir
