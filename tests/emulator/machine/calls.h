// What emulated kernels call: the names of CUDA and of the prelude are made of these.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace emu {

struct Index {
  unsigned x, y, z;
};

struct Coordinates {
  int of[3];
};

// What a kernel takes as `tensor_map`; axes innermost first, strides in bytes.
struct alignas(64) TensorMap {
  char *base;
  int rank, element, swizzle;
  long dims[5], strides[5], box[5];
};

Index thread_index() __attribute__((const));
Index block_index() __attribute__((const));
Index block_extent() __attribute__((const));
Index grid_extent() __attribute__((const));
const void *in_block(const void *shared, int rank);  // the same place in another block of the cluster

void *shared_array(int key, const char *name, size_t bytes, size_t element, size_t align);
void *dynamic_shared(const char *name, size_t element, size_t align);
// From `start` on, dynamic shared memory is called so.
void name_part(const char *name, const void *start, size_t element);

void block_barrier();
void named_barrier(int number, int expected);
void warp_barrier(unsigned mask);
void cluster_barrier();
void exchange(unsigned mask, const void *mine, void *taken, size_t bytes, int from);  // from: a lane
void atomic(void *address, size_t bytes);   // what follows reads and writes there at once

void copy_async(void *target, const void *source, size_t bytes, size_t given);
void commit_group();
void wait_group(size_t pending);
void copies_arrive(void *barrier);          // its phase lasts until this thread's copies so far have landed

void make_mbarrier(void *barrier, int count);
void publish_mbarriers();                   // to the copy engine
void arrive(void *barrier);
void expect(void *barrier, long bytes);     // and arrive
void wait(void *barrier, unsigned parity);
void async_fence();

void tma_load(void *shared, const TensorMap *map, void *barrier, Coordinates from, int rank);
void tma_store(const TensorMap *map, const void *shared, Coordinates from, int rank);
void commit_stores();
void wait_stores(size_t pending);

}  // namespace emu
