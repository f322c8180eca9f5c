// Marking of documents, and the search for added tokens.
#include "base/trie_unit.h"
#include "base/utf8.h"
#include "common/documents.cuh"

namespace tokenweir::added {

// The added tokens of one search; filled by gpu/modes/tables.py.
struct AddedTokenTables {
  static constexpr uint32_t kHostOnly =
      0x80000000;  // flag in `ids`: the token strips white space or matches words only

  const uint32_t* first;  // bit set of the bytes that tokens begin with
  const TrieUnit* units;  // of the trie of indices of `ids`
  uint64_t root;
  const uint32_t* ids;
  uint64_t longest;  // bytes
};

constexpr uint32_t kThreads = 256, kBytes = 8;  // kBytes: the bytes of a thread, which it reads as one word

struct Search {
  const AddedTokenTables& tables;
  const Documents& documents;
  const uint8_t* text;
  const int64_t* guards;  // sorted; places that no token may cover
  uint32_t n_guards;
  const uint32_t* taken;  // bit map of the bytes of tokens that an earlier search found, which this one skips

  struct Match {
    uint32_t token = TrieUnit::kAbsent;
    uint32_t end = 0;

    __device__ bool found() const { return token != TrieUnit::kAbsent; }
  };

  __device__ bool may_begin(uint8_t byte) const { return tables.first[byte >> 5] >> (byte & 31) & 1; }

  // The longest token at a place where `may_begin` holds.
  __device__ Match match(uint32_t at, uint32_t document_end) const {
    Match match = longest(at, document_end);
    if (!match.found()) return match;
    uint32_t limit = next_guard(at);
    for (uint32_t place = at; taken && place < match.end && place < limit; place++)
      if (has_bit(taken, place)) limit = place;
    return limit < match.end ? longest(at, limit) : match;
  }

 private:
  __device__ Match longest(uint32_t at, uint32_t limit) const {
    size_t end = 0;
    const uint32_t token = longest_key(tables.units, static_cast<uint32_t>(tables.root), text, at, limit, end);
    return {token, static_cast<uint32_t>(end)};
  }

  // The first guard at or after a place.
  __device__ uint32_t next_guard(uint32_t place) const {
    uint32_t low = 0, high = n_guards;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (guards[middle] < place)
        low = middle + 1;
      else
        high = middle;
    }
    return low < n_guards ? static_cast<uint32_t>(guards[low]) : 0xFFFFFFFF;
  }
};

}  // namespace tokenweir::added

// Sets a bit in `begins` where a document begins. Documents that begin or end inside a character are refused; bytes
// within documents are validated when they are cut. One thread per document.
extern "C" __global__ void mark_documents(const uint8_t* text, const int64_t* offsets, uint32_t n_documents,
                                          uint32_t* begins, uint32_t* refusals, uint32_t* counters) {
  using namespace tokenweir;
  const Documents documents{offsets, n_documents, refusals, counters};
  const uint32_t document = blockIdx.x * blockDim.x + threadIdx.x;
  if (document >= n_documents) return;
  const uint32_t begin = documents.begin(document), end = documents.end(document);
  if (begin == end) return;
  set_bit(begins, begin);
  uint32_t last = end - 1;  // the first byte of the last character
  while (last > begin && end - last < 4 && utf8_continues(text[last])) last--;
  if (utf8_continues(text[begin]) || (text[last] >= 0xC0 && utf8_length(text[last]) > end - last))
    documents.refuse_document(document, kInvalidUtf8);
}

// Finds added tokens by the leftmost-longest rule, as added_tokens.h does. Each thread searches kBytes places.
//
// Matches may overlap. A run of overlapping matches is a cluster; the thread of its first place walks it and decides
// which matches count. So a thread also checks the `longest` - 1 places before a match, and every place inside one.
//
// guards[n_guards]: sorted; places that no token may cover. earlier: bit map of the bytes of tokens that earlier
// searches found, or null. max_bytes: the most bytes of a cluster; documents with longer ones are refused. For a match
// that counts, `found` gets bits for its bytes, ids[place] its id, and `tokens` a bit for the place.
extern "C" __global__ void __launch_bounds__(256, 6)
    find_added_tokens(const tokenweir::added::AddedTokenTables* added, const uint8_t* text, uint32_t n,
                      const int64_t* offsets, uint32_t n_documents, const int64_t* guards, uint32_t n_guards,
                      const uint32_t* earlier, uint32_t max_bytes, uint32_t* found, uint32_t* ids, uint32_t* tokens,
                      uint32_t* refusals, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::added;
  __shared__ uint32_t first[8];
  if (threadIdx.x < 8) first[threadIdx.x] = added->first[threadIdx.x];
  __syncthreads();
  const AddedTokenTables tables{first, added->units, added->root, added->ids, added->longest};
  const Documents documents{offsets, n_documents, refusals, counters};
  const Search search{tables, documents, text, guards, n_guards, earlier};
  const auto take = [&](uint32_t at, const Search::Match& match) {
    const uint32_t id = tables.ids[match.token];
    if (id & AddedTokenTables::kHostOnly) documents.refuse(at, kUnsupportedToken);
    ids[at] = id & ~AddedTokenTables::kHostOnly;
    set_bit(tokens, at);
    for (uint32_t place = at; place < match.end; place++) set_bit(found, place);
  };

  const uint32_t begin = (blockIdx.x * kThreads + threadIdx.x) * kBytes;
  if (begin >= n) return;
  uint64_t bytes = *reinterpret_cast<const uint64_t*>(text + begin);
  for (uint32_t at = begin; at < n && at < begin + kBytes; at++, bytes >>= 8) {
    if (!search.may_begin(bytes & 0xFF)) continue;
    const uint32_t document = documents.at(at), document_begin = documents.begin(document);
    const uint32_t document_end = documents.end(document);
    Search::Match match = search.match(at, document_end);
    if (!match.found()) continue;
    bool is_first = true;
    for (uint32_t back = 1; is_first && back < tables.longest && back <= at - document_begin; back++)
      if (search.may_begin(text[at - back])) {
        const Search::Match before = search.match(at - back, document_end);
        is_first = !before.found() || before.end <= at;
      }
    if (!is_first) continue;
    take(at, match);
    uint32_t taken_end = match.end;
    for (uint32_t place = at + 1, cluster_end = match.end; place < cluster_end; place++) {
      if (place - at > max_bytes) {
        documents.refuse(at, kTooLong);
        break;
      }
      if (!search.may_begin(text[place])) continue;
      match = search.match(place, document_end);
      if (!match.found()) continue;
      cluster_end = max(cluster_end, match.end);
      if (place < taken_end) continue;
      take(place, match);
      taken_end = match.end;
    }
  }
}
