// mbarriers: arrivals, expected bytes, phases by parity.
#pragma once

typedef unsigned long long mbarrier;

__forceinline__ void barrier_init(mbarrier *barrier, int arrivals) { emu::make_mbarrier(barrier, arrivals); }
__forceinline__ void barrier_init_fence() {}
__forceinline__ void barrier_arrive(mbarrier *barrier) { emu::arrive(barrier); }
__forceinline__ void barrier_expect(mbarrier *barrier, int bytes) { emu::expect(barrier, bytes); }
__forceinline__ void barrier_wait(mbarrier *barrier, unsigned parity) { emu::wait(barrier, parity); }
__forceinline__ void cp_async_arrive(mbarrier *barrier) { emu::copies_arrive(barrier, true); }
