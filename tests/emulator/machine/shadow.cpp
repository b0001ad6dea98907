// Judges every access: is it inside a buffer, was that written before, and is it ordered behind what others did there.
#include <sys/mman.h>

#include <cstring>

#include "machine.h"

namespace emu {

std::vector<Array> arrays;
std::vector<Region> buffers;
size_t arena_bytes;
int shift = 2;

namespace {
constexpr size_t MOST_SHARED = 256 << 10;  // with room between the arrays
constexpr size_t GAP = 128;                // bytes between two arrays that belong to none
constexpr int DYNAMIC = -1;                // the key of dynamic shared memory
std::vector<Region> parts;                 // of dynamic shared memory, by offset

const Region *part_of(size_t offset) {
  const Region *found = nullptr;
  for (const Region &part : parts)
    if (part.start <= offset && (!found || part.start > found->start)) found = &part;
  return found;
}

Block *block_of(uintptr_t address) {
  for (Block &block : blocks)
    if (address - reinterpret_cast<uintptr_t>(block.arena) < MOST_SHARED) return &block;
  return nullptr;
}

Region *buffer_of(uintptr_t address) {
  static Region *last;
  if (last && address - last->start < last->bytes) return last;
  for (Region &region : buffers)
    if (address - region.start < region.bytes) return last = &region;
  return nullptr;
}

const Array *array_of(size_t offset) {
  for (const Array &array : arrays)
    if (offset - array.region.start < array.region.bytes) return &array;
  return nullptr;
}

std::string element(const Region &region, size_t offset) {
  std::string text = region.name + "[" + std::to_string(offset / region.element) + "]";
  return offset % region.element ? text + " byte " + std::to_string(offset % region.element) : text;
}

std::string beside(const Region &region, uintptr_t start, uintptr_t address) {
  if (address >= start + region.bytes)
    return std::to_string(address - start - region.bytes) + " bytes behind the end of " + region.name;
  return std::to_string(start - address) + " bytes before " + region.name;
}

const char *verb(Access kind) { return kind == Access::READ ? "reads" : kind == Access::WRITE ? "writes" : "adds to"; }

std::string name_of(int agent) {
  if (agent < static_cast<int>(threads.size())) return "thread " + std::to_string(agent);
  return "a copy that completes on " + mbarriers[agent - threads.size()]->name;
}

[[noreturn]] void race(uintptr_t address, Access kind, uintptr_t place, int other, const char *what, uintptr_t before) {
  std::string earlier = before ? " " + at(before) : "";
  fault("race", "thread %d %s %s %s, which %s %s%s: nothing orders the two", self->id, verb(kind),
        where(address).c_str(), at(place).c_str(), name_of(other).c_str(), what, earlier.c_str());
}

void check_state(Cell &cell, uintptr_t address, Access kind, uintptr_t place) {
  switch (cell.state) {
    case FULL:
      return;
    case EMPTY:
      if (kind == Access::WRITE) return;
      fault("uninitialised", "thread %d %s %s %s, which nobody has written", self->id, verb(kind),
            where(address).c_str(), at(place).c_str());
    case ARRIVING:
      fault("race", "thread %d %s %s %s, but nothing waits for the copy into it %s", self->id, verb(kind),
            where(address).c_str(), at(place).c_str(), at(cell.place).c_str());
    case BARRIER:
      fault("barrier", "thread %d %s %s %s, which is an mbarrier", self->id, verb(kind), where(address).c_str(),
            at(place).c_str());
    case OUTSIDE:
      fault("out of bounds", "thread %d %s %s %s", self->id, verb(kind), where(address).c_str(), at(place).c_str());
  }
}

void shared_access(Block &block, uintptr_t address, size_t bytes, Access kind, uintptr_t place) {
  size_t offset = address - reinterpret_cast<uintptr_t>(block.arena);
  const uint32_t *clock = self->clock;
  for (size_t i = offset >> shift; i <= (offset + bytes - 1) >> shift; i++) {
    Cell &cell = block.cells[i];
    uint32_t *reads = block.reads + i * agents;
    uintptr_t here = reinterpret_cast<uintptr_t>(block.arena) + (i << shift);
    if (cell.state != FULL) check_state(cell, here, kind, place);
    if (cell.epoch > clock[cell.writer] && !(cell.atomic && kind == Access::ATOMIC))
      race(here, kind, place, cell.writer, "wrote", cell.place);
    if (cell.lent && kind != Access::READ) race(here, kind, place, cell.reader, "still stores from there", 0);
    if (kind == Access::READ) {
      reads[self->id] = clock[self->id];
      cell.read = true;
      continue;
    }
    if (cell.read) {
      bool late = false;
      for (int j = 0; j < agents; j++) late |= reads[j] > clock[j];
      for (int j = 0; late && j < agents; j++)
        if (reads[j] > clock[j]) race(here, kind, place, j, "read", 0);
    }
    cell = Cell{clock[self->id], static_cast<uint32_t>(place), 0, 0, 0, static_cast<uint16_t>(self->id), 0, FULL,
                kind == Access::ATOMIC, false};
  }
}

// Blocks of a launch are ordered by nothing but atomics, so that another block's access is a race.
void global_access(Region &region, uintptr_t address, size_t bytes, Access kind, uintptr_t place) {
  if (kind != Access::READ && !region.writable)
    fault("out of bounds", "thread %d %s %s %s, an input", self->id, verb(kind), where(address).c_str(),
          at(place).c_str());
  if (!region.writable) return;
  const uint32_t *clock = self->clock;
  size_t offset = address - region.start;
  for (size_t i = offset >> shift; i <= (offset + bytes - 1) >> shift; i++) {
    Cell &cell = region.cells[i];
    uintptr_t here = region.start + (i << shift);
    if (cell.state != FULL) check_state(cell, here, kind, place);
    bool late = cell.team == team ? cell.epoch > clock[cell.writer] : cell.team >= first_team && !ordered(cell.team);
    if (late && !(cell.atomic && kind == Access::ATOMIC))
      race(here, kind, place, cell.writer, cell.team == team ? "wrote" : "of another block wrote", cell.place);
    if (kind == Access::READ) {
      cell.read = true;
      cell.read_team = team;
      cell.reader = static_cast<uint16_t>(self->id);
      cell.read_epoch = clock[self->id];
      continue;
    }
    if (cell.read && !(cell.read_team == team ? cell.read_epoch <= clock[cell.reader]
                                              : cell.read_team < first_team || ordered(cell.read_team)))
      race(here, kind, place, cell.reader, cell.read_team == team ? "read" : "of another block read", 0);
    cell = Cell{clock[self->id], static_cast<uint32_t>(place), team, 0, 0, static_cast<uint16_t>(self->id), 0, FULL,
                kind == Access::ATOMIC, false};
  }
}
}  // namespace

void access(uintptr_t address, size_t bytes, Access kind, uintptr_t place) {
  if (address - reinterpret_cast<uintptr_t>(self->block->arena) < MOST_SHARED)
    return shared_access(*self->block, address, bytes, kind, place);
  if (address - reinterpret_cast<uintptr_t>(self->stack) < STACK_BYTES) return;
  if (Region *region = buffer_of(address)) {
    if (address + bytes > region->start + region->bytes) address = region->start + region->bytes;
    else return global_access(*region, address, bytes, kind, place);
  }
  if (Block *block = block_of(address)) {
    if (!block->live)
      fault("race", "thread %d %s %s %s of a block that has returned", self->id, verb(kind), where(address).c_str(),
            at(place).c_str());
    block->read_by_others = true;
    return shared_access(*block, address, bytes, kind, place);
  }
  if (kind == Access::READ && in_kernel(address)) return;  // a table of constants
  fault("out of bounds", "thread %d %s %s %s", self->id, verb(kind), where(address).c_str(), at(place).c_str());
}

std::string where(uintptr_t address) {
  for (const Block &block : blocks) {
    size_t offset = address - reinterpret_cast<uintptr_t>(block.arena);
    if (offset >= MOST_SHARED) continue;
    if (const Array *array = array_of(offset)) {
      const Region *part = array->key == DYNAMIC ? part_of(offset) : nullptr;
      const Region &region = part ? *part : array->region;
      return element(region, offset - region.start);
    }
    const Region *nearest = nullptr;
    for (const Array &array : arrays)
      if (array.region.start < offset && (!nearest || array.region.start > nearest->start)) nearest = &array.region;
    return nearest ? beside(*nearest, nearest->start, offset) : "shared memory that nobody declared";
  }
  if (const Region *region = buffer_of(address)) return element(*region, address - region->start);
  for (const Region &region : buffers)
    if (address + BESIDE > region.start && address < region.start + region.bytes + BESIDE)
      return beside(region, region.start, address);
  return "an address in no buffer";
}

// --- asynchronous copies ---------------------------------------------------------------------------------------

void issue_copy(const Copy &copy, uintptr_t place) {
  auto target = reinterpret_cast<uintptr_t>(copy.target), source = reinterpret_cast<uintptr_t>(copy.source);
  if (copy.given) access(source, copy.given, Access::READ, place);
  Block *block = block_of(target);
  if (!block) fault("out of bounds", "thread %d copies into %s %s", self->id, where(target).c_str(), at(place).c_str());
  shared_access(*block, target, copy.bytes, Access::WRITE, place);
  size_t offset = target - reinterpret_cast<uintptr_t>(block->arena);
  for (size_t i = offset >> shift; i <= (offset + copy.bytes - 1) >> shift; i++) block->cells[i].state = ARRIVING;
}

void land_copy(const Copy &copy, int writer, uint32_t epoch, uintptr_t place) {
  auto target = reinterpret_cast<uintptr_t>(copy.target);
  Block *block = block_of(target);
  std::memcpy(copy.target, copy.source, copy.given);
  std::memset(static_cast<char *>(copy.target) + copy.given, 0, copy.bytes - copy.given);
  size_t offset = target - reinterpret_cast<uintptr_t>(block->arena);
  for (size_t i = offset >> shift; i <= (offset + copy.bytes - 1) >> shift; i++) {
    Cell &cell = block->cells[i];
    cell.state = FULL;
    cell.writer = static_cast<uint16_t>(writer);
    cell.epoch = epoch;
    if (place) cell.place = static_cast<uint32_t>(place);
  }
}

void lend(const void *source, size_t bytes, uintptr_t place) {
  auto start = reinterpret_cast<uintptr_t>(source);
  Block *block = block_of(start);
  if (!block)
    fault("barrier", "a store out of %s, not out of shared memory %s", where(start).c_str(), at(place).c_str());
  size_t offset = start - reinterpret_cast<uintptr_t>(block->arena);
  for (size_t i = offset >> shift; i <= (offset + bytes - 1) >> shift; i++) {
    Cell &cell = block->cells[i];
    if (cell.writer < threads.size() && cell.epoch > threads[cell.writer].fenced)
      fault("race", "thread %d stores %s %s, which thread %d wrote %s: no fence makes that visible to the store",
            self->id, where(start).c_str(), at(place).c_str(), cell.writer, at(cell.place).c_str());
    cell.lent = true;
    cell.reader = static_cast<uint16_t>(self->id);
  }
}

void give_back(const Copy &store) {
  std::memcpy(store.target, store.source, store.bytes);
  Block *block = block_of(reinterpret_cast<uintptr_t>(store.source));
  size_t offset = reinterpret_cast<uintptr_t>(store.source) - reinterpret_cast<uintptr_t>(block->arena);
  for (size_t i = offset >> shift; i <= (offset + store.bytes - 1) >> shift; i++) block->cells[i].lent = false;
}

// --- mbarriers in shared memory ----------------------------------------------------------------------------------

void make_barrier_cells(void *address, uintptr_t place) {
  auto start = reinterpret_cast<uintptr_t>(address);
  if (start % 8)
    fault("misaligned", "the mbarrier %s is not aligned to 8 bytes %s", where(start).c_str(), at(place).c_str());
  access(start, 8, Access::WRITE, place);
  Block *block = block_of(start);
  if (!block) fault("barrier", "an mbarrier in %s, not in shared memory %s", where(start).c_str(), at(place).c_str());
  size_t offset = start - reinterpret_cast<uintptr_t>(block->arena);
  for (size_t i = offset >> shift; i < (offset + 8) >> shift; i++) block->cells[i].state = BARRIER;
}

void see_barrier_cells(const void *address, uintptr_t place) {
  auto start = reinterpret_cast<uintptr_t>(address);
  Block *block = block_of(start);
  Cell *cell = block ? &block->cells[(start - reinterpret_cast<uintptr_t>(block->arena)) >> shift] : nullptr;
  if (!cell || cell->state != BARRIER)
    fault("barrier", "thread %d uses %s as an mbarrier %s, which nobody made one", self->id, where(start).c_str(),
          at(place).c_str());
  if (cell->epoch > self->clock[cell->writer])
    race(start, Access::READ, place, cell->writer, "made an mbarrier", cell->place);
}

// --- shared memory ------------------------------------------------------------------------------------------------

void allocate_shared() {
  static std::vector<std::pair<void *, size_t>> mapped;
  for (auto [start, bytes] : mapped) munmap(start, bytes);
  mapped.clear();
  arrays.clear();
  parts.clear();
  arena_bytes = 0;
  auto map = [](size_t bytes) {
    void *made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mapped.emplace_back(made, bytes);
    return made;
  };
  size_t most = size_t(launch->block.x) * launch->block.y * launch->block.z * blocks.size() + MOST_MBARRIERS;
  size_t cells = MOST_SHARED >> shift;
  for (Block &block : blocks) {
    block.arena = static_cast<char *>(map(MOST_SHARED));
    block.cells = static_cast<Cell *>(map(cells * sizeof(Cell)));
    block.reads = static_cast<uint32_t *>(map(cells * most * sizeof(uint32_t)));
  }
}

void give_up_shared(Block &block) {
  if (!block.read_by_others) return;
  Clock all(agents, 0);
  for (const Thread &thread : threads)
    if (thread.block == &block) take(all.data(), Clock(thread.clock, thread.clock + agents));
  for (size_t i = 0; i < arena_bytes >> shift; i++)
    for (int j = 0; j < agents; j++)
      if (block.cells[i].read && block.reads[i * agents + j] > all[j])
        fault("race", "a block returns, and nothing orders that behind thread %d of another, which read %s", j,
              where(reinterpret_cast<uintptr_t>(block.arena) + (i << shift)).c_str());
}

static void empty(const Region &region) {
  for (Block &block : blocks) {
    std::memset(block.arena + region.start, 0xff, region.bytes);  // NaN in every floating type
    for (size_t i = region.start >> shift; i < (region.start + region.bytes) >> shift; i++) {
      block.cells[i] = Cell{};
      block.cells[i].state = EMPTY;
    }
  }
}

void clear_shared() {
  for (const Array &array : arrays) empty(array.region);
}

void *shared_array(int key, const char *name, size_t bytes, size_t element, size_t align) {
  for (const Array &array : arrays)
    if (array.key == key) return self->block->arena + array.region.start;
  // Aligned as declared and no better: an odd multiple of the alignment.
  size_t start = (arena_bytes + GAP + 2 * align - 1) / (2 * align) * (2 * align) + align;
  if (start + bytes + GAP > MOST_SHARED)
    fault("out of bounds", "%s takes shared memory to %zu bytes, more than any device has", name, start + bytes);
  arena_bytes = start + bytes;
  arrays.push_back({key, {name, start, bytes, element, true, {}}});
  empty(arrays.back().region);
  return self->block->arena + start;
}

void *dynamic_shared(const char *name, size_t element, size_t align) {
  if (launch->smem_bytes == 0)
    fault("out of bounds", "%s is dynamic shared memory, and the launch gives none", name);
  return shared_array(DYNAMIC, name, launch->smem_bytes, element, align < 16 ? 16 : align);
}

void name_part(const char *name, const void *start, size_t element) {
  auto offset = static_cast<size_t>(static_cast<const char *>(start) - self->block->arena);
  for (const Region &part : parts)
    if (part.start == offset) return;
  parts.push_back({name, offset, 0, element, true, {}});
}

}  // namespace emu
