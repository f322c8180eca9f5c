// Counts what a kernel under tests/gpu/shim executes, reads and writes, as the warps of a GPU would.
//
// g++ calls the functions below from a kernel: for each access to memory (-fsanitize=kernel-address) or each basic block
// (-fsanitize-coverage=trace-pc). The n-th time that a lane passes a place between two barriers counts as one step of
// its warp with the n-th time of the other lanes, as if lanes always met again. This file itself is not instrumented.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cuda.h"

namespace {

constexpr uint64_t kSector = 32;

struct Range {
  uint64_t begin, end;
};

struct Access {
  uint32_t warp, place, turn;
  uint64_t sector;

  bool operator<(const Access& other) const {
    return std::tie(warp, place, turn, sector) < std::tie(other.warp, other.place, other.turn, other.sector);
  }
  bool operator==(const Access& other) const { return !(*this < other) && !(other < *this); }
};

// Of one thread between two barriers.
struct Lane {
  std::vector<uint32_t> turns;  // by place
  uint64_t last_sector = 0, loads = 0, shared = 0, instructions = 0;
};

// The counts of a launch. The longest ones are of one thread, summed over the phases between barriers, in the block with
// the most: a kernel on a small batch takes as long as it takes to pass through these one after the other.
struct Counts {
  uint64_t instructions = 0;  // by a warp
  uint64_t sectors = 0;       // of all accesses by a warp
  uint64_t of_blocks = 0;     // different ones in each block
  uint64_t of_kernel = 0;     // different ones
  uint64_t longest_instructions = 0, longest_loads = 0, longest_shared = 0;
};

bool is_counting = false;  // not before these exist
std::vector<Range> memory;
std::unordered_map<int64_t, uint32_t> block_lengths;  // instructions of a basic block, by its distance from `take_counts`
std::unordered_map<uint64_t, uint32_t> place_of;      // by the address behind a call
std::vector<uint32_t> lengths;                        // by place
std::vector<Lane> lanes(1024);
std::vector<Access> accesses;
std::unordered_set<uint64_t> of_block, of_kernel;
Counts counts, longest;  // of the launch, of the block
unsigned block;
uint64_t phase;

void end_phase() {
  std::sort(accesses.begin(), accesses.end());
  accesses.erase(std::unique(accesses.begin(), accesses.end()), accesses.end());
  counts.sectors += accesses.size();
  for (const Access& access : accesses) of_block.insert(access.sector);
  accesses.clear();
  Lane most;
  for (size_t first = 0; first < lanes.size(); first += shim::kWarp) {
    for (size_t place = 0; place < lengths.size(); place++) {
      uint32_t turns = 0;
      for (size_t i = first; i < first + shim::kWarp; i++)
        if (place < lanes[i].turns.size()) turns = std::max(turns, lanes[i].turns[place]);
      counts.instructions += uint64_t{turns} * lengths[place];
    }
  }
  for (Lane& lane : lanes) {
    most.instructions = std::max(most.instructions, lane.instructions);
    most.loads = std::max(most.loads, lane.loads);
    most.shared = std::max(most.shared, lane.shared);
    std::fill(lane.turns.begin(), lane.turns.end(), 0);
    lane.last_sector = lane.loads = lane.shared = lane.instructions = 0;
  }
  longest.longest_instructions += most.instructions;
  longest.longest_loads += most.loads;
  longest.longest_shared += most.shared;
}

void end_block() {
  end_phase();
  counts.of_blocks += of_block.size();
  of_kernel.insert(of_block.begin(), of_block.end());
  of_block.clear();
  counts.longest_instructions = std::max(counts.longest_instructions, longest.longest_instructions);
  counts.longest_loads = std::max(counts.longest_loads, longest.longest_loads);
  counts.longest_shared = std::max(counts.longest_shared, longest.longest_shared);
  longest = {};
}

Lane& lane_here() {
  if (shim::grid.block.x != block) end_block();
  else if (shim::grid.passed != phase) end_phase();
  block = shim::grid.block.x, phase = shim::grid.passed;
  return lanes[shim::grid.thread.x];
}

uint32_t place_at(uint64_t address);

// The number of the lane's earlier times at a place.
uint32_t turn_at(Lane& lane, uint32_t place) {
  if (place >= lane.turns.size()) lane.turns.resize(place + 1);
  lane.instructions += lengths[place];
  return lane.turns[place]++;
}

void access(uint64_t address, size_t size, uint64_t from, bool is_load) {
  if (address >= reinterpret_cast<uint64_t>(__start_shim_shared) && address < reinterpret_cast<uint64_t>(__stop_shim_shared)) {
    lane_here().shared += is_load;
    return;
  }
  const auto after = std::upper_bound(memory.begin(), memory.end(), address,
                                      [](uint64_t a, const Range& range) { return a < range.begin; });
  if (after == memory.begin() || address >= after[-1].end) return;
  Lane& lane = lane_here();
  const uint32_t place = place_at(from), turn = turn_at(lane, place);
  for (uint64_t sector = address / kSector; sector <= (address + size - 1) / kSector; sector++) {
    if (sector == lane.last_sector) continue;  // a GPU reads a struct by one or two instructions
    lane.last_sector = sector;
    lane.loads += is_load;
    accesses.push_back({shim::grid.thread.x / shim::kWarp, place, turn, sector});
  }
}

}  // namespace

