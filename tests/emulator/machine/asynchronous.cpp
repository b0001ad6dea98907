// Copies that run beside the threads: cp.async groups, mbarriers with phases and bytes, what completes on them.
#include <algorithm>

#include "machine.h"

namespace emu {

std::vector<Mbarrier *> mbarriers;
std::vector<Flight> flights;

// --- cp.async: the data arrive when the thread that issued the copy waits, and not before ---------------------------

void copy_async(void *target, const void *source, size_t bytes, size_t given) {
  auto to = reinterpret_cast<uintptr_t>(target), from = reinterpret_cast<uintptr_t>(source);
  if (to % bytes || from % bytes)
    fault("misaligned", "a cp.async of %zu bytes from %s to %s %s", bytes, where(from).c_str(), where(to).c_str(),
          at(HERE).c_str());
  Copy copy{target, source, bytes, given};
  issue_copy(copy, HERE);
  self->open.push_back(copy);
}

void commit_group() {
  self->groups.push_back(std::move(self->open));
  self->open.clear();
}

void wait_group(size_t pending) {
  while (self->groups.size() > pending) {
    for (const Copy &copy : self->groups.front()) land_copy(copy, self->id, self->clock[self->id], 0);
    self->groups.pop_front();
  }
  yield();
}

// --- mbarriers ----------------------------------------------------------------------------------------------------

Mbarrier &barrier_at(void *address, uintptr_t place) {
  see_barrier_cells(address, place);
  for (Mbarrier *barrier : mbarriers)
    if (barrier->address == address) return *barrier;
  fault("barrier", "no mbarrier %s", at(place).c_str());
}

void make_mbarrier(void *address, int count) {
  make_barrier_cells(address, HERE);
  if (count < 1) fault("barrier", "an mbarrier of %d arrivals %s", count, at(HERE).c_str());
  if (mbarriers.size() == MOST_MBARRIERS)
    fault("barrier", "more than %d mbarriers %s", MOST_MBARRIERS, at(HERE).c_str());
  auto *made = new Mbarrier{};
  made->maker = self;
  made->address = address;
  made->name = where(reinterpret_cast<uintptr_t>(address));
  made->count = made->missing = count;
  made->agent = static_cast<int>(threads.size() + mbarriers.size());
  made->epoch = self->clock[made->agent] + 1;
  made->gathered.assign(agents, 0);
  made->complete.assign(agents, 0);
  mbarriers.push_back(made);
}

void publish_mbarriers() {
  for (Mbarrier *barrier : mbarriers)
    if (barrier->maker == self) barrier->published = true;
}

static void complete_phase(Mbarrier &barrier) {
  if (barrier.missing || barrier.bytes) return;
  barrier.complete = barrier.gathered;
  barrier.complete[barrier.agent] = barrier.epoch++;
  std::fill(barrier.gathered.begin(), barrier.gathered.end(), 0);
  barrier.missing = barrier.count;
  barrier.phase++;
  wake(barrier.asleep);
}

static void arrive_at(Mbarrier &barrier, const Clock &clock, uintptr_t place) {
  if (barrier.missing == 0)
    fault("barrier", "%s gets more arrivals than the %d of a phase %s", barrier.name.c_str(), barrier.count,
          at(place).c_str());
  take(barrier.gathered.data(), clock);
  barrier.missing--;
  complete_phase(barrier);
}

static Clock own_clock() { return Clock(self->clock, self->clock + agents); }

void arrive(void *address) {
  Mbarrier &barrier = barrier_at(address, HERE);
  arrive_at(barrier, own_clock(), HERE);
  release();
  yield();
}

void expect(void *address, long bytes) {
  Mbarrier &barrier = barrier_at(address, HERE);
  barrier.bytes += bytes;
  arrive_at(barrier, own_clock(), HERE);
  release();
  yield();
}

void wait(void *address, unsigned parity) {
  Mbarrier &barrier = barrier_at(address, HERE);
  while ((barrier.phase & 1) == parity) {
    barrier.asleep.push_back(self);
    self->barrier = &barrier;
    sleep("an mbarrier", HERE);
    self->barrier = nullptr;
  }
  take(self->clock, barrier.complete);
  yield();
}

void copies_arrive(void *address) {
  Mbarrier &barrier = barrier_at(address, HERE);
  barrier.missing++;
  Flight flight{&barrier, std::move(self->open), -1, barrier.phase, own_clock()};
  for (auto &group : self->groups) flight.copies.insert(flight.copies.end(), group.begin(), group.end());
  self->groups.clear();
  self->open.clear();
  flights.push_back(std::move(flight));
  release();
  yield();
}

bool land_flight() {
  if (flights.empty()) return false;
  std::swap(flights[roll(static_cast<uint32_t>(flights.size()))], flights.back());
  Flight flight = std::move(flights.back());
  flights.pop_back();
  Mbarrier &barrier = *flight.barrier;
  for (const Copy &copy : flight.copies) land_copy(copy, barrier.agent, barrier.epoch, 0);
  if (flight.bytes < 0) {
    arrive_at(barrier, flight.clock, 0);
    return true;
  }
  if (barrier.phase != flight.phase)
    fault("bytes", "%ld bytes arrive at %s after its phase %u was complete: it expects fewer than are copied",
          flight.bytes, barrier.name.c_str(), flight.phase);
  barrier.bytes -= flight.bytes;
  complete_phase(barrier);
  return true;
}

void async_fence() {
  self->fenced = self->clock[self->id];
  release();
}

void end_barriers() {
  if (!flights.empty())
    fault("race", "the block ends while copies are under way that complete on %s",
          flights.front().barrier->name.c_str());
  for (const Thread &thread : threads)
    if (!thread.stores.empty() || !thread.stores_open.empty())
      fault("race", "thread %d ends while its stores still read shared memory", thread.id);
  for (const Mbarrier *barrier : mbarriers) delete barrier;
  mbarriers.clear();
}

}  // namespace emu
