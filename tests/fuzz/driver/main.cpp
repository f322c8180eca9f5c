// Calls a harness without libFuzzer, which an emulated machine does not have: main SEEDS COUNT.
//
// Each call gets a seed with some random changes: a part of another seed put in, a part repeated, bytes replaced. The
// changes are the same on each run.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kMaxBytes = 4096;

std::mt19937_64 generator(20261125);

size_t below(size_t end) { return end ? static_cast<size_t>(generator() % end) : 0; }

std::string part(const std::string& bytes) {
  const size_t from = below(bytes.size() + 1);
  return bytes.substr(from, below(bytes.size() - from + 1));
}

std::string changed(const std::vector<std::string>& seeds) {
  std::string bytes = seeds[below(seeds.size())];
  for (size_t changes = below(8); changes > 0; changes--) {
    const size_t at = below(bytes.size() + 1);
    switch (below(4)) {
      case 0: bytes.insert(at, part(seeds[below(seeds.size())])); break;
      case 1: bytes.insert(at, part(bytes)); break;
      case 2: bytes.erase(at, below(8)); break;
      default:
        for (size_t i = at; i < bytes.size() && i < at + 4; i++) bytes[i] = static_cast<char>(generator());
    }
    if (bytes.size() > kMaxBytes) bytes.resize(kMaxBytes);
  }
  return bytes;
}

}  // namespace

int main(int n, char** arguments) {
  const size_t count = n == 3 ? std::strtoul(arguments[2], nullptr, 10) : 0;
  if (count == 0) return std::fprintf(stderr, "usage: %s SEEDS COUNT\n", arguments[0]), 2;
  std::vector<std::string> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (seeds.empty()) return std::fprintf(stderr, "no seeds in %s\n", arguments[1]), 2;
  for (size_t i = 0; i < count; i++) {
    const std::string bytes = i < seeds.size() ? seeds[i] : changed(seeds);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs kept every promise\n", count);
}
