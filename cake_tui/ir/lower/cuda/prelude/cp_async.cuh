// Copies from global to shared memory that pass the registers by.

template <int BYTES>
__device__ __forceinline__ void cp_async(void *shared, const void *global) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(BYTES) : "memory");
}

// The first `bytes` of BYTES are copied, the others become zero; with none the source is not touched.
template <int BYTES>
__device__ __forceinline__ void cp_async_part(void *shared, const void *global, int bytes) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(BYTES), "r"(bytes)
                 : "memory");
}

template <int BYTES>
__device__ __forceinline__ void cp_async_or_zero(void *shared, const void *global, bool inside) {
  cp_async_part<BYTES>(shared, global, inside ? BYTES : 0);
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until at most PENDING of this thread's groups are unfinished.
template <int PENDING>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// The barrier's phase cannot end before this thread's copies so far have landed; counts as no arrival.
__device__ __forceinline__ void cp_async_arrive(mbarrier *barrier) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(at) : "memory");
}
