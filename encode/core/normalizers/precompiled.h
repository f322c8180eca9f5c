// HuggingFace's normalizer `Precompiled` (tokenizers 0.23, spm_precompiled 0.1.4): a SentencePiece character map,
// applied by other rules than SentencePiece's own.
//
// It iterates over grapheme clusters. A cluster of less than six bytes that begins with a rule's key is replaced as a
// whole, by the rule of the shortest such key; so marks vanish with their base. In any other cluster, this is done per
// character.
//
// Alignment: characters and their replacements correspond one to one. A surplus character has the place of the one
// before it, unless characters are removed next; then it takes the place of those. Characters that are removed at the
// start are not counted, so all others are shifted to the left. (The library stores a difference of lengths with each
// character.)
#pragma once

#include <string>
#include <vector>

#include "base/byte_set.h"
#include "base/character_offsets.h"
#include "base/span.h"
#include "base/text_writer.h"
#include "base/utf8.h"
#include "normalizers/charsmap.h"
#include "normalizers/graphemes.h"
#include "normalizers/normalization_forms.h"
#include "normalizers/normalizer.h"

namespace tokenweir {

class Precompiled : public NormalizerStep {
 public:
  explicit Precompiled(Charsmap charsmap) : charsmap_(std::move(charsmap)) {
    for (uint8_t c = 0; c < 0x80; c++)
      if (!charsmap_.starts_in_ascii(c)) plain_.add(c);
  }

  bool is_unchanged(const uint8_t* text, size_t n) const override { return plain_.skip(text, text + n) == text + n; }
  bool splits_in_ascii() const override { return !charsmap_.joins_ascii(); }
  double growth() const override { return charsmap_.growth(); }

  void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin, Origin kind) const override {
    const uint8_t* const end = text + n;
    TextWriter writer(out, n);
    Alignment alignment{normalization::Cursor(text), kind == Origin::kAll ? nullptr : origin};
    size_t done = writer.size();  // origins are complete up to here
    const auto set_origin = [&](const uint8_t* b, const uint8_t* e) {
      if (!origin || kind != Origin::kAll) return;
      const size_t made = writer.size() - done;
      origin->insert(origin->end(), count_characters({writer.last(made), made}),
                     {static_cast<size_t>(b - text), static_cast<size_t>(e - text)});
      done = writer.size();
    };
    for (const uint8_t* p = text; p < end;) {
      const uint8_t* plain = plain_.skip(p, end);
      if (plain < end && plain > p && *plain >= 0x80) plain--;  // the last character may begin a cluster
      if (plain > p) {
        writer.append(p, static_cast<size_t>(plain - p));
        alignment.put(static_cast<size_t>(plain - p), static_cast<size_t>(plain - p));
        if (origin && kind == Origin::kAll) append_identity(p, plain, text, *origin);
        done = writer.size();
        p = plain;
      }
      if (p == end) break;
      const uint8_t* const next = stands_alone(p, end) ? p + 1 : grapheme_end(p, end);
      if (next - p < kMaxCluster && replace(p, next, writer, alignment)) {
        set_origin(p, next);
        p = next;
        continue;
      }
      for (; p < next; p += utf8_length(*p)) {
        if (!replace(p, p + utf8_length(*p), writer, alignment)) {
          writer.append(p, utf8_length(*p));
          alignment.put(1, 1);
        }
        set_origin(p, p + utf8_length(*p));
      }
    }
  }

 private:
  static constexpr int kMaxCluster = 6;  // only clusters of fewer bytes are replaced as a whole

  // Whether the character at `p` is known to be a cluster by itself. The only cluster of two ASCII characters is CR LF.
  static bool stands_alone(const uint8_t* p, const uint8_t* end) {
    return *p < 0x80 && *p != '\r' && (p + 1 == end || p[1] < 0x80);
  }

  struct Alignment {
    normalization::Cursor cursor;
    std::vector<Span>* origin;
    bool begun = false;     // a character has been emitted
    bool too_many = false;  // the last character emitted is a surplus one

    // Records that `before` characters became `after`.
    void put(size_t before, size_t after) {
      if (!origin || (!begun && after == 0)) return;
      begun = true;
      for (size_t i = 0; i < after; i++) origin->push_back(cursor.pass(i < before));
      if (after > 0) too_many = after > before;
      if (before <= after) return;
      const Span removed = cursor.pass(before - after);
      if (too_many) origin->back() = removed;
      too_many = false;
    }
  };

  // Replaces [p, end) if it begins with a rule's key.
  bool replace(const uint8_t* p, const uint8_t* end, TextWriter& out, Alignment& alignment) const {
    const Charsmap::Rule rule = charsmap_.shortest(p, static_cast<size_t>(end - p));
    if (rule.length == 0) return false;
    out.append(rule.replacement.data(), rule.replacement.size());
    if (alignment.origin)
      alignment.put(count_characters({reinterpret_cast<const char*>(p), static_cast<size_t>(end - p)}),
                    count_characters(rule.replacement));
    return true;
  }

  Charsmap charsmap_;
  ByteSet plain_;  // ASCII characters that stay unchanged if no non-ASCII character follows
};

}  // namespace tokenweir
