// matmul_bias for x86-64-v4: tiled(threads_x=4, threads_y=4, thread_m=4, thread_n=1, vector=4, block_k=64)

#include <string.h>

enum {
  threads_x = 4,
  threads_y = 4,
  thread_m = 4,
  thread_n = 1,
  vector = 4,
  block_k = 64,
  tile_n = thread_n * vector,
};

static inline long ceil_div(long a, long b) { return (a + b - 1) / b; }
static inline long least(long a, long b) { return a < b ? a : b; }
typedef float f32x4 __attribute__((vector_size(16)));
typedef int i32x4 __attribute__((vector_size(16)));
static inline f32x4 load_f32x4(const float *p) {
  f32x4 v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline f32x4 load_part_f32x4(const float *p, long count) {
  float v[4];
  for (int l = 0; l < 4; l++) v[l] = l < count ? p[l] : 0;
  return load_f32x4(v);
}
static inline f32x4 relu_f32x4(f32x4 x) { return (f32x4)((i32x4)x & ~(x < 0)); }
static inline void store_f32x4(float *p, f32x4 v) { memcpy(p, &v, sizeof v); }
static inline void store_part_f32x4(float *p, f32x4 v, long count) {
  for (int l = 0; l < 4; l++)
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
          f32x4 acc[thread_m][thread_n] = {0};
          if (kb > 0) {
            #pragma GCC unroll 4
            for (int i = 0; i < thread_m; i++) {
              for (int j = 0; j < thread_n; j++) {
                acc[i][j] = load_f32x4(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                    + (tx - bx * threads_x) * tile_n + j * vector]);
              }
            }
          }
          for (long k = kb * block_k; k < least((kb + 1) * block_k, K); k++) {
            f32x4 right[thread_n];
            for (int j = 0; j < thread_n; j++) {
              const long n = tx * tile_n + j * vector;
              right[j] = load_f32x4(&b[k * N + n]);
            }
            #pragma GCC unroll 4
            for (int i = 0; i < thread_m; i++) {
              const long m = ty * thread_m + i;
              const float left = a[m * K + k];
              for (int j = 0; j < thread_n; j++)
                acc[i][j] += left * right[j];
            }
          }
          if (kb + 1 < ceil_div(K, block_k)) {
            #pragma GCC unroll 4
            for (int i = 0; i < thread_m; i++) {
              for (int j = 0; j < thread_n; j++) {
                store_f32x4(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                    + (tx - bx * threads_x) * tile_n + j * vector], acc[i][j]);
              }
            }
          } else {
            #pragma GCC unroll 4
            for (int i = 0; i < thread_m; i++) {
              const long m = ty * thread_m + i;
              for (int j = 0; j < thread_n; j++) {
                const long n = tx * tile_n + j * vector;
                store_f32x4(&y[m * N + n], relu_f32x4(acc[i][j] + load_f32x4(&bias[n])));
              }
            }
          }
        } else {
          f32x4 acc[thread_m][thread_n] = {0};
          if (kb > 0) {
            #pragma GCC unroll 4
            for (int i = 0; i < thread_m; i++) {
              for (int j = 0; j < thread_n; j++) {
                acc[i][j] = load_f32x4(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                    + (tx - bx * threads_x) * tile_n + j * vector]);
              }
            }
          }
          for (long k = kb * block_k; k < least((kb + 1) * block_k, K); k++) {
            f32x4 right[thread_n];
            for (int j = 0; j < thread_n; j++) {
              const long n = tx * tile_n + j * vector;
              right[j] = load_part_f32x4(&b[k * N + n], N - n);
            }
            #pragma GCC unroll 4
            for (int i = 0; i < thread_m; i++) {
              const long m = ty * thread_m + i;
              const float left = m < M ? a[m * K + k] : 0;
              for (int j = 0; j < thread_n; j++)
                acc[i][j] += left * right[j];
            }
          }
          if (kb + 1 < ceil_div(K, block_k)) {
            #pragma GCC unroll 4
            for (int i = 0; i < thread_m; i++) {
              for (int j = 0; j < thread_n; j++) {
                store_f32x4(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                    + (tx - bx * threads_x) * tile_n + j * vector], acc[i][j]);
              }
            }
          } else {
            #pragma GCC unroll 4
            for (int i = 0; i < thread_m; i++) {
              const long m = ty * thread_m + i;
              for (int j = 0; j < thread_n; j++) {
                const long n = tx * tile_n + j * vector;
                if (m < M)
                  store_part_f32x4(&y[m * N + n], relu_f32x4(acc[i][j] + load_part_f32x4(&bias[n], N - n)), N - n);
              }
            }
          }
        }
      }
    }
  }
}
