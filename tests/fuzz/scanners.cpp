// The scanners: whatever the text, every instruction set of this machine finds the pieces that the automaton finds.
//
// automata.py compiles the automaton of each pattern family before, into the file that FUZZ_AUTOMATA names.
#include "pretokenizers/scanner.h"

#include <fstream>
#include <memory>

#include "fuzz.h"
#include "pattern/compiled_pattern.h"

namespace tokenweir {

constexpr const char* kInstructions[] = {"portable", "avx2", "avx512"};

// A family's automaton, and a scanner by each instruction set.
struct Family {
  std::string name;
  std::unique_ptr<CompiledPattern> pattern;
  std::vector<Scanner> scanners;
};

template <class Word>
std::vector<Word> read_words(std::istream& file) {
  uint64_t n = 0;
  file.read(reinterpret_cast<char*>(&n), sizeof n);
  std::vector<Word> words(n);
  file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(n * sizeof(Word)));
  promised(file.good(), "the file of automata is whole");
  return words;
}

// The file has, for each family, five arrays, each behind its length: name, transitions, class_index, class_pages, kinds.
std::vector<Family> read_families() {
  const char* path = std::getenv("FUZZ_AUTOMATA");
  promised(path != nullptr, "FUZZ_AUTOMATA names the file of automata: run scripts/fuzz scanners");
  std::ifstream file(path, std::ios::binary);
  std::vector<Family> families;
  while (file.peek() != std::ifstream::traits_type::eof()) {
    const std::vector<char> name = read_words<char>(file);
    const auto transitions = read_words<uint16_t>(file), class_index = read_words<uint16_t>(file);
    const auto class_pages = read_words<uint8_t>(file), kinds = read_words<uint8_t>(file);
    Family family{{name.begin(), name.end()}, nullptr, {}};
    const std::vector<uint8_t> no_sync(kinds.size() * kinds.size());
    family.pattern =
        std::make_unique<CompiledPattern>(transitions, class_index, class_pages, kinds.size(), no_sync, nullptr);
    for (const char* instructions : kInstructions) {
      setenv("TOKENWEIR_SCANNER", instructions, 1);
      family.scanners.emplace_back(family.name, kinds, family.pattern->tables(), family.pattern->n_pages());
    }
    families.push_back(std::move(family));
  }
  promised(!families.empty(), "there are automata");
  return families;
}

std::vector<size_t> walked_ends(const Automaton& automaton, std::string_view text) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(text.data());
  std::vector<size_t> ends;
  for (const uint8_t *p = begin, *end = begin + text.size(); p < end;) {
    bool gap = false;
    p = automaton.token_end(p, end, gap);
    ends.push_back(static_cast<size_t>(p - begin));
  }
  return ends;
}

std::vector<size_t> scanned_ends(const Scanner& scanner, std::string_view text) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(text.data());
  uint32_t found[Scanner::kMaxEnds];
  std::vector<size_t> ends;
  for (size_t from = 0; from < text.size(); from = ends.back()) {
    const size_t n = scanner.scan(begin + from, begin + text.size(), found);
    promised(n > 0 && n <= Scanner::kMaxEnds, "a scan finds a piece, and no more than fit");
    for (size_t i = 0; i < n; i++) ends.push_back(from + found[i]);
  }
  return ends;
}

}  // namespace tokenweir

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  static const std::vector<Family> families = read_families();
  if (size == 0) return 0;
  const Family& family = families[data[0] % families.size()];
  std::string bytes(view(data + 1, size - 1)), text;
  decode_replace(bytes, text);
  const std::vector<size_t> expected = walked_ends(family.pattern->tables(), text);
  for (const Scanner& scanner : family.scanners) {
    if (scanned_ends(scanner, text) == expected) continue;
    std::fprintf(stderr, "%s by %s\n", family.name.c_str(), scanner.instructions());
    promised(false, "a scanner finds the automaton's pieces");
  }
  return 0;
}
