// Barriers of a block, named ones, lanes of a warp that meet, and atomics.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "machine.h"

namespace emu {

namespace {
std::vector<Thread *> at_cluster;
std::unordered_map<uintptr_t, std::vector<bool>> published;  // by address of an atomic: teams that come before
std::vector<bool> before;                                    // teams that come before this one

void meet(std::vector<Thread *> &arrived) {
  join(arrived);
  wake(arrived);
}
}  // namespace

Index thread_index() { return self->index; }
Index block_index() { return self->block->index; }
Index block_extent() { return launch->block; }
Index grid_extent() { return launch->grid; }

const void *in_block(const void *shared, int rank) {
  auto offset = static_cast<const char *>(shared) - self->block->arena;
  if (rank < 0 || rank >= static_cast<int>(blocks.size()))
    fault("out of bounds", "thread %d takes block %d of a cluster of %zu %s", self->id, rank, blocks.size(),
          at(HERE).c_str());
  return blocks[rank].arena + offset;
}

static void complete_block(Block &block) {
  if (block.live && static_cast<int>(block.at_barrier.size()) == block.live) meet(block.at_barrier);
}

void block_barrier() {
  self->block->at_barrier.push_back(self);
  complete_block(*self->block);
  sleep("__syncthreads", HERE);
}

void cluster_barrier() {
  at_cluster.push_back(self);
  int live = 0;
  for (const Block &block : blocks) live += block.live;
  if (static_cast<int>(at_cluster.size()) == live) meet(at_cluster);
  sleep("a cluster barrier", HERE);
}

void named_barrier(int number, int expected) {
  if (number < 0 || number > 15 || expected <= 0 || expected % WARP)
    fault("barrier", "named barrier %d of %d threads %s: there are 16, of whole warps", number, expected,
          at(HERE).c_str());
  Named &barrier = self->block->named[number];
  if (!barrier.arrived.empty() && barrier.expected != expected)
    fault("barrier", "named barrier %d is one of %d threads and of %d %s", number, barrier.expected, expected,
          at(HERE).c_str());
  barrier.expected = expected;
  barrier.arrived.push_back(self);
  if (static_cast<int>(barrier.arrived.size()) == expected) meet(barrier.arrived);
  sleep(kept("named barrier " + std::to_string(number) + " of " + std::to_string(expected) + " threads"), HERE);
}

// --- lanes of a warp -------------------------------------------------------------------------------------------

static unsigned live_lanes(const Block &block, int warp) {
  size_t per_block = threads.size() / blocks.size();
  const Thread *first = threads.data() + (&block - blocks.data()) * per_block;
  unsigned live = 0;
  for (size_t i = warp * WARP; i < per_block && i < size_t(warp + 1) * WARP; i++)
    if (!first[i].done) live |= 1u << i % WARP;
  return live;
}

static bool complete_exchange(const Block &block, Exchange &met) {
  if (met.arrived != met.mask && met.arrived != (met.mask & live_lanes(block, met.warp))) return false;
  if (met.orders) join(met.lanes);
  for (const Thread *thread : met.lanes) {
    int lane = thread->number % WARP, from = met.from[lane];
    if (met.orders) continue;
    if (!(met.arrived >> from & 1))
      fault("barrier", "lane %d takes a value of lane %d, which gives none %s", lane, from, at(met.place).c_str());
    std::memcpy(met.taken[lane], met.given[from], met.bytes);
  }
  wake(met.lanes);
  return true;
}

static void settle(Block &block) {
  auto &open = block.exchanges;
  auto complete = [&](Exchange &met) { return complete_exchange(block, met); };
  open.erase(std::remove_if(open.begin(), open.end(), complete), open.end());
}

static void meet_lanes(unsigned mask, const void *mine, void *taken, size_t bytes, int from, uintptr_t place) {
  int warp = self->number / WARP, lane = self->number % WARP;
  if (!(mask >> lane & 1)) fault("barrier", "lane %d is not in the mask %08x %s", lane, mask, at(place).c_str());
  auto &open = self->block->exchanges;
  auto found = std::find_if(open.begin(), open.end(), [&](const Exchange &met) {
    return met.warp == warp && met.mask == mask && met.orders == (taken == nullptr) && !(met.arrived >> lane & 1);
  });
  if (found == open.end()) {
    open.push_back(Exchange{warp, mask, 0, taken == nullptr, place, {}, {}, {}, {}, bytes});
    found = open.end() - 1;
  }
  found->arrived |= 1u << lane;
  found->lanes.push_back(self);
  found->given[lane] = mine;
  found->taken[lane] = taken;
  found->from[lane] = from;
  settle(*self->block);
  sleep(kept((taken ? "a shuffle of warp " : "__syncwarp of warp ") + std::to_string(warp)), place);
}

void warp_barrier(unsigned mask) { meet_lanes(mask, nullptr, nullptr, 0, 0, HERE); }

void exchange(unsigned mask, const void *mine, void *taken, size_t bytes, int from) {
  meet_lanes(mask, mine, taken, bytes, from, HERE);
}

// --- atomics: one on an address orders the blocks that use it there -----------------------------------------------

bool ordered(uint32_t other) { return other < before.size() && before[other]; }

void atomic(void *address, size_t bytes) {
  auto start = reinterpret_cast<uintptr_t>(address);
  if (start % bytes) fault("misaligned", "an atomic on %s %s", where(start).c_str(), at(HERE).c_str());
  access(start, bytes, Access::ATOMIC, HERE);
  std::vector<bool> &known = published[start];
  size_t most = std::max({known.size(), before.size(), size_t(team) + 1});
  known.resize(most);
  before.resize(most);
  before[team] = true;
  for (size_t i = 0; i < most; i++) known[i] = before[i] = known[i] || before[i];
}

// --- a team's beginning, and what a return completes -----------------------------------------------------------------

void thread_returned() {
  if (--self->block->live == 0) give_up_shared(*self->block);
  complete_block(*self->block);
  settle(*self->block);
}

void start_barriers() {
  before.clear();
  at_cluster.clear();
  for (Block &block : blocks) {
    block.read_by_others = false;
    block.at_barrier.clear();
    block.exchanges.clear();
    for (Named &named : block.named) named = Named{};
  }
}

}  // namespace emu
