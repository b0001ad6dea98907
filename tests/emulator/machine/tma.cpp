// Boxes that the tensor memory accelerator moves: out of a buffer by its tensor map, swizzled, zeros outside; and back.
#include <algorithm>

#include "machine.h"

namespace emu {

namespace {
constexpr long CHUNK = 16;  // bytes that a swizzle moves together

// Bytes from the start of the box's place in shared memory: chunks are exchanged within rows of `swizzle` bytes.
long swizzled(long offset, int swizzle) {
  if (!swizzle) return offset;
  long rows = swizzle / CHUNK;
  return offset ^ (offset / 128 % rows * CHUNK);
}

struct Piece {
  char *outside;  // global memory
  long offset;    // in the box
  long bytes, inside;
};

std::vector<Piece> pieces_of(const TensorMap &map, const Coordinates &from) {
  std::vector<Piece> made;
  long rows = 1, step = std::min<long>(CHUNK / map.element, map.box[0]);
  for (int axis = 1; axis < map.rank; axis++) rows *= map.box[axis];
  for (long row = 0; row < rows; row++) {
    long rest = row, place = 0;
    bool inside = true;
    for (int axis = 1; axis < map.rank; axis++) {
      long at = from.of[axis] + rest % map.box[axis];
      inside = inside && at >= 0 && at < map.dims[axis];
      place += at * map.strides[axis];
      rest /= map.box[axis];
    }
    for (long first = 0; first < map.box[0]; first += step) {
      long at = from.of[0] + first, left = std::clamp<long>(map.dims[0] - at, 0, step);
      if (at < 0 && at + step > 0) fault("out of bounds", "a box that starts %ld elements before its row", -at);
      made.push_back({map.base + place + at * map.element, (row * map.box[0] + first) * map.element,
                      step * map.element, inside && at >= 0 ? left * map.element : 0});
    }
  }
  return made;
}

void check(const TensorMap &map, const void *shared, int rank, uintptr_t place) {
  auto start = reinterpret_cast<uintptr_t>(shared);
  size_t needed = map.swizzle == 0 ? 128 : map.swizzle * 8;
  if (rank != map.rank)
    fault("launch", "%d coordinates for a tensor map of %d axes %s", rank, map.rank, at(place).c_str());
  if (start % needed)
    fault("misaligned", "a box at %s, which is not aligned to %zu bytes %s", where(start).c_str(), needed,
          at(place).c_str());
}
}  // namespace

void tma_load(void *shared, const TensorMap *map, void *address, Coordinates from, int rank) {
  check(*map, shared, rank, HERE);
  Mbarrier &barrier = barrier_at(address, HERE);
  if (!barrier.published)
    fault("barrier", "a box completes on %s %s: no fence shows that mbarrier to the copy engine",
          barrier.name.c_str(), at(HERE).c_str());
  Flight flight{&barrier, {}, 0, barrier.phase, {}};
  for (const Piece &piece : pieces_of(*map, from)) {
    char *target = static_cast<char *>(shared) + swizzled(piece.offset, map->swizzle);
    Copy copy{target, piece.outside, static_cast<size_t>(piece.bytes), static_cast<size_t>(piece.inside)};
    issue_copy(copy, HERE);
    flight.copies.push_back(copy);
    flight.bytes += piece.bytes;
  }
  flights.push_back(std::move(flight));
  yield();
}

void tma_store(const TensorMap *map, const void *shared, Coordinates from, int rank) {
  check(*map, shared, rank, HERE);
  for (const Piece &piece : pieces_of(*map, from)) {
    if (!piece.inside) continue;
    const char *source = static_cast<const char *>(shared) + swizzled(piece.offset, map->swizzle);
    auto bytes = static_cast<size_t>(piece.inside);
    access(reinterpret_cast<uintptr_t>(source), bytes, Access::READ, HERE);
    access(reinterpret_cast<uintptr_t>(piece.outside), bytes, Access::WRITE, HERE);
    lend(source, bytes, HERE);
    self->stores_open.push_back({piece.outside, source, bytes, bytes});
  }
}

void commit_stores() {
  self->stores.push_back(std::move(self->stores_open));
  self->stores_open.clear();
}

void wait_stores(size_t pending) {
  while (self->stores.size() > pending) {
    for (const Copy &copy : self->stores.front()) give_back(copy);
    self->stores.pop_front();
  }
  yield();
}

}  // namespace emu
