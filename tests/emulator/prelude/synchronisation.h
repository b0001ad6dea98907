// Barriers of some warps or a cluster, fences, and register budgets, which mean nothing here.
#pragma once

__forceinline__ void named_barrier(int number, int threads) { emu::named_barrier(number, threads, true); }
__forceinline__ void cluster_sync() { emu::cluster_barrier(); }
__forceinline__ void fence_async_proxy() { emu::async_fence(); }
__forceinline__ void fence_block() {}
__forceinline__ void fence_cluster() {}
__forceinline__ void fence_device() { emu::device_fence(); }
template <int COUNT> __forceinline__ void set_max_registers_down() {}
template <int COUNT> __forceinline__ void set_max_registers_up() {}
