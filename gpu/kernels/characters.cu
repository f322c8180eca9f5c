// Text for models that take whole documents as one piece, and a space for U+2581: Llama 2, Mistral, Gemma.
//
// A space before a text is a byte more. Before the text after an added token it is the last byte of that token, which has
// two at least. Then the text is cut wherever no token has both characters beside the place.
#include "characters.cuh"
#include "documents.cuh"
#include "models/split_pairs.h"

namespace tokenweir::characters {

constexpr uint32_t kSpan = 32;  // bytes a thread moves

// Before which texts a space stands.
enum Prefix : uint32_t {
  kNowhere,
  kEach,   // those between added tokens
  kFirst,  // those that begin a document and have none
};

// gpu/characters.py fills it.
struct CharacterTables {
  SplitPairs pairs;
  uint64_t space;  // what a space stands for
};

}  // namespace tokenweir::characters

// Documents with a byte before each, a space. A thread the bytes of a span.
extern "C" __global__ void space_documents(const uint8_t* text, uint32_t n, const int64_t* offsets, uint32_t n_documents,
                                           uint8_t* out, int64_t* out_offsets) {
  using namespace tokenweir;
  using namespace tokenweir::characters;
  const Documents documents{offsets, n_documents, nullptr, nullptr};
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, n_threads = gridDim.x * blockDim.x;
  for (uint32_t d = thread; d <= n_documents; d += n_threads) {
    out_offsets[d] = offsets[d] + d;
    if (d < n_documents) out[offsets[d] + d] = ' ';
  }
  const uint32_t begin = thread * kSpan, end = min(begin + kSpan, n);
  if (begin >= end) return;
  uint32_t document = documents.at(begin);
  for (uint32_t place = begin; place < end; place++) {
    while (place >= documents.end(document)) document++;
    out[place + document + 1] = text[place];
  }
}

// taken: bits of the bytes of added tokens; out_taken: the same without the bytes that are spaces before texts, and with the
// spaces before documents that have none. A thread a word.
extern "C" __global__ void begin_texts_by_spaces(uint8_t* text, uint32_t n, uint32_t prefix, const uint32_t* begins,
                                                 const uint32_t* taken, uint32_t* out_taken) {
  using namespace tokenweir::characters;
  const uint32_t word = blockIdx.x * blockDim.x + threadIdx.x, n_words = (n + 31) / 32;
  if (word >= n_words) return;
  const uint32_t last = word + 1 == n_words ? 1u << (n - 1) % 32 : 0;
  const auto next = [&](const uint32_t* bits) { return bits[word] >> 1 | (word + 1 < n_words ? bits[word + 1] << 31 : 0); };
  const uint32_t next_taken = next(taken), next_begins = next(begins) | last;
  uint32_t without = begins[word] & (next_taken | next_begins), freed = 0;
  if (prefix == kEach) freed = taken[word] & ~next_taken & ~next_begins;
  for (uint32_t bits = prefix == kFirst ? begins[word] & ~without : 0; bits; bits &= bits - 1) {
    const uint32_t bit = static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
    if (text[word * 32 + bit + 1] == ' ') without |= 1u << bit;
  }
  out_taken[word] = (taken[word] & ~freed) | without;
  for (uint32_t bits = freed; bits; bits &= bits - 1)
    text[word * 32 + static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1)] = ' ';
}

// Sets a bit in `pieces` where what is encoded by itself begins, and one where an added token does. A document with a U+2581
// is refused where a space stands for it, since then a token's bytes do not tell its length. A thread a word.
extern "C" __global__ void cut_characters(const tokenweir::characters::CharacterTables* tables, const uint8_t* text, uint32_t n,
                                          const int64_t* offsets, uint32_t n_documents, const uint32_t* begins,
                                          const uint32_t* taken, uint32_t* pieces, uint32_t* refusals, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::characters;
  const uint32_t word = blockIdx.x * blockDim.x + threadIdx.x;
  if (word >= (n + 31) / 32) return;
  const Documents documents{offsets, n_documents, refusals, counters};
  const CharacterTables own = *tables;
  const uint32_t space = static_cast<uint32_t>(own.space);
  const uint32_t taken_here = taken[word], taken_before = word > 0 ? taken[word - 1] >> 31 : 0;
  const uint32_t after_taken = taken_here << 1 | taken_before;
  uint32_t found = begins[word] | (taken_here ^ after_taken), before = kNone;  // the character, if it is known
  for (uint32_t bit = 0; bit < 32 && word * 32 + bit < n; bit++) {
    const uint32_t place = word * 32 + bit;
    if (taken_here >> bit & 1) {
      before = kNone;
      continue;
    }
    uint32_t c = text[place];
    if (c >= 0x80) {
      const uint32_t length = multibyte_at(text, n, place, c);
      if (length == kNotUtf8) documents.refuse(place, kInvalidUtf8);
      if (length == kWithin || length == kNotUtf8) continue;
      if (c == SplitPairs::kSpace && space == c) documents.refuse(place, kSpaceSign);
    } else if (c == ' ') {
      c = space;
    }
    if (!(found >> bit & 1)) {
      if (before == kNone) {
        uint32_t at = place, length;
        do at--;
        while (at > 0 && utf8_continues(text[at]));
        before = utf8_decode(text + at, length);
        if (before == ' ') before = space;
      }
      if (own.pairs.may_cut(before, c)) found |= 1u << bit;
    }
    before = c;
  }
  pieces[word] = n - word * 32 < 32 ? found & ((1u << (n - word * 32)) - 1) : found;
}
