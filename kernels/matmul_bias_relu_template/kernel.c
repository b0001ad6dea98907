/* y = relu(a · b + bias), all row-major fp32.
 *
 * One task computes a BM × BN block of y. It walks over k in steps of BK: it packs a slice of a and a slice
 * of b into dense panels, padded with zeros at the edges, and lets a micro-kernel keep MR × NV vectors of VL
 * floats in registers while it runs down the panels.
 *
 * Each knob of kernel.toml arrives as a macro; the defaults below let an editor or a compiler read this file
 * by itself. SIZES stands for ", int M, int N, int K" in the build with run-time sizes and for nothing in the
 * full build, where M, N and K are macros too.
 */
#include <string.h>

#ifndef BM
#define BM 96 /* rows of y in a task; a multiple of MR */
#endif
#ifndef BN
#define BN 256 /* columns of y in a task; a multiple of NV · VL */
#endif
#ifndef BK
#define BK 256 /* steps of k between two packings */
#endif
#ifndef MR
#define MR 8 /* rows of the register block */
#endif
#ifndef NV
#define NV 2 /* vectors of the register block */
#endif
#ifndef VL
#define VL 16 /* floats of a vector; wider than the machine's registers works too, as several of them */
#endif
#ifndef SIZES
#define SIZES , int M, int N, int K
#endif

#define NR (NV * VL)

typedef float vec __attribute__((vector_size(4 * VL), aligned(4)));

static inline int least(int x, int y) { return x < y ? x : y; }

/* a[m0.., k0..] -> panels of MR rows, k by k. */
static void pack_a(float *to, const float *from, int pitch, int rows, int depth) {
  for (int m = 0; m < rows; m += MR)
    for (int k = 0; k < depth; k++)
      for (int i = 0; i < MR; i++) *to++ = m + i < rows ? from[(size_t)(m + i) * pitch + k] : 0.0f;
}

/* b[k0.., n0..] -> panels of NR columns, k by k. */
static void pack_b(float *to, const float *from, int pitch, int depth, int columns) {
  for (int n = 0; n < columns; n += NR)
    for (int k = 0; k < depth; k++, to += NR) {
      const float *row = from + (size_t)k * pitch + n;
      if (n + NR <= columns)
        memcpy(to, row, sizeof(float) * NR);
      else
        for (int j = 0; j < NR; j++) to[j] = n + j < columns ? row[j] : 0.0f;
    }
}

/* sum[MR][NR] += panel_a · panel_b, the sums in registers meanwhile. */
static void multiply(float *sum, const float *panel_a, const float *panel_b, int depth) {
  vec acc[MR][NV];
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int j = 0; j < NV; j++) acc[i][j] = *(const vec *)(sum + i * BN + j * VL);
  for (int k = 0; k < depth; k++, panel_a += MR, panel_b += NR) {
    vec right[NV];
#pragma GCC unroll 8
    for (int j = 0; j < NV; j++) right[j] = *(const vec *)(panel_b + j * VL);
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
      for (int j = 0; j < NV; j++) acc[i][j] += panel_a[i] * right[j];
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
    for (int j = 0; j < NV; j++) *(vec *)(sum + i * BN + j * VL) = acc[i][j];
}

void kernel(const int task[3], const float *a, const float *b, const float *bias, float *y SIZES) {
  const int n0 = task[0] * BN, m0 = task[1] * BM;
  const int rows = least(BM, M - m0), columns = least(BN, N - n0);
  _Alignas(64) float sum[BM * BN], slice_a[BM * BK], slice_b[BK * BN];

  memset(sum, 0, sizeof sum);
  for (int k0 = 0; k0 < K; k0 += BK) {
    const int depth = least(BK, K - k0);
    pack_a(slice_a, a + (size_t)m0 * K + k0, K, rows, depth);
    pack_b(slice_b, b + (size_t)k0 * N + n0, N, depth, columns);
    for (int n = 0; n < columns; n += NR)
      for (int m = 0; m < rows; m += MR) multiply(sum + m * BN + n, slice_a + m * depth, slice_b + n * depth, depth);
  }
  for (int m = 0; m < rows; m++)
    for (int n = 0; n < columns; n++) {
      const float value = sum[m * BN + n] + bias[n0 + n];
      y[(size_t)(m0 + m) * N + n0 + n] = value < 0.0f ? 0.0f : value; /* NaN stays NaN */
    }
}
