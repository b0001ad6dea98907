// Barriers of some warps or of a cluster, fences, and register budgets, which mean nothing here.

__device__ __forceinline__ void named_barrier(int number, int threads) { emu::named_barrier(number, threads); }

__device__ __forceinline__ void cluster_sync() { emu::cluster_barrier(); }

__device__ __forceinline__ float cluster_read(const float *shared, int rank) {
  return *static_cast<const float *>(emu::in_block(shared, rank));
}

__device__ __forceinline__ void fence_block() {}

__device__ __forceinline__ void fence_cluster() {}

__device__ __forceinline__ void fence_device() {}

template <int REGISTERS>
__device__ __forceinline__ void set_max_registers_down() {}

template <int REGISTERS>
__device__ __forceinline__ void set_max_registers_up() {}