#define HERE reinterpret_cast<uint64_t>(__builtin_return_address(0))
#define ACCESSES(n)                                                                                                   \
  extern "C" void __asan_load##n##_noabort(void* p) { access(reinterpret_cast<uint64_t>(p), n, HERE, true); }         \
  extern "C" void __asan_store##n##_noabort(void* p) { access(reinterpret_cast<uint64_t>(p), n, HERE, false); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
extern "C" void __asan_loadN_noabort(void* p, size_t n) { access(reinterpret_cast<uint64_t>(p), n, HERE, true); }
extern "C" void __asan_storeN_noabort(void* p, size_t n) { access(reinterpret_cast<uint64_t>(p), n, HERE, false); }
extern "C" void __asan_handle_no_return() {}
extern "C" void __asan_before_dynamic_init(const char*) {}
extern "C" void __asan_after_dynamic_init() {}

extern "C" void __sanitizer_cov_trace_pc() {
  if (is_counting) turn_at(lane_here(), place_at(HERE));
}

// Tells the lengths of the basic blocks, by the distances of their beginnings from `take_counts`.
extern "C" __attribute__((visibility("default"))) void set_lengths(const int64_t* places, const uint32_t* values,
                                                                   size_t n) {
  for (size_t i = 0; i < n; i++) block_lengths[places[i]] = values[i];
}

// Begins to count one launch, on arrays of the device.
extern "C" __attribute__((visibility("default"))) void begin_counts(const uint64_t* ranges, size_t n) {
  memory.assign(reinterpret_cast<const Range*>(ranges), reinterpret_cast<const Range*>(ranges) + n);
  std::sort(memory.begin(), memory.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  end_block();
  counts = {};
  of_kernel.clear();
  is_counting = true;
}

extern "C" __attribute__((visibility("default"))) void take_counts(uint64_t* out) {
  is_counting = false;
  end_block();
  counts.of_kernel = of_kernel.size();
  std::memcpy(out, &counts, sizeof counts);
}

namespace {

uint32_t place_at(uint64_t address) {
  const auto [found, is_new] = place_of.emplace(address, static_cast<uint32_t>(lengths.size()));
  if (is_new) {
    const auto length = block_lengths.find(static_cast<int64_t>(address - reinterpret_cast<uint64_t>(&take_counts)));
    lengths.push_back(length == block_lengths.end() ? 0 : length->second);
  }
  return found->second;
}

}  // namespace
