// Where element `index` of a tile in shared memory lies when chunks of 16 bytes are permuted within BYTES.
template <int BYTES, int SIZE>
__device__ __forceinline__ constexpr int swizzled(int index) {
  const int chunk = index * SIZE / 16;
  return index ^ (((chunk / 8) & (BYTES / 16 - 1)) * (16 / SIZE));
}
