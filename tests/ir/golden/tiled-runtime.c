// matmul_bias for x86-64-v4: tiled(threads_x=4, threads_y=4, thread_m=14, thread_n=2, vector=16, block_k=128)

#include <string.h>

enum {
  threads_x = 4,
  threads_y = 4,
  thread_m = 14,
  thread_n = 2,
  vector = 16,
  block_k = 128,
  tile_n = thread_n * vector,
};

static inline long ceil_div(long a, long b) { return (a + b - 1) / b; }
static inline long least(long a, long b) { return a < b ? a : b; }
typedef float f32x16 __attribute__((vector_size(64)));
typedef int i32x16 __attribute__((vector_size(64)));
static inline f32x16 load_f32x16(const float *p) {
  f32x16 v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline f32x16 load_part_f32x16(const float *p, long count) {
  float v[16];
  for (int l = 0; l < 16; l++) v[l] = l < count ? p[l] : 0;
  return load_f32x16(v);
}
static inline f32x16 relu_f32x16(f32x16 x) { return (f32x16)((i32x16)x & ~(x < 0)); }
static inline void store_f32x16(float *p, f32x16 v) { memcpy(p, &v, sizeof v); }
static inline void store_part_f32x16(float *p, f32x16 v, long count) {
  for (int l = 0; l < 16; l++)
    if (l < count) p[l] = v[l];
}

void matmul(const int task[3], const float *restrict a, const float *restrict b, const float *restrict bias,
    float *restrict y, int M, int N, int K) {
  const long bx = task[0];
  const long by = task[1];
  _Alignas(64) float sums[threads_y * thread_m * threads_x * tile_n];
  for (long kb = 0; kb < ceil_div(K, block_k); kb++) {
    for (long tx = bx * threads_x; tx < least((bx + 1) * threads_x, ceil_div(N, tile_n)); tx++) {
      for (long ty = by * threads_y; ty < least((by + 1) * threads_y, ceil_div(M, thread_m)); ty++) {
        if (ty * thread_m + thread_m <= M && tx * tile_n + tile_n <= N) {
          f32x16 acc[thread_m][thread_n] = {0};
          if (kb > 0) {
            #pragma GCC unroll 14
            for (int i = 0; i < thread_m; i++) {
              #pragma GCC unroll 2
              for (int j = 0; j < thread_n; j++) {
                acc[i][j] = load_f32x16(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                    + (tx - bx * threads_x) * tile_n + j * vector]);
              }
            }
          }
          for (long k = kb * block_k; k < least((kb + 1) * block_k, K); k++) {
            f32x16 right[thread_n];
            #pragma GCC unroll 2
            for (int j = 0; j < thread_n; j++) {
              const long n = tx * tile_n + j * vector;
              right[j] = load_f32x16(&b[k * N + n]);
            }
            #pragma GCC unroll 14
            for (int i = 0; i < thread_m; i++) {
              const long m = ty * thread_m + i;
              const float left = a[m * K + k];
              #pragma GCC unroll 2
              for (int j = 0; j < thread_n; j++)
                acc[i][j] += left * right[j];
            }
          }
          if (kb + 1 < ceil_div(K, block_k)) {
            #pragma GCC unroll 14
            for (int i = 0; i < thread_m; i++) {
              #pragma GCC unroll 2
              for (int j = 0; j < thread_n; j++) {
                store_f32x16(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                    + (tx - bx * threads_x) * tile_n + j * vector], acc[i][j]);
              }
            }
          } else {
            #pragma GCC unroll 14
            for (int i = 0; i < thread_m; i++) {
              const long m = ty * thread_m + i;
              #pragma GCC unroll 2
              for (int j = 0; j < thread_n; j++) {
                const long n = tx * tile_n + j * vector;
                store_f32x16(&y[m * N + n], relu_f32x16(acc[i][j] + load_f32x16(&bias[n])));
              }
            }
          }
        } else {
          f32x16 acc[thread_m][thread_n] = {0};
          if (kb > 0) {
            #pragma GCC unroll 14
            for (int i = 0; i < thread_m; i++) {
              #pragma GCC unroll 2
              for (int j = 0; j < thread_n; j++) {
                acc[i][j] = load_f32x16(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                    + (tx - bx * threads_x) * tile_n + j * vector]);
              }
            }
          }
          for (long k = kb * block_k; k < least((kb + 1) * block_k, K); k++) {
            f32x16 right[thread_n];
            #pragma GCC unroll 2
            for (int j = 0; j < thread_n; j++) {
              const long n = tx * tile_n + j * vector;
              right[j] = load_part_f32x16(&b[k * N + n], N - n);
            }
            #pragma GCC unroll 14
            for (int i = 0; i < thread_m; i++) {
              const long m = ty * thread_m + i;
              const float left = m < M ? a[m * K + k] : 0;
              #pragma GCC unroll 2
              for (int j = 0; j < thread_n; j++)
                acc[i][j] += left * right[j];
            }
          }
          if (kb + 1 < ceil_div(K, block_k)) {
            #pragma GCC unroll 14
            for (int i = 0; i < thread_m; i++) {
              #pragma GCC unroll 2
              for (int j = 0; j < thread_n; j++) {
                store_f32x16(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                    + (tx - bx * threads_x) * tile_n + j * vector], acc[i][j]);
              }
            }
          } else {
            #pragma GCC unroll 14
            for (int i = 0; i < thread_m; i++) {
              const long m = ty * thread_m + i;
              #pragma GCC unroll 2
              for (int j = 0; j < thread_n; j++) {
                const long n = tx * tile_n + j * vector;
                if (m < M)
                  store_part_f32x16(&y[m * N + n], relu_f32x16(acc[i][j] + load_part_f32x16(&bias[n], N - n)), N - n);
              }
            }
          }
        }
      }
    }
  }
}
