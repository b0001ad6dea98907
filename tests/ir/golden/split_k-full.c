// matmul_bias for x86-64-v4: split_k(threads_x=4, threads_y=4, thread_m=14, thread_n=2, vector=16, split_k=2)

#include <string.h>

enum {
  M = 512,
  N = 512,
  K = 512,
  threads_x = 4,
  threads_y = 4,
  thread_m = 14,
  thread_n = 2,
  vector = 16,
  split_k = 2,
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
static inline f32x16 relu_f32x16(f32x16 x) { return (f32x16)((i32x16)x & ~(x < 0)); }
static inline void store_f32x16(float *p, f32x16 v) { memcpy(p, &v, sizeof v); }

void matmul(const int task[3], const float *restrict a, const float *restrict b, float *restrict partial) {
  const long bx = task[0];
  const long by = task[1];
  const long part = task[2];
  for (long tx = bx * threads_x; tx < (bx + 1) * threads_x; tx++) {
    for (long ty = by * threads_y; ty < least((by + 1) * threads_y, ceil_div(M, thread_m)); ty++) {
      if (ty * thread_m + thread_m <= M) {
        f32x16 acc[thread_m][thread_n] = {0};
        for (long k = part * (K / split_k); k < (part + 1) * (K / split_k); k++) {
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
        #pragma GCC unroll 14
        for (int i = 0; i < thread_m; i++) {
          const long m = ty * thread_m + i;
          #pragma GCC unroll 2
          for (int j = 0; j < thread_n; j++) {
            const long n = tx * tile_n + j * vector;
            store_f32x16(&partial[(part * M + m) * N + n], acc[i][j]);
          }
        }
      } else {
        f32x16 acc[thread_m][thread_n] = {0};
        for (long k = part * (K / split_k); k < (part + 1) * (K / split_k); k++) {
          f32x16 right[thread_n];
          #pragma GCC unroll 2
          for (int j = 0; j < thread_n; j++) {
            const long n = tx * tile_n + j * vector;
            right[j] = load_f32x16(&b[k * N + n]);
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
        #pragma GCC unroll 14
        for (int i = 0; i < thread_m; i++) {
          const long m = ty * thread_m + i;
          #pragma GCC unroll 2
          for (int j = 0; j < thread_n; j++) {
            const long n = tx * tile_n + j * vector;
            if (m < M)
              store_f32x16(&partial[(part * M + m) * N + n], acc[i][j]);
          }
        }
      }
    }
  }
}

void combine(const int task[3], const float *restrict bias, float *restrict y, float *restrict partial) {
  const long by = task[0];
  for (long m = by * threads_y * thread_m; m < least((by + 1) * threads_y * thread_m, M); m++) {
    for (long tx = 0; tx < N / tile_n; tx++) {
      f32x16 acc[thread_n] = {0};
      for (long part = 0; part < split_k; part++) {
        #pragma GCC unroll 2
        for (int i = 0; i < thread_n; i++) {
          const long n = tx * tile_n + i * vector;
          acc[i] += load_f32x16(&partial[(part * M + m) * N + n]);
        }
      }
      #pragma GCC unroll 2
      for (int i = 0; i < thread_n; i++) {
        const long n = tx * tile_n + i * vector;
        store_f32x16(&y[m * N + n], relu_f32x16(acc[i] + load_f32x16(&bias[n])));
      }
    }
  }
}
