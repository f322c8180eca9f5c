// Serializes look-up tables into one block of bytes, and reads them from it.
//
// A serializable class lists its members once, in a template `fields(visit)`, which the writer and the reader call.
// Arrays are not copied when they are read: they point into the block and own a share of its memory. An array that two
// tables share is written once.
//
// A block is trusted: its reader has verified, by a checksum, that no byte has changed, and that the same code wrote
// it. Bounds are checked nevertheless.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/hash.h"
#include "memory/shared_array.h"
#include "memory/table_memory.h"

namespace tokenweir {

// A 64-bit checksum at the speed of memory. It detects damage, not forgery.
inline uint64_t checksum(const uint8_t* p, size_t n) {
  constexpr size_t kLanes = 8;  // enough to hide the latency of a multiplication
  uint64_t lanes[kLanes] = {n, 1, 2, 3, 4, 5, 6, 7}, words[kLanes];
  for (; n >= sizeof words; p += sizeof words, n -= sizeof words) {
    std::memcpy(words, p, sizeof words);
    for (size_t i = 0; i < kLanes; i++) lanes[i] = mix(lanes[i] ^ words[i]) ^ lanes[i] >> 29;
  }
  std::memset(words, 0, sizeof words);
  std::memcpy(words, p, n);
  uint64_t sum = 0;
  for (size_t i = 0; i < kLanes; i++) {
    sum = mix(sum ^ mix(lanes[i] ^ words[i]));
    sum ^= sum >> 32;
  }
  return sum;
}

// The alignment of every array in a block: a cache line.
constexpr size_t kTableAlignment = 64;

class TableWriter {
 public:
  template <class... T>
  void operator()(const T&... fields) {
    (write(fields), ...);
  }

  // Returns the block: the numbers, and the arrays after them.
  std::vector<uint8_t> block() const {
    const size_t numbers = rounded((numbers_.size() + 1) * sizeof(uint64_t));
    std::vector<uint8_t> block(numbers + arrays_.size());
    const uint64_t n = numbers_.size();
    std::memcpy(block.data(), &n, sizeof n);
    std::memcpy(block.data() + sizeof n, numbers_.data(), numbers_.size() * sizeof(uint64_t));
    if (!arrays_.empty()) std::memcpy(block.data() + numbers, arrays_.data(), arrays_.size());
    return block;
  }

  static size_t rounded(size_t bytes) { return (bytes + kTableAlignment - 1) / kTableAlignment * kTableAlignment; }

 private:
  template <class T>
  void write(const T& value) {
    if constexpr (std::is_arithmetic_v<T>)
      numbers_.push_back(static_cast<uint64_t>(value));
    else
      const_cast<T&>(value).fields(*this);  // `fields` is not const, because reading writes the members
  }

  template <class T>
  void write(const SharedArray<T>& array) {
    const size_t bytes = array.size() * sizeof(T);
    const auto [known, is_new] =
        places_.emplace(std::pair(static_cast<const void*>(array.data()), bytes), arrays_.size());
    numbers_.push_back(array.size());
    numbers_.push_back(known->second);
    if (!is_new || bytes == 0) return;
    arrays_.resize(rounded(arrays_.size() + bytes));
    std::memcpy(arrays_.data() + known->second, array.data(), bytes);
  }

  template <class T, size_t N>
  void write(const T (&values)[N]) {
    for (const T& value : values) write(value);
  }

  void write(const std::string& text) { keep(std::vector<char>(text.begin(), text.end())); }

  void write(const std::vector<bool>& flags) { keep(std::vector<uint8_t>(flags.begin(), flags.end())); }

  void write(const std::unordered_map<uint32_t, uint32_t>& map) {
    std::vector<uint32_t> pairs;
    for (const auto& [key, value] : map) pairs.insert(pairs.end(), {key, value});
    keep(std::move(pairs));
  }

