// Copies from global to shared memory that pass the registers by.

template <int BYTES>
__device__ __forceinline__ void cp_async(void *shared, const void *global) {
  emu::copy_async(shared, global, BYTES, BYTES);
}

template <int BYTES>
__device__ __forceinline__ void cp_async_part(void *shared, const void *global, int bytes) {
  emu::copy_async(shared, global, BYTES, bytes);
}

__device__ __forceinline__ void cp_async_commit() { emu::commit_group(); }

template <int PENDING>
__device__ __forceinline__ void cp_async_wait() {
  emu::wait_group(PENDING);
}

__device__ __forceinline__ void cp_async_arrive(mbarrier *barrier) { emu::copies_arrive(barrier); }
