// Boxes of a tensor moved by the copy engine; coordinates count elements, the innermost axis first.

struct __align__(64) tensor_map {
  unsigned long long words[16];
};

__device__ __forceinline__ void tma_load(void *shared, const tensor_map *map, mbarrier *barrier, int c0) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];"
               ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "l"(map),
               "r"(static_cast<unsigned>(__cvta_generic_to_shared(barrier))), "r"(c0) : "memory");
}

__device__ __forceinline__ void tma_load(void *shared, const tensor_map *map, mbarrier *barrier, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "l"(map),
               "r"(static_cast<unsigned>(__cvta_generic_to_shared(barrier))), "r"(c0), "r"(c1) : "memory");
}

__device__ __forceinline__ void tma_load(void *shared, const tensor_map *map, mbarrier *barrier, int c0, int c1,
                                         int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
               "[%1, {%3, %4, %5}], [%2];"
               ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "l"(map),
               "r"(static_cast<unsigned>(__cvta_generic_to_shared(barrier))), "r"(c0), "r"(c1), "r"(c2) : "memory");
}

__device__ __forceinline__ void tma_store(const tensor_map *map, const void *shared, int c0) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%2}], [%1];"
               ::"l"(map), "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "r"(c0) : "memory");
}

__device__ __forceinline__ void tma_store(const tensor_map *map, const void *shared, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
               ::"l"(map), "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "r"(c0), "r"(c1) : "memory");
}

__device__ __forceinline__ void tma_store(const tensor_map *map, const void *shared, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];"
               ::"l"(map), "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}

__device__ __forceinline__ void tma_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until at most PENDING of this thread's groups of stores are unfinished.
template <int PENDING>
__device__ __forceinline__ void tma_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Orders what threads wrote to shared memory before what the copy engine and wgmma do next.
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async;" ::: "memory"); }
