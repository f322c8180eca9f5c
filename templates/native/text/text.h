// Text with origins: a leaf is bytes that one origin gave, a rope is a sequence of texts. Nothing changes once it is made.
//
// Offsets are bytes. Slices end where characters end, so each leaf is valid UTF-8 by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/arena.h"
#include "text/symbol.h"

namespace tokenweir::templates {

// The first numbers of origins; the others are inputs (origin.h).
inline constexpr uint32_t kFromTemplate = 0, kFromEngine = 1;
// Origins of empty leaves that show where a generation block begins and ends.
inline constexpr uint32_t kGenerationBegins = 0xFFFFFFFE, kGenerationEnds = 0xFFFFFFFF;

struct Text {
  const char* bytes;  // null: a rope that was not read as a whole yet
  uint32_t size;
  uint32_t children;  // 0: a leaf
  int8_t ascii;       // -1: not known
  bool changed;       // of a leaf: its bytes are not those of the origin, and `offset` is where the changed text began
  union {
    struct {
      uint32_t origin, offset;
    };
    Text** child;
  };

  bool is_leaf() const { return children == 0; }
  bool is_mark() const { return size == 0 && children == 0 && origin >= kGenerationBegins; }
};

// The memory and the budget of one render, and functions that make text in it.
class Workspace {
 public:
  // `names` holds the symbols, which may outlive the workspace.
  Workspace(Arena& names, const SymbolTable* base, size_t memory, size_t text)
      : arena(memory), symbols(names, base), max_text(text) {
    parts_.reserve(64);
  }

  Arena arena;
  SymbolTable symbols;
  uint64_t steps = 0, max_steps = UINT64_MAX;
  const size_t max_text;
  uint32_t depth = 0;

  // Charges for work; a step is some ten nanoseconds.
  void spend(uint64_t work) {
    steps += work;
    if (steps > max_steps) [[unlikely]]
      exhausted();
  }

  // Refuses a text of more bytes than may be made.
  void check_size(uint64_t size) const {
    if (size > max_text) [[unlikely]]
      too_large();
  }

  [[noreturn]] void too_large() const;

  // Charges for looking through bytes once.
  void spend_bytes(size_t bytes) { spend(bytes / 32); }

  Text* leaf(std::string_view bytes, uint32_t origin, uint32_t offset = 0, int8_t ascii = -1, bool changed = false);
  // A leaf of a copy of the bytes.
  Text* copy(std::string_view bytes, uint32_t origin = kFromEngine, uint32_t offset = 0, bool changed = false);
  // A leaf of bytes that live as long as the program.
  Text* engine(std::string_view constant) { return leaf(constant, kFromEngine, 0, 1); }
  Text* empty() { return leaf({"", 0}, kFromEngine, 0, 1); }

  Text* concat(Text* left, Text* right);
  // The bytes from `begin` to `end`.
  Text* slice(Text* text, size_t begin, size_t end);
  // All bytes in one piece.
  std::string_view flat(Text* text) { return text->bytes ? std::string_view{text->bytes, text->size} : flatten(text); }
  bool ascii(Text* text);
  // The number of characters.
  size_t length(Text* text);
  // The byte at which a character begins.
  size_t byte_of(Text* text, size_t character);

  // Adds to the rope that was opened last; the output of statements is one.
  void emit(Text* part) {
    if (part->size || part->is_mark()) parts_.push_back(part);
  }

  // Calls `visit` for each leaf in order.
  template <class Visit>
  void leaves(Text* text, Visit&& visit) {
    if (text->is_leaf()) {
      visit(text);
      return;
    }
    const size_t base = stack_.size();
    stack_.push_back(text);
    while (stack_.size() > base) {
      Text* const top = stack_.back();
      stack_.pop_back();
      if (top->is_leaf()) {
        visit(top);
        continue;
      }
      steps++;
      for (uint32_t i = top->children; i-- > 0;) stack_.push_back(top->child[i]);
    }
  }

 private:
  friend class Rope;
  friend class Rendering;

  [[noreturn]] void exhausted() const;
  std::string_view flatten(Text* text);

  std::vector<Text*> stack_;  // of `leaves`
  std::vector<Text*> parts_;  // of ropes under construction
};

// Makes a text of parts. Ropes that are made at the same time must end in the reverse order.
class Rope {
 public:
  explicit Rope(Workspace& workspace) : workspace_(workspace), base_(workspace.parts_.size()) {}
  ~Rope() { workspace_.parts_.resize(base_); }
  Rope(const Rope&) = delete;
  Rope& operator=(const Rope&) = delete;

  void add(Text* part) { workspace_.emit(part); }
  void add(std::string_view constant) { add(workspace_.engine(constant)); }

  Text* finish();

 private:
  Workspace& workspace_;
  const size_t base_;
};

// Cuts many slices out of one text without walking over all its leaves for each.
class Slicer {
 public:
  Slicer(Workspace& workspace, Text* text);
  Text* operator()(size_t begin, size_t end);

 private:
  Workspace& workspace_;
  Text* const text_;
  std::vector<std::pair<size_t, Text*>> starts_;  // of the leaves of a rope
};

// Limits the depth of recursion over values.
class Depth {
 public:
  explicit Depth(Workspace& workspace) : workspace_(workspace) {
    if (++workspace_.depth > kMost) {
      workspace_.depth--;
      throw Failure(joined("RecursionError: a value is nested more than ", kMost, " deep"));
    }
  }
  ~Depth() { workspace_.depth--; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

  static constexpr uint32_t kMost = 400;

 private:
  Workspace& workspace_;
};

}  // namespace tokenweir::templates
