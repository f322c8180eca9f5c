// WordPiece as BERT has it. Characters are cleaned, split and lower-cased one by one, so that each thread can find the
// beginnings of words. It encodes a word from left to right by the longest token that matches.
#include "base/hash.h"
#include "base/trie_unit.h"
#include "common/characters.cuh"
#include "common/documents.cuh"

namespace tokenweir::wordpiece {

constexpr uint32_t kThreads = 256, kSpan = 32, kTile = kThreads * kSpan;

// The kind of a character, stored with its replacement.
enum Kind : uint32_t {
  kWord,   // part of a word
  kAlone,  // a word by itself
  kSpace,
  kRemoved,
  kHostOnly  // only the host knows
};
constexpr uint32_t kKindShift = 24, kCharacter = 0xFFFFFF;

// Filled by gpu/modes/wordpiece.py.
struct WordPieceTables {
  const uint16_t* index;  // [0x1100]
  const uint32_t* pages;  // [page][256]: a kind and a character
  const TrieUnit* units;  // the trie of the tokens
  uint64_t root, below_prefix;
  uint64_t unknown;    // the id of a word that tokens do not cover
  uint64_t max_chars;  // the most characters of a word; longer ones are unknown

  __device__ uint32_t entry(uint32_t c) const { return pages[index[c >> 8] * 256u + (c & 0xFF)]; }
};

struct Text {
  const WordPieceTables& tables;
  const uint8_t* text;
  uint32_t n;
  const uint32_t* begins;  // of documents
  const uint32_t* taken;   // bytes of added tokens
  uint32_t max_bytes;      // of characters that are gone, one after the other

  // The entry of the character at a place, and its length. Added tokens and places past the end are kSpace, which ends
  // a word; bytes that are not UTF-8 are kHostOnly.
  __device__ uint32_t entry(uint32_t place, uint32_t& length) const {
    length = 1;
    if (place >= n || has_bit(taken, place)) return kSpace << kKindShift;
    uint32_t c = text[place];
    if (c >= 0x80) {
      length = multibyte_at(text, place, c);
      if (length == kWithin || length == kNotUtf8) {
        length = 1;
        return kHostOnly << kKindShift;
      }
    }
    return tables.entry(c);
  }

  // Advances to the next character of a word, at `place` or after removed characters; returns false at the word's end.
  // A word also ends after too many removed characters, whose document is refused anyway.
  __device__ bool next(uint32_t& place, uint32_t first, uint32_t& c, uint32_t& length) const {
    for (const uint32_t limit = place + max_bytes; place <= limit; place += length) {
      if (place != first && place < n && has_bit(begins, place)) return false;
      const uint32_t found = entry(place, length);
      c = found & kCharacter;
      if (found >> kKindShift != kRemoved) return found >> kKindShift == kWord;
    }
    return false;
  }

