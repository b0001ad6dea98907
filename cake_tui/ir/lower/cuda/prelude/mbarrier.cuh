// Barriers in shared memory whose phases end with so many arrivals, and with the bytes that were announced.

using mbarrier = unsigned long long;

__device__ __forceinline__ void barrier_init(mbarrier *barrier, int arrivals) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}

// Lets the copy engine, and other blocks of a cluster, see barriers that were just made.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(mbarrier *barrier) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(at) : "memory");
}

// One arrival; the phase also waits for so many bytes of bulk copies.
__device__ __forceinline__ void barrier_expect(mbarrier *barrier, int bytes) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}"
               ::"r"(at), "r"(bytes) : "memory");
}

// Until the phase of that parity is over; the phase before the first one has parity 1 and is.
__device__ __forceinline__ void barrier_wait(mbarrier *barrier, unsigned parity) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  unsigned over = 0;
  while (!over) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over) : "r"(at), "r"(parity) : "memory");
#else
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over) : "r"(at), "r"(parity) : "memory");
#endif
  }
}
