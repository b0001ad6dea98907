// Roundings to 16 bits and to the 10 mantissa bits of tf32.

__device__ __forceinline__ float to_float(f16 x) { return static_cast<float>(__builtin_bit_cast(_Float16, x.bits)); }

__device__ __forceinline__ f16 to_f16(float x) {
  return {__builtin_bit_cast(unsigned short, static_cast<_Float16>(x))};
}

// To nearest, ties to even; the top 16 bits of a float are a bf16.
__device__ __forceinline__ bf16 to_bf16(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return {0x7fff};
  return {static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// To nearest, ties away from zero.
__device__ __forceinline__ float to_tf32(float x) {
  return x != x ? x : __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu);
}
