// Names and keys, each kept once, so that look-ups compare pointers.
#pragma once

#include <cstring>
#include <random>
#include <string_view>

#include "text/arena.h"

namespace tokenweir::templates {

struct Method;
struct Text;
enum class LoopField : uint8_t {
  None,
  Index,
  Index0,
  RevIndex,
  RevIndex0,
  First,
  Last,
  Length,
  Previous,
  Next,
  Depth,
  Depth0
};

struct Symbol {
  std::string_view text;
  uint32_t hash;
  LoopField loop_field = LoopField::None;
  bool described = false;           // whether the others are filled in
  bool is_dunder = false;           // such as __class__, which the sandbox hides
  const Method* of_text = nullptr;  // methods of this name
  const Method* of_dict = nullptr;
  const Method* of_list = nullptr;
  const Method* of_tuple = nullptr;
  Text* shown = nullptr;  // its text, as the template's own
  uint32_t number = 0;    // in the order of its table
};

// A set of symbols over another one, which it does not change.
class SymbolTable {
 public:
  explicit SymbolTable(Arena& arena, const SymbolTable* base = nullptr) : arena_(arena), base_(base) {}

  // The symbol of a text, or null if it has no symbol.
  Symbol* find(std::string_view text) const { return find(text, hash(text)); }

  // The symbol of a text, made if need be; a new one keeps a copy of the text.
  Symbol* intern(std::string_view text) {
    const uint32_t h = hash(text);
    if (Symbol* const found = find(text, h)) return found;
    if (count_ * 2 >= capacity_) grow();
    char* const copy = arena_.array<char>(text.size() + 1);
    std::memcpy(copy, text.data(), text.size());
    Symbol* const made = arena_.make<Symbol>(Symbol{{copy, text.size()}, h});
    made->number = count_++;
    place(made);
    return made;
  }

  uint32_t size() const { return count_; }

  template <class Visit>
  void each(Visit&& visit) {
    for (uint32_t i = 0; i < capacity_; i++)
      if (slots_[i]) visit(*slots_[i]);
  }

 private:
  // A key of the process: keys of requests cannot be chosen to collide.
  struct Key {
    uint64_t first, second;
  };
  static Key new_key() {
    std::random_device device;
    const auto word = [&] { return (static_cast<uint64_t>(device()) << 32 | device()) | 1; };
    return {word(), word()};
  }

  static uint32_t hash(std::string_view text) {
    static const Key key = new_key();
    const auto fold = [](uint64_t a, uint64_t b) {
      const auto product = static_cast<unsigned __int128>(a) * b;
      return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    };
    uint64_t h = key.first ^ text.size(), word;
    size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
      std::memcpy(&word, text.data() + i, 8);
      h = fold(h ^ word, key.second);
    }
    word = 0;
    std::memcpy(&word, text.data() + i, text.size() - i);
    h = fold(h ^ word, key.second);
    return static_cast<uint32_t>(fold(h, key.first));
  }

  Symbol* find(std::string_view text, uint32_t h) const {
    if (base_)
      if (Symbol* const found = base_->find(text, h)) return found;
    if (!capacity_) return nullptr;
    for (uint32_t at = h & (capacity_ - 1); slots_[at]; at = (at + 1) & (capacity_ - 1))
      if (slots_[at]->hash == h && slots_[at]->text == text) return slots_[at];
    return nullptr;
  }

  void place(Symbol* symbol) {
    uint32_t at = symbol->hash & (capacity_ - 1);
    while (slots_[at]) at = (at + 1) & (capacity_ - 1);
    slots_[at] = symbol;
  }

  void grow() {
    Symbol** const old = slots_;
    const uint32_t old_capacity = capacity_;
    capacity_ = capacity_ ? capacity_ * 2 : 64;
    slots_ = arena_.array<Symbol*>(capacity_);
    std::memset(slots_, 0, capacity_ * sizeof(Symbol*));
    for (uint32_t i = 0; i < old_capacity; i++)
      if (old[i]) place(old[i]);
  }

  Arena& arena_;
  const SymbolTable* base_;
  Symbol** slots_ = nullptr;
  uint32_t capacity_ = 0, count_ = 0;
};

}  // namespace tokenweir::templates
