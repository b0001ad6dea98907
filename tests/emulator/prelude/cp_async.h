// cp.async: 4, 8 or 16 bytes from global to shared memory, in groups.
#pragma once

template <int BYTES> __forceinline__ void cp_async(void *shared, const void *global) {
  emu::copy_async(shared, global, BYTES, BYTES);
}
template <int BYTES> __forceinline__ void cp_async_part(void *shared, const void *global, int bytes) {
  emu::copy_async(shared, global, BYTES, static_cast<size_t>(bytes < 0 ? 0 : bytes > BYTES ? BYTES : bytes));
}
__forceinline__ void cp_async_commit() { emu::commit_group(); }
template <int PENDING> __forceinline__ void cp_async_wait() { emu::wait_group(PENDING); }
