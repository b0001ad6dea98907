// What the parts of the emulator share: threads, blocks, buffers, and the shadow that remembers who touched what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "calls.h"

namespace emu {

constexpr int WARP = 32;
constexpr int MOST_MBARRIERS = 64;  // of one team: each has a clock of its own
constexpr size_t STACK_BYTES = 64 << 10;
constexpr size_t BESIDE = 1 << 20;  // bytes around a buffer that are unreadable, and reported as outside of that one

// --- memory ---------------------------------------------------------------------------------------------

// What a cell of memory holds. ARRIVING: an asynchronous copy was issued and nobody waited for it yet.
enum State : uint8_t { OUTSIDE, EMPTY, FULL, ARRIVING, BARRIER };
enum class Access { READ, WRITE, ATOMIC };

struct Cell {
  uint32_t epoch = 0;     // of the last write, on its writer's clock
  uint32_t place = 0;     // address of the code that wrote
  uint32_t team = 0;      // global memory: which blocks wrote and read last; shared memory leaves them 0
  uint32_t read_team = 0, read_epoch = 0;
  uint16_t writer = 0, reader = 0;
  State state = OUTSIDE;
  bool atomic = false, read = false;
  bool lent = false;      // a store that was issued still reads it
};

// A buffer in global memory or an array in shared memory.
struct Region {
  std::string name;
  uintptr_t start = 0;
  size_t bytes = 0;
  size_t element = 4;
  bool writable = true;
  std::vector<Cell> cells;  // global memory only
};

struct Copy {  // one asynchronous copy that has been issued; the bytes behind `given` become 0
  void *target;
  const void *source;
  size_t bytes, given;
};

// --- threads --------------------------------------------------------------------------------------------

using Clock = std::vector<uint32_t>;

struct Block;
struct Thread {
  void *context = nullptr;  // saved stack pointer
  char *stack = nullptr;
  int id = 0;               // in the team; also its place in every clock
  int number = 0;           // in its block
  Block *block = nullptr;
  Index index{};
  bool done = false, waiting = false;
  const char *awaits = "";  // what a waiting thread waits for, in the words of the report
  uintptr_t place = 0;      // address of the code that waits
  uint32_t *clock = nullptr;
  uint32_t fenced = 0;      // own epoch up to which the asynchronous proxy sees this thread's writes
  const struct Mbarrier *barrier = nullptr;
  std::vector<Copy> open, stores_open;
  std::deque<std::vector<Copy>> groups, stores;
};

struct Named {  // a named barrier
  int expected = 0;
  std::vector<Thread *> arrived;
};

struct Exchange {  // lanes of one warp that meet
  int warp;
  unsigned mask, arrived;
  bool orders;  // __syncwarp orders memory, a shuffle does not
  uintptr_t place;
  std::vector<Thread *> lanes;
  const void *given[WARP];
  void *taken[WARP];
  int from[WARP];
  size_t bytes;
};

struct Mbarrier {
  Thread *maker;
  bool published;           // a fence showed it to the copy engine
  void *address;
  std::string name;
  int count, missing;       // arrivals a phase needs; that the current one lacks
  long bytes;               // still expected in this phase
  unsigned phase;
  int agent;                // its place in every clock
  uint32_t epoch;           // of the copies that complete on it, a phase each
  Clock gathered, complete; // clocks of this phase's arrivals; of the last complete phase's
  std::vector<Thread *> asleep;
};

struct Flight {  // copies that complete on an mbarrier, some time after they were issued
  Mbarrier *barrier;
  std::vector<Copy> copies;
  long bytes;        // announced by `expect`; -1 for cp.async, which arrives instead
  unsigned phase;
  Clock clock;
};

struct Block {
  Index index{};
  char *arena = nullptr;         // its shared memory
  Cell *cells = nullptr;
  uint32_t *reads = nullptr;     // per cell and agent: epoch of the last read
  int live = 0;                  // threads that have not returned
  bool read_by_others = false;   // other blocks of the cluster read its shared memory
  std::vector<Thread *> at_barrier;
  std::vector<Named> named{16};
  std::vector<Exchange> exchanges;
};

struct Array {  // shared memory is laid out once a team, so that all its blocks agree
  int key;
  Region region;  // `start` is an offset into the arena
};

struct Launch {
  Index grid{}, block{}, cluster{};
  size_t smem_bytes = 0;
  void (*entry)(void **) = nullptr;
  std::vector<void *> arguments;
};

extern Thread *self;
extern std::vector<Thread> threads;
extern std::vector<Block> blocks;
extern std::vector<Array> arrays;
extern std::vector<Mbarrier *> mbarriers;
extern std::vector<Flight> flights;
extern std::vector<Region> buffers;
extern const Launch *launch;
extern size_t arena_bytes;  // of a block
extern int agents;          // threads of the team and mbarriers: the length of a clock
extern uint32_t team;       // counts sets of blocks over all launches
extern uint32_t first_team; // of this launch
extern int shift;           // a cell is 1 << shift bytes

// --- what the parts call -----------------------------------------------------------------------------------

#define HERE reinterpret_cast<uintptr_t>(__builtin_return_address(0))

[[noreturn]] void fault(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
std::string where(uintptr_t address);          // "a_tile[12]", "8 bytes behind the end of a"
const char *kept(const std::string &text);     // the same text for the rest of the run
std::string at(uintptr_t place);               // a mark that the report resolves to a line

void access(uintptr_t address, size_t bytes, Access kind, uintptr_t place);
void issue_copy(const Copy &copy, uintptr_t place);
void land_copy(const Copy &copy, int writer, uint32_t epoch, uintptr_t place);
void lend(const void *source, size_t bytes, uintptr_t place);
void give_back(const Copy &store);             // moves the data, and the source may be written again
bool in_kernel(uintptr_t address);             // among the kernel's own constants
void give_up_shared(Block &block);             // its threads have returned
void make_barrier_cells(void *address, uintptr_t place);
void see_barrier_cells(const void *address, uintptr_t place);
void allocate_shared();                        // for the launch's teams
void clear_shared();                           // before each team

Mbarrier &barrier_at(void *address, uintptr_t place);
bool ordered(uint32_t other);                  // whether an atomic orders this team behind another

void sleep(const char *awaits, uintptr_t place);
void wake(std::vector<Thread *> &asleep);
void yield();                                  // lets other threads run, if the dice say so
void run_team();
uint32_t roll(uint32_t below);

void join(const std::vector<Thread *> &met);   // each is ordered behind all
void take(uint32_t *clock, const Clock &other);
void release();                                // what follows on this thread is not covered by clocks given away so far
void thread_returned();
void set_seed(uint32_t given);
void start_barriers();                         // before each team
void end_barriers();
bool land_flight();                            // one, drawn by lot; false where there are none

}  // namespace emu
