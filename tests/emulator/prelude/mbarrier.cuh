// Barriers in shared memory whose phases end with so many arrivals, and with the bytes that were announced.

__device__ __forceinline__ void barrier_init(mbarrier *barrier, int arrivals) { emu::make_mbarrier(barrier, arrivals); }

__device__ __forceinline__ void barrier_init_fence() { emu::publish_mbarriers(); }

__device__ __forceinline__ void barrier_arrive(mbarrier *barrier) { emu::arrive(barrier); }

__device__ __forceinline__ void barrier_expect(mbarrier *barrier, int bytes) { emu::expect(barrier, bytes); }

__device__ __forceinline__ void barrier_wait(mbarrier *barrier, unsigned parity) { emu::wait(barrier, parity); }