  // Writes a temporary array, and keeps it alive: written arrays are recognized by their address.
  template <class T>
  void keep(std::vector<T> values) {
    const SharedArray<T> array(std::move(values));
    kept_.push_back(std::make_shared<SharedArray<T>>(array));
    write(array);
  }

  template <class T>
  void write(const std::shared_ptr<const T>& table) {
    write(*table);
  }

  template <class T>
  void write(const std::unique_ptr<T>& table) {
    write(table != nullptr);
    if (table) write(*table);
  }

  std::vector<uint64_t> numbers_;
  std::vector<uint8_t> arrays_;
  std::map<std::pair<const void*, size_t>, size_t> places_;
  std::vector<std::shared_ptr<const void>> kept_;
};

// The memory of a block, on huge pages where possible.
class TableBlock {
 public:
  explicit TableBlock(size_t size) : memory_(table_memory(size), free_aligned), size_(size) {}

  uint8_t* data() const { return static_cast<uint8_t*>(memory_.get()); }
  size_t size() const { return size_; }
  std::shared_ptr<const void> owner() const { return memory_; }

 private:
  std::shared_ptr<void> memory_;
  size_t size_;
};

class TableReader {
 public:
  // Reads the block that begins at `start`, a multiple of `kTableAlignment`.
  TableReader(const TableBlock& memory, size_t start) : memory_(memory) {
    check(start % kTableAlignment == 0 && start <= memory.size() && memory.size() - start >= sizeof(uint64_t));
    begin_ = memory.data() + start;
    size_ = memory.size() - start;
    std::memcpy(&n_numbers_, begin_, sizeof n_numbers_);
    check(n_numbers_ < size_ / sizeof(uint64_t));
    arrays_ = TableWriter::rounded((n_numbers_ + 1) * sizeof(uint64_t));
    check(arrays_ <= size_);
  }

  template <class... T>
  void operator()(T&... fields) {
    (read(fields), ...);
  }

  void end() const { check(next_ == n_numbers_); }

 private:
  static void check(bool holds) {
    if (!holds) throw FileError("a table file is inconsistent");
  }

  uint64_t number() {
    check(next_ < n_numbers_);
    uint64_t number;
    std::memcpy(&number, begin_ + ++next_ * sizeof number, sizeof number);
    return number;
  }

  template <class T>
  void read(T& value) {
    if constexpr (std::is_arithmetic_v<T>)
      value = static_cast<T>(number());
    else
      value.fields(*this);
  }

  template <class T>
  void read(SharedArray<T>& array) {
    const uint64_t size = number(), at = number(), room = size_ - arrays_;
    check(at <= room && at % kTableAlignment == 0 && size <= (room - at) / sizeof(T));
    array = SharedArray<T>(reinterpret_cast<T*>(begin_ + arrays_ + at), size, memory_.owner());
  }

  template <class T, size_t N>
  void read(T (&values)[N]) {
    for (T& value : values) read(value);
  }

  void read(std::string& text) {
    SharedArray<char> array;
    read(array);
    text.assign(array.begin(), array.end());
  }

  void read(std::vector<bool>& flags) {
    SharedArray<uint8_t> array;
    read(array);
    flags.assign(array.begin(), array.end());
  }

  void read(std::unordered_map<uint32_t, uint32_t>& map) {
    SharedArray<uint32_t> pairs;
    read(pairs);
    map.reserve(pairs.size() / 2);
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) map.emplace(pairs[i], pairs[i + 1]);
  }

  template <class T>
  void read(std::shared_ptr<const T>& table) {
    auto made = std::make_shared<T>();
    read(*made);
    table = std::move(made);
  }

  template <class T>
  void read(std::unique_ptr<T>& table) {
    bool there = false;
    read(there);
    if (!there) return;
    table = std::make_unique<T>();
    read(*table);
  }

  const TableBlock& memory_;
  uint8_t* begin_;
  size_t size_, arrays_, next_ = 0;
  uint64_t n_numbers_;
};

}  // namespace tokenweir