  // Whether the word character at `place` begins a word. Sets `is_far` after too many removed characters.
  __device__ bool begins_word(uint32_t place, bool& is_far) const {
    for (uint32_t at = place; at > 0;) {
      if (has_bit(begins, at) || has_bit(taken, at - 1)) return true;
      uint32_t length;
      do at--;
      while (at > 0 && utf8_continues(text[at]));
      const uint32_t kind = entry(at, length) >> kKindShift;
      if (kind != kRemoved) return kind != kWord;
      is_far = place - at > max_bytes;
      if (is_far) return false;
    }
    return true;
  }
};

// Steps through the trie by the bytes of a character.
__device__ inline bool step(const TrieUnit* units, uint32_t c, uint32_t& base, uint32_t& value) {
  uint32_t bytes = utf8_of(c);
  do {
    const uint8_t byte = bytes & 0xFF;
    const TrieUnit unit = units[base ^ byte];
    if (!unit.is_child_by(byte)) return false;
    base = unit.base;
    value = unit.value();
    bytes >>= 8;
  } while (bytes);
  return true;
}

// Writes the ids of the word that begins at `begin`, each at the place where its token begins; a word that tokens do
// not cover gets the unknown id.
__device__ inline void encode_word(const Text& source, uint32_t begin, uint32_t alone, uint32_t* ids,
                                   uint32_t* tokens) {
  const WordPieceTables& tables = source.tables;
  uint32_t place = begin, c = alone, length, n_chars = 0;
  bool is_known = true, more = true;
  if (alone) source.entry(begin, length);
  if (!alone) more = source.next(place, begin, c, length);
  uint32_t at = place;
  while (more && is_known) {  // each token
    uint32_t base = static_cast<uint32_t>(at == begin ? tables.root : tables.below_prefix), value = TrieUnit::kAbsent;
    uint32_t id = kNone, n_walked = 0, token_chars = 0, end = at;
    bool walks = true;
    for (place = at; walks;) {
      walks = step(tables.units, c, base, value);
      if (!walks) break;
      n_walked++;
      place += length;
      if (value != TrieUnit::kAbsent) id = value, end = place, token_chars = n_walked;
      walks = !alone && source.next(place, begin, c, length);
    }
    n_chars += token_chars;
    is_known = id != kNone && n_chars <= tables.max_chars;
    if (!is_known) break;
    ids[at] = id;
    set_bit(tokens, at);
    place = end;
    more = !alone && source.next(place, begin, c, length);
    at = place;
  }
  if (is_known) return;
  for (uint32_t from = begin, to; from < at; from = to) {  // without a look at the bits: others write beside them
    to = min((from | 31) + 1, at);
    atomicAnd(&tokens[from >> 5], ~((to - from == 32 ? ~0u : (1u << (to - from)) - 1) << (from & 31)));
  }
  ids[begin] = static_cast<uint32_t>(tables.unknown);
  set_bit(tokens, begin);
}

}  // namespace tokenweir::wordpiece

// One block per tile, one thread per span; the threads share the words that begin in the tile. begins: bit map of the
// beginnings of documents. taken: bit map of the bytes of added tokens. Documents with a run of removed characters of
// more than `max_bytes` bytes are refused. ids, tokens: as in encode_pieces.
extern "C" __global__ void __launch_bounds__(256, 4)
    encode_words(const tokenweir::wordpiece::WordPieceTables* tables, const uint8_t* text, uint32_t n,
                 const int64_t* offsets, uint32_t n_documents, const uint32_t* begins, const uint32_t* taken,
                 uint32_t max_bytes, uint32_t* ids, uint32_t* tokens, uint32_t* refusals, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::wordpiece;
  __shared__ uint16_t words[kTile];
  __shared__ uint32_t n_words;
  const Documents documents{offsets, n_documents, refusals, counters};
  const WordPieceTables own = *tables;
  const Text source{own, text, n, begins, taken, max_bytes};
  if (threadIdx.x == 0) n_words = 0;
  __syncthreads();

  const uint32_t tile = blockIdx.x * kTile, first = tile + threadIdx.x * kSpan;
  for (uint32_t at = first, length; at < n && at < first + kSpan; at++) {
    if (has_bit(taken, at)) continue;
    uint32_t c = text[at];
    if (c >= 0x80) {
      length = multibyte_at(text, at, c);
      if (length == kNotUtf8) documents.refuse(at, kInvalidUtf8);
      if (length == kWithin || length == kNotUtf8) continue;
    }
    const uint32_t kind = own.entry(c) >> kKindShift;
    if (kind == kHostOnly) documents.refuse(at, kUnsupportedCharacter);
    bool is_far = false;
    if (kind == kAlone || (kind == kWord && source.begins_word(at, is_far)))
      words[atomicAdd(&n_words, 1u)] = static_cast<uint16_t>(at - tile);
    if (is_far) documents.refuse(at, kTooLong);
  }
  __syncthreads();

  for (uint32_t k = threadIdx.x; k < n_words; k += kThreads) {
    const uint32_t begin = tile + words[k];
    uint32_t length;
    const uint32_t entry = source.entry(begin, length);
    encode_word(source, begin, entry >> kKindShift == kAlone ? entry & kCharacter : 0, ids, tokens);
  }
}
