// Products of small matrices by a whole warp: lanes pass each other their rows, then their elements.

__device__ __forceinline__ void load_matrix_a(unsigned (&to)[4], const void *row) {
  const int lane = emu_lane();
  for (int part = 0; part < 4; ++part) {
    const void *const there = __shfl_sync(~0u, row, lane / 4 + part * 8);
    const unsigned short *const elements = static_cast<const unsigned short *>(there) + lane % 4 * 2;
    to[part] = elements[0] | static_cast<unsigned>(elements[1]) << 16;
  }
}

__device__ __forceinline__ void load_matrix_b(unsigned (&to)[2], const void *row) {
  const int lane = emu_lane();
  for (int part = 0; part < 2; ++part) {
    const void *const even = __shfl_sync(~0u, row, part * 8 + lane % 4 * 2);
    const void *const odd = __shfl_sync(~0u, row, part * 8 + lane % 4 * 2 + 1);
    const unsigned low = static_cast<const unsigned short *>(even)[lane / 4];
    to[part] = low | static_cast<unsigned>(static_cast<const unsigned short *>(odd)[lane / 4]) << 16;
  }
}

__device__ __forceinline__ void mma_bf16(float &c00, float &c01, float &c10, float &c11, const unsigned (&a)[4],
                                         const unsigned (&b)[2]) {
  const int lane = emu_lane();
  float *const sums[4] = {&c00, &c01, &c10, &c11};
  for (int k = 0; k < 16; ++k) {
    const int shift = k % 2 * 16, holder = k % 8 / 2;
    for (int sum = 0; sum < 4; ++sum) {
      const unsigned x = __shfl_sync(~0u, a[k / 8 * 2 + sum / 2], lane / 4 * 4 + holder);
      const unsigned z = __shfl_sync(~0u, b[k / 8], (lane % 4 * 2 + sum % 2) * 4 + holder);
      *sums[sum] += __uint_as_float(x >> shift << 16) * __uint_as_float(z >> shift << 16);
    }
  }
}

__device__ __forceinline__ void mma_f16(float &c00, float &c01, float &c10, float &c11, const unsigned (&a)[4], const unsigned (&b)[2]) {
  const int lane = emu_lane();
  float *const sums[4] = {&c00, &c01, &c10, &c11};
  for (int k = 0; k < 16; ++k) {
    const int shift = k % 2 * 16, holder = k % 8 / 2;
    for (int sum = 0; sum < 4; ++sum) {
      const unsigned x = __shfl_sync(~0u, a[k / 8 * 2 + sum / 2], lane / 4 * 4 + holder);
      const unsigned z = __shfl_sync(~0u, b[k / 8], (lane % 4 * 2 + sum % 2) * 4 + holder);
      *sums[sum] += static_cast<float>(__builtin_bit_cast(_Float16, static_cast<unsigned short>(x >> shift))) *
                    static_cast<float>(__builtin_bit_cast(_Float16, static_cast<unsigned short>(z >> shift)));
    }
  }
}
