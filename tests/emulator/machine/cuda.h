// The names of CUDA C++ for kernels that g++ compiles: qualifiers, built-in variables and types, warps, mathematics.
#pragma once

#include "calls.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define EMU_PLAIN __attribute__((no_sanitize("thread")))

// `__shared__ float x[2][3];` is rewritten to this, so that each array has its own place and name.
#define EMU_SHARED(TYPE, NAME, EXTENTS, ALIGN)                                                         \
  typedef TYPE NAME##_array EXTENTS;                                                                   \
  NAME##_array &NAME = *static_cast<NAME##_array *>(                                                   \
      emu::shared_array(__COUNTER__, #NAME, sizeof(NAME##_array), sizeof(TYPE), (ALIGN) ? (ALIGN) : alignof(TYPE)))
#define EMU_DYNAMIC(TYPE, NAME, ALIGN) \
  TYPE *const NAME = static_cast<TYPE *>(emu::dynamic_shared(#NAME, sizeof(TYPE), ALIGN))

#define threadIdx (emu::thread_index())
#define blockIdx (emu::block_index())
#define blockDim (emu::block_extent())
#define gridDim (emu::grid_extent())
constexpr int warpSize = 32;

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(4) uchar4 { unsigned char x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

#define __syncthreads() emu::block_barrier()
inline void __syncwarp(unsigned mask = ~0u) { emu::warp_barrier(mask); }
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)
#define __trap() __builtin_trap()

template <class T> __forceinline__ T emu_shuffle(unsigned mask, T value, int from) {
  T taken;
  emu::exchange(mask, &value, &taken, sizeof value, from);
  return taken;
}
__forceinline__ int emu_lane() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}
template <class T> __forceinline__ T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  return emu_shuffle(mask, value, emu_lane() / width * width + from % width);
}
template <class T> __forceinline__ T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  int lane = emu_lane(), from = lane ^ bits;
  return emu_shuffle(mask, value, from / width > lane / width ? lane : from);
}
template <class T> __forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  int lane = emu_lane(), from = lane + static_cast<int>(by);
  return emu_shuffle(mask, value, from / width == lane / width ? from : lane);
}
template <class T> __forceinline__ T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  int lane = emu_lane(), from = lane - static_cast<int>(by);
  return emu_shuffle(mask, value, from >= lane / width * width ? from : lane);
}

template <class T> EMU_PLAIN inline T atomicAdd(T *address, T value) {
  emu::atomic(address, sizeof(T));
  T before = *address;
  *address = before + value;
  return before;
}
template <class T> EMU_PLAIN inline T atomicMax(T *address, T value) {
  emu::atomic(address, sizeof(T));
  T before = *address;
  *address = before > value ? before : value;
  return before;
}
template <class T> EMU_PLAIN inline T atomicMin(T *address, T value) {
  emu::atomic(address, sizeof(T));
  T before = *address;
  *address = before < value ? before : value;
  return before;
}
template <class T> EMU_PLAIN inline T atomicCAS(T *address, T compared, T value) {
  emu::atomic(address, sizeof(T));
  T before = *address;
  if (before == compared) *address = value;
  return before;
}

template <class T> __forceinline__ T __ldg(const T *address) { return *address; }
template <class T> __forceinline__ T __ldcg(const T *address) { return *address; }
template <class T> __forceinline__ T __ldcs(const T *address) { return *address; }
template <class T> __forceinline__ void __stcs(T *address, T value) { *address = value; }

template <class T> constexpr T min(T x, T y) { return y < x ? y : x; }
template <class T> constexpr T max(T x, T y) { return x < y ? y : x; }

#define EMU_FUNCTION(NAME) \
  __forceinline__ float NAME##f(float x) { return __builtin_##NAME##f(x); } \
  __forceinline__ double NAME(double x) { return __builtin_##NAME(x); }
EMU_FUNCTION(exp) EMU_FUNCTION(exp2) EMU_FUNCTION(log) EMU_FUNCTION(log2) EMU_FUNCTION(tanh)
EMU_FUNCTION(erf) EMU_FUNCTION(erfc) EMU_FUNCTION(sin) EMU_FUNCTION(cos) EMU_FUNCTION(sqrt)
EMU_FUNCTION(fabs) EMU_FUNCTION(floor) EMU_FUNCTION(ceil) EMU_FUNCTION(rint)
__forceinline__ float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
__forceinline__ double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
__forceinline__ float powf(float x, float y) { return __builtin_powf(x, y); }
__forceinline__ double pow(double x, double y) { return __builtin_pow(x, y); }
__forceinline__ float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__forceinline__ double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
__forceinline__ float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
__forceinline__ float fminf(float x, float y) { return __builtin_fminf(x, y); }
__forceinline__ double fmax(double x, double y) { return __builtin_fmax(x, y); }
__forceinline__ double fmin(double x, double y) { return __builtin_fmin(x, y); }

template <class To, class From> __forceinline__ To emu_bits(From value) { return __builtin_bit_cast(To, value); }
__forceinline__ float __int_as_float(int bits) { return emu_bits<float>(bits); }
__forceinline__ float __uint_as_float(unsigned bits) { return emu_bits<float>(bits); }
__forceinline__ int __float_as_int(float value) { return emu_bits<int>(value); }
__forceinline__ unsigned __float_as_uint(float value) { return emu_bits<unsigned>(value); }
__forceinline__ double __longlong_as_double(long long bits) { return emu_bits<double>(bits); }
__forceinline__ long long __double_as_longlong(double value) { return emu_bits<long long>(value); }

namespace emu {
template <size_t... I> struct Places {};
// Volatile, so that no kernel is compiled into these, where accesses go unseen.
template <class... A, size_t... I>
EMU_PLAIN void call_with(void (*volatile kernel)(A...), void **given, Places<I...>) {
  kernel(*static_cast<A *>(given[I])...);
}
template <class... A> EMU_PLAIN void call(void (*kernel)(A...), void **given) {
  call_with(kernel, given, Places<__integer_pack(sizeof...(A))...>{});
}
}  // namespace emu
