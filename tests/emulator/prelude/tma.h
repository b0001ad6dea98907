// Boxes moved by the tensor memory accelerator; coordinates innermost first.
#pragma once

typedef emu::TensorMap tensor_map;

template <class... At> __forceinline__ void tma_load(void *shared, const tensor_map *map, mbarrier *barrier, At... at) {
  int from[] = {at...};
  emu::tma_load(shared, map, barrier, from, sizeof...(at));
}
template <class... At> __forceinline__ void tma_store(const tensor_map *map, const void *shared, At... at) {
  int from[] = {at...};
  emu::tma_store(map, shared, from, sizeof...(at));
}
__forceinline__ void tma_commit() { emu::commit_stores(); }
template <int PENDING> __forceinline__ void tma_wait() { emu::wait_stores(PENDING); }
