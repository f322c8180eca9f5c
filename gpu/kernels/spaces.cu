// The space before each text. Before a document a byte is inserted for it; before a text after an added token it takes
// the last byte of that token, which has at least two.
#include "common/documents.cuh"

namespace tokenweir::spaces {

constexpr uint32_t kSpan = 32;  // the bytes that a thread copies

// The texts that get a space before them.
enum Prefix : uint32_t {
  kNowhere,
  kEach,   // every text between added tokens
  kFirst,  // texts that begin a document, if they do not begin with a space
};

}  // namespace tokenweir::spaces

// Copies documents with a space inserted before each. One thread per span.
extern "C" __global__ void space_documents(const uint8_t* text, uint32_t n, const int64_t* offsets, uint32_t n_documents,
                                           uint8_t* out, int64_t* out_offsets) {
  using namespace tokenweir;
  using namespace tokenweir::spaces;
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

// taken: bit map of the bytes of added tokens. out_taken: the same, without the bytes that become spaces before texts,
// and with the inserted bytes that are not used. One thread per word of the bit maps.
extern "C" __global__ void begin_texts_by_spaces(uint8_t* text, uint32_t n, uint32_t prefix, const uint32_t* begins,
                                                 const uint32_t* taken, uint32_t* out_taken) {
  using namespace tokenweir::spaces;
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
