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
  }

  WorkspacePool& pool() const { return pool_; }

  // Appends the ids of `text` to `w.ids`. With `Spans`, also appends the byte span of each to `w.spans`, the number of
  // its piece or added token to `w.words`, and to `w.called` the text of ids that are named by their text: added tokens
  // and unknown text.
  template <bool Spans>
  void encode(std::string_view text, const EncodeOptions& options, Workspace& w) const {
    if (Spans || text.size() > WordKey::kMaxBytes || !options.guards.empty())
      return encode_text<Spans>(text, options, w);
    encode_short(text, options, w);
  }

 private:
  // Fast path for a text no longer than a word: the whole text is cached as a word, because the pipeline takes several
  // times as long as the look-up.
  void encode_short(std::string_view text, const EncodeOptions& options, Workspace& w) const {
    WordKey key = WordKey::of(reinterpret_cast<const uint8_t*>(text.data()), text.size(), false);
    key.high |= options.parse_special ? WordKey::kText : WordKey::kText | WordKey::kGuarded;
    const uint32_t hash = key.hash();
    if (const size_t found = w.caches.words.find(key, hash, w.ids.room(WordCache::kMaxIds)))
      return w.ids.advance(found);
    const size_t first = w.ids.size();
    encode_text<false>(text, options, w);
    const size_t count = w.ids.size() - first;
    if (count > 0 && count <= WordCache::kMaxIds) w.caches.words.insert(key, hash, w.ids.data() + first, count);
  }

  template <bool Spans>
  void encode_text(std::string_view text, const EncodeOptions& options, Workspace& w) const {
    const uint8_t* p = reinterpret_cast<const uint8_t*>(text.data());
    w.word = 0;
    const auto rest = [&](size_t begin, size_t end) { segment<Spans>(p, begin, end, options, w); };
    const auto token = [&](uint32_t id, size_t begin, size_t end) {
      match<Spans>(id, {begin, end}, text.substr(begin, end - begin), w);
    };
    if (options.parse_special)
      raw_.split(p, text.size(), options.guards, rest, token);
    else if (!text.empty())
      rest(0, text.size());
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

  // Encodes a segment: the original text between two raw added tokens.
  template <bool Spans>
  void segment(const uint8_t* text, size_t begin, size_t end, const EncodeOptions& options, Workspace& w) const {
    const uint8_t* p = text + begin;
    size_t n = end - begin;
    const bool second = options.parse_special && !normalized_.empty();
    Position position{begin, {}, {}};
    std::vector<size_t> guards;
    if (second || !own_.empty()) guards = guards_within(p, begin, end, options.guards);
    if (!Spans && pre_split_ && !second && guards.empty()) return encode_unnormalized(p, n, options, w);
    std::string normal;
    if (!normalizer_->is_unchanged(p, n)) {
      const bool follow = Spans || pre_tokenizer_->depends_on_start();
      normalizer_->apply(p, n, normal, follow ? &position.origins : nullptr);
      p = reinterpret_cast<const uint8_t*>(normal.data());
      n = normal.size();
      for (size_t i = 0, c = 0; follow && i < n; i++) position.characters.push_back(utf8_continues(p[i]) ? c - 1 : c++);
    }
    const auto rest = [&](size_t b, size_t e) {
      if (guards.empty()) return pieces<Spans>(p, b, e, position, options, w);
      own_.tear(p, b, e, guards, [&](size_t from, size_t to) { pieces<Spans>(p, from, to, position, options, w); });
    };
    if (!second) return rest(0, n);
    normalized_.split(p, n, guards, rest, [&](uint32_t id, size_t b, size_t e) {
      match<Spans>(id, position.original(b, e), {reinterpret_cast<const char*>(p) + b, e - b}, w);
    });
  }

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

  // Encodes the part [begin, end) of a segment, which has no added tokens.
  template <bool Spans>
  void pieces(const uint8_t* segment, size_t begin, size_t end, const Position& position, const EncodeOptions& options,
              Workspace& w) const {
    if (begin == end) return;
    const bool guarded = is_guarded(options);
    const size_t first = position.first(begin, end);
    const uint8_t* p = segment + begin;
    if constexpr (Spans) {
      Tracer tracer{*this, begin, position, guarded, w};
      pre_tokenizer_->split<true>(p, segment + end, first, w.pre_tokenizer, tracer);
    } else if (end - begin >= LongText::kMinBytes && options.threads != 1 &&
               LongText::can_split(*pre_tokenizer_, *model_)) {
      LongText text(*pre_tokenizer_, *model_, guarded, pool_, p, segment + end);
      text.encode(options.threads ? options.threads : machine_threads(), w);
    } else {
      PieceEncoder encode(*model_, guarded, w.caches, w.model, w.ids);
      pre_tokenizer_->split<false>(p, segment + end, first, w.pre_tokenizer, encode);
      encode.flush();
    }
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
