// Boxes of a tensor moved by the copy engine; coordinates count elements, the innermost axis first.

struct __align__(64) tensor_map : emu::TensorMap {};

__device__ __forceinline__ void tma_load(void *shared, const tensor_map *map, mbarrier *barrier, int c0) {
  emu::tma_load(shared, map, barrier, {c0, 0, 0}, 1);
}

__device__ __forceinline__ void tma_load(void *shared, const tensor_map *map, mbarrier *barrier, int c0, int c1) {
  emu::tma_load(shared, map, barrier, {c0, c1, 0}, 2);
}

__device__ __forceinline__ void tma_load(void *shared, const tensor_map *map, mbarrier *barrier, int c0, int c1, int c2) {
  emu::tma_load(shared, map, barrier, {c0, c1, c2}, 3);
}

__device__ __forceinline__ void tma_store(const tensor_map *map, const void *shared, int c0) {
  emu::tma_store(map, shared, {c0, 0, 0}, 1);
}

__device__ __forceinline__ void tma_store(const tensor_map *map, const void *shared, int c0, int c1) {
  emu::tma_store(map, shared, {c0, c1, 0}, 2);
}

__device__ __forceinline__ void tma_store(const tensor_map *map, const void *shared, int c0, int c1, int c2) {
  emu::tma_store(map, shared, {c0, c1, c2}, 3);
}

__device__ __forceinline__ void tma_commit() { emu::commit_stores(); }

template <int PENDING>
__device__ __forceinline__ void tma_wait() {
  emu::wait_stores(PENDING);
}

__device__ __forceinline__ void fence_async_proxy() { emu::async_fence(); }
