// Numbers of 16 bits as they lie in memory, and their roundings.

struct f16 {
  unsigned short bits;
};

struct bf16 {
  unsigned short bits;
};

__device__ __forceinline__ float to_float(f16 x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
}

__device__ __forceinline__ float to_float(bf16 x) { return __int_as_float(x.bits << 16); }

__device__ __forceinline__ f16 to_f16(float x) {
  f16 narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
}

__device__ __forceinline__ bf16 to_bf16(float x) {
  bf16 narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
}

// The float with the 10 mantissa bits that the tensor cores read.
__device__ __forceinline__ float to_tf32(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __int_as_float(bits);
}
