// matmul_bias for x86-64-v4: packed(threads_x=4, threads_y=4, thread_m=4, thread_n=2, vector=8, block_k=256, pad=0)

#include <string.h>

enum {
  threads_x = 4,
  threads_y = 4,
  thread_m = 4,
  thread_n = 2,
  vector = 8,
  block_k = 256,
  pad = 0,
  tile_n = thread_n * vector,
};

static inline long ceil_div(long a, long b) { return (a + b - 1) / b; }
static inline long least(long a, long b) { return a < b ? a : b; }
typedef float f32x8 __attribute__((vector_size(32)));
typedef int i32x8 __attribute__((vector_size(32)));
static inline f32x8 load_f32x8(const float *p) {
  f32x8 v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline f32x8 load_part_f32x8(const float *p, long count) {
  float v[8];
  for (int l = 0; l < 8; l++) v[l] = l < count ? p[l] : 0;
  return load_f32x8(v);
}
static inline f32x8 relu_f32x8(f32x8 x) { return (f32x8)((i32x8)x & ~(x < 0)); }
static inline void store_f32x8(float *p, f32x8 v) { memcpy(p, &v, sizeof v); }
static inline void store_part_f32x8(float *p, f32x8 v, long count) {
  for (int l = 0; l < 8; l++)
    if (l < count) p[l] = v[l];
}

void pack(const int task[3], const float *restrict b, float *restrict b_panels, int M, int N, int K) {
  const long tx = task[0];
  if (tx * tile_n + tile_n <= N) {
    for (long k = 0; k < K; k++) {
      for (int i = 0; i < thread_n; i++) {
        const long n = tx * tile_n + i * vector;
        store_f32x8(&b_panels[tx * (K * tile_n + pad) + k * tile_n + i * vector], load_f32x8(&b[k * N + n]));
      }
    }
  } else {
    for (long k = 0; k < K; k++) {
      for (int i = 0; i < thread_n; i++) {
        const long n = tx * tile_n + i * vector;
        store_f32x8(&b_panels[tx * (K * tile_n + pad) + k * tile_n + i * vector], load_part_f32x8(&b[k * N + n],
            N - n));
      }
    }
  }
}

void matmul(const int task[3], const float *restrict a, const float *restrict bias, float *restrict y,
    float *restrict b_panels, int M, int N, int K) {
  const long bx = task[0];
  const long by = task[1];
  _Alignas(64) float a_panels[threads_y * (block_k * thread_m + pad)];
  _Alignas(64) float sums[threads_y * thread_m * threads_x * tile_n];
  for (long kb = 0; kb < ceil_div(K, block_k); kb++) {
    for (long ty = by * threads_y; ty < least((by + 1) * threads_y, ceil_div(M, thread_m)); ty++) {
      if (ty * thread_m + thread_m <= M) {
        for (long k = kb * block_k; k < least((kb + 1) * block_k, K); k++) {
          for (int i = 0; i < thread_m; i++) {
            const long m = ty * thread_m + i;
            a_panels[(ty - by * threads_y) * (block_k * thread_m + pad) + (k - kb * block_k) * thread_m
                + i] = a[m * K + k];
          }
        }
      } else {
        for (long k = kb * block_k; k < least((kb + 1) * block_k, K); k++) {
          for (int i = 0; i < thread_m; i++) {
            const long m = ty * thread_m + i;
            a_panels[(ty - by * threads_y) * (block_k * thread_m + pad) + (k - kb * block_k) * thread_m + i] = m < M
                ? a[m * K + k] : 0.0f;
          }
        }
      }
    }
    for (long tx = bx * threads_x; tx < least((bx + 1) * threads_x, ceil_div(N, tile_n)); tx++) {
      for (long ty = by * threads_y; ty < least((by + 1) * threads_y, ceil_div(M, thread_m)); ty++) {
        f32x8 acc[thread_m][thread_n] = {0};
        if (kb > 0) {
          #pragma GCC unroll 4
          for (int i = 0; i < thread_m; i++) {
            #pragma GCC unroll 2
            for (int j = 0; j < thread_n; j++) {
              acc[i][j] = load_f32x8(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                  + (tx - bx * threads_x) * tile_n + j * vector]);
            }
          }
        }
        for (long k = kb * block_k; k < least((kb + 1) * block_k, K); k++) {
          f32x8 right[thread_n];
          #pragma GCC unroll 2
          for (int j = 0; j < thread_n; j++)
            right[j] = load_f32x8(&b_panels[tx * (K * tile_n + pad) + k * tile_n + j * vector]);
          #pragma GCC unroll 4
          for (int i = 0; i < thread_m; i++) {
            const float left = a_panels[(ty - by * threads_y) * (block_k * thread_m + pad)
                + (k - kb * block_k) * thread_m + i];
            #pragma GCC unroll 2
            for (int j = 0; j < thread_n; j++)
              acc[i][j] += left * right[j];
          }
        }
        if (kb + 1 < ceil_div(K, block_k)) {
          #pragma GCC unroll 4
          for (int i = 0; i < thread_m; i++) {
            #pragma GCC unroll 2
            for (int j = 0; j < thread_n; j++) {
              store_f32x8(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                  + (tx - bx * threads_x) * tile_n + j * vector], acc[i][j]);
            }
          }
        } else {
          if (ty * thread_m + thread_m <= M && tx * tile_n + tile_n <= N) {
            #pragma GCC unroll 4
            for (int i = 0; i < thread_m; i++) {
              const long m = ty * thread_m + i;
              #pragma GCC unroll 2
              for (int j = 0; j < thread_n; j++) {
                const long n = tx * tile_n + j * vector;
                store_f32x8(&y[m * N + n], relu_f32x8(acc[i][j] + load_f32x8(&bias[n])));
              }
            }
          } else {
            #pragma GCC unroll 4
            for (int i = 0; i < thread_m; i++) {
              const long m = ty * thread_m + i;
              #pragma GCC unroll 2
              for (int j = 0; j < thread_n; j++) {
                const long n = tx * tile_n + j * vector;
                if (m < M)
                  store_part_f32x8(&y[m * N + n], relu_f32x8(acc[i][j] + load_part_f32x8(&bias[n], N - n)), N - n);
              }
            }
          }
        }
      }
    }
  }
}
