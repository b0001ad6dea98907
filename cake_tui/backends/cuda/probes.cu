// What the check asks of memory on the device: equality, guards, hashes, distance from a reference; and the clock.
// Every kernel takes any grid of one-dimensional blocks. Results are added to, so the host clears them first.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

static __device__ __forceinline__ u64 first_thread() { return blockIdx.x * (u64)blockDim.x + threadIdx.x; }
static __device__ __forceinline__ u64 all_threads() { return gridDim.x * (u64)blockDim.x; }

static __device__ __forceinline__ u64 mixed(u64 x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// out[0] += bytes that differ, out[1] = least index of one, out[2] = greatest + 1.
extern "C" __global__ void differing(const u8 *one, const u8 *other, u64 size, u64 *out) {
  u64 count = 0, least = ~0ull, most = 0;
  const bool wide = (((u64)one | (u64)other) & 15) == 0;
  const u64 vectors = wide ? size / 16 : 0;
  for (u64 i = first_thread(); i < vectors; i += all_threads()) {
    const uint4 x = ((const uint4 *)one)[i], y = ((const uint4 *)other)[i];
    if (x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w) continue;
    for (int b = 0; b < 16; ++b)
      if (one[16 * i + b] != other[16 * i + b]) {
        ++count;
        least = min(least, 16 * i + b);
        most = max(most, 16 * i + b + 1);
      }
  }
  for (u64 i = 16 * vectors + first_thread(); i < size; i += all_threads())
    if (one[i] != other[i]) {
      ++count;
      least = min(least, i);
      most = max(most, i + 1);
    }
  if (count) {
    atomicAdd(&out[0], count);
    atomicMin(&out[1], least);
    atomicMax(&out[2], most);
  }
}

// The same against a repeated 4-byte word; `one` is 4-byte aligned to the word's phase.
extern "C" __global__ void unlike_word(const u8 *one, u32 word, u64 size, u64 *out) {
  u64 count = 0, least = ~0ull, most = 0;
  for (u64 i = first_thread(); i < size; i += all_threads())
    if (one[i] != (u8)(word >> 8 * (i & 3))) {
      ++count;
      least = min(least, i);
      most = max(most, i + 1);
    }
  if (count) {
    atomicAdd(&out[0], count);
    atomicMin(&out[1], least);
    atomicMax(&out[2], most);
  }
}

// out[0], out[1] += two sums over the bytes, each byte mixed with its place.
extern "C" __global__ void hashed(const u8 *data, u64 size, u64 *out) {
  u64 first = 0, second = 0;
  const u64 words = ((u64)data & 3) == 0 ? size / 4 : 0;
  for (u64 i = first_thread(); i < words; i += all_threads()) {
    const u64 x = mixed(((const u32 *)data)[i] + (i << 32));
    first += x;
    second += mixed(x);
  }
  for (u64 i = 4 * words + first_thread(); i < size; i += all_threads()) {
    const u64 x = mixed(data[i] + (i << 8) + 0x9e3779b97f4a7c15ull);
    first += x;
    second += mixed(x);
  }
  for (int step = 16; step; step >>= 1) {
    first += __shfl_xor_sync(~0u, first, step);
    second += __shfl_xor_sync(~0u, second, step);
  }
  if ((threadIdx.x & 31) == 0) {
    atomicAdd(&out[0], first);
    atomicAdd(&out[1], second);
  }
}

// out[0] += elements that hold `first` in all their words in one and `second` in other (0: the same), out[1] = least.
extern "C" __global__ void left_over(const u32 *one, const u32 *other, u64 elements, int words, u32 first, u32 second,
                                     u64 *out) {
  u64 count = 0, least = ~0ull;
  for (u64 i = first_thread(); i < elements; i += all_threads()) {
    bool left = true;
    for (int w = 0; w < words; ++w) left = left && one[i * words + w] == first && (!other || other[i * words + w] == second);
    if (left) {
      ++count;
      least = min(least, i);
    }
  }
  if (count) {
    atomicAdd(&out[0], count);
    atomicMin(&out[1], least);
  }
}

enum { F32, F64, F16, BF16, I32, U8 };

static __device__ __forceinline__ double element(const void *data, u64 i, int dtype) {
  if (dtype == F32) return ((const float *)data)[i];
  if (dtype == F64) return ((const double *)data)[i];
  if (dtype == I32) return ((const int *)data)[i];
  if (dtype == U8) return ((const u8 *)data)[i];
  const unsigned short bits = ((const unsigned short *)data)[i];
  if (dtype == BF16) return __uint_as_float((u32)bits << 16);
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
  return wide;
}

static __device__ __forceinline__ double distance_to_next(double x) {  // of an fp32 number of this size
  const float single = fabsf((float)x);
  if (single == 0.0f) return 1.401298464324817e-45;
  if (isinf(single) || isnan(single)) return __longlong_as_double(0x7ff8000000000000ll);
  return (double)__uint_as_float(__float_as_uint(single) + 1) - (double)single;
}

enum { RANDOM, BITS, ROUNDED };

// out: bad, NaNs, least bad index, then doubles as bits: largest error, unit, share, absolute share, units' share,
// |value|. NaN counts as infinite. `row_of` (0: none) maps rows of value and scale to rows of found.
extern "C" __global__ void compared(const void *found, int dtype, const double *value, const double *scale, u64 elements,
                                    u64 row_elements, const long long *row_of, int rule, double tolerance_abs,
                                    double tolerance_units, double subnormal, double ulps, double units_too, u64 *out) {
  const double u = 5.9604644775390625e-08, inf = __longlong_as_double(0x7ff0000000000000ll);
  u64 bad = 0, nans = 0, least = ~0ull;
  double most[6] = {0, 0, 0, 0, 0, 0};
  for (u64 i = first_thread(); i < elements; i += all_threads()) {
    const u64 at = row_of ? (u64)row_of[i / row_elements] * row_elements + i % row_elements : i;
    const double x = element(found, at, dtype), y = value[i], s = scale[i];
    const bool alike = x == y || (isnan(x) && isnan(y));
    double error = alike ? 0.0 : fabs(x - y);
    double absolute = 0.0, units = 0.0, share = 0.0, unit = 0.0;
    if (!alike) {
      unit = error / fmax(u * s, 1e-300);
      if (rule == RANDOM) {
        absolute = error / tolerance_abs;
        units = error / (tolerance_units * u * s + subnormal);
        share = isnan(absolute) || isnan(units) ? inf : fmax(absolute, units);
      } else {
        share = rule == BITS ? inf : error / (ulps * distance_to_next(y) + units_too * u * s);
        absolute = units = share;
      }
    }
    if (!(share <= 1.0)) {
      ++bad;
      least = min(least, at);
    }
    if (isnan(x) && !isnan(y)) ++nans;
    const double seen[6] = {error, unit, share, absolute, units, fabs(y)};
    for (int n = 0; n < 6; ++n) most[n] = fmax(most[n], isnan(seen[n]) ? (n == 5 ? 0.0 : inf) : seen[n]);
  }
  for (int step = 16; step; step >>= 1)
    for (int n = 0; n < 6; ++n) most[n] = fmax(most[n], __shfl_xor_sync(~0u, most[n], step));
  if (bad) {
    atomicAdd(&out[0], bad);
    atomicMin(&out[2], least);
  }
  if (nans) atomicAdd(&out[1], nans);
  if ((threadIdx.x & 31) == 0)  // doubles that are not negative sort like their bits
    for (int n = 0; n < 6; ++n)
      if (most[n] > 0.0) atomicMax(&out[3 + n], (u64)__double_as_longlong(most[n]));
}

enum { MULTIPROCESSORS = 256 };  // room for so many at each stamp

// Cycles and nanoseconds of the multiprocessor that a block lands on, at out[2 * number]; 0 where none landed. The
// stamp's number goes to memory of the host, so that it is known how far the device came before an error.
extern "C" __global__ void stamped(u64 *out, volatile u32 *progress, u32 number) {
  u32 sm;
  u64 ns;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const u64 cycles = clock64();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  if (sm < MULTIPROCESSORS) {
    out[2 * sm] = cycles;
    out[2 * sm + 1] = ns;
  }
  if (first_thread() == 0) {
    *progress = number;
    __threadfence_system();
  }
}

// How much of the heap that kernels allocate from is free, in pieces: whoever forgets to free leaves less.
extern "C" __global__ void heap_pieces(u64 piece, u64 *out) {
  void *last = 0;
  u64 count = 0;
  while (void *one = malloc(piece)) {
    *(void **)one = last;
    last = one;
    ++count;
  }
  while (last) {
    void *before = *(void **)last;
    free(last);
    last = before;
  }
  out[0] = count;
}

// --- peak rates ---------------------------------------------------------------------------------------------

extern "C" __global__ void copied(const uint4 *from, uint4 *to, u64 vectors) {
  const u64 step = all_threads();
  u64 i = first_thread();
  for (; i + 3 * step < vectors; i += 4 * step) {
    const uint4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
    to[i] = a;
    to[i + step] = b;
    to[i + 2 * step] = c;
    to[i + 3 * step] = d;
  }
  for (; i < vectors; i += step) to[i] = from[i];
}

// 16 chains of 16 multiply-adds a round: 512 operations a thread and round.
extern "C" __global__ void multiplied(float *out, float x, float y, int rounds) {
  float chain[16];
  for (int c = 0; c < 16; ++c) chain[c] = threadIdx.x + c;
  for (int r = 0; r < rounds; ++r)
#pragma unroll
    for (int k = 0; k < 16; ++k)
#pragma unroll
      for (int c = 0; c < 16; ++c) chain[c] = fmaf(chain[c], x, y);
  float sum = 0;
  for (int c = 0; c < 16; ++c) sum += chain[c];
  if (sum == 12345.678f) out[threadIdx.x] = sum;
}
