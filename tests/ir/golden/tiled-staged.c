// matmul_bias for x86-64-v4: tiled(threads_x=4, threads_y=4, thread_m=6, thread_n=2, vector=8, block_k=64, pad=4)

#include <string.h>

enum {
  N = 512,
  K = 512,
  threads_x = 4,
  threads_y = 4,
  thread_m = 6,
  thread_n = 2,
  vector = 8,
  block_k = 64,
  pad = 4,
  tile_n = thread_n * vector,
};

typedef float f32x8 __attribute__((vector_size(32)));
typedef int i32x8 __attribute__((vector_size(32)));
static inline f32x8 load_f32x8(const float *p) {
  f32x8 v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline f32x8 relu_f32x8(f32x8 x) { return (f32x8)((i32x8)x & ~(x < 0)); }
static inline void store_f32x8(float *p, f32x8 v) { memcpy(p, &v, sizeof v); }

void matmul(const int task[3], const float *restrict a, const float *restrict b, const float *restrict bias,
    float *restrict y) {
  const long bx = task[0];
  const long by = task[1];
  _Alignas(64) float b_block[block_k * (threads_x * tile_n + pad)];
  _Alignas(64) float sums[threads_y * thread_m * threads_x * tile_n];
  for (long kb = 0; kb < K / block_k; kb++) {
    for (long k = kb * block_k; k < (kb + 1) * block_k; k++) {
      for (long tx = bx * threads_x; tx < (bx + 1) * threads_x; tx++) {
        for (int i = 0; i < thread_n; i++) {
          const long n = tx * tile_n + i * vector;
          store_f32x8(&b_block[(k - kb * block_k) * (threads_x * tile_n + pad) + (tx - bx * threads_x) * tile_n
              + i * vector], load_f32x8(&b[k * N + n]));
        }
      }
    }
    for (long tx = bx * threads_x; tx < (bx + 1) * threads_x; tx++) {
      for (long ty = by * threads_y; ty < (by + 1) * threads_y; ty++) {
        f32x8 acc[thread_m][thread_n] = {0};
        if (kb > 0) {
          #pragma GCC unroll 6
          for (int i = 0; i < thread_m; i++) {
            #pragma GCC unroll 2
            for (int j = 0; j < thread_n; j++) {
              acc[i][j] = load_f32x8(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                  + (tx - bx * threads_x) * tile_n + j * vector]);
            }
          }
        }
        for (long k = kb * block_k; k < (kb + 1) * block_k; k++) {
          f32x8 right[thread_n];
          #pragma GCC unroll 2
          for (int j = 0; j < thread_n; j++) {
            right[j] = load_f32x8(&b_block[(k - kb * block_k) * (threads_x * tile_n + pad)
                + (tx - bx * threads_x) * tile_n + j * vector]);
          }
          #pragma GCC unroll 6
          for (int i = 0; i < thread_m; i++) {
            const long m = ty * thread_m + i;
            const float left = a[m * K + k];
            #pragma GCC unroll 2
            for (int j = 0; j < thread_n; j++)
              acc[i][j] += left * right[j];
          }
        }
        if (kb + 1 < K / block_k) {
          #pragma GCC unroll 6
          for (int i = 0; i < thread_m; i++) {
            #pragma GCC unroll 2
            for (int j = 0; j < thread_n; j++) {
              store_f32x8(&sums[((ty - by * threads_y) * thread_m + i) * threads_x * tile_n
                  + (tx - bx * threads_x) * tile_n + j * vector], acc[i][j]);
            }
          }
        } else {
          #pragma GCC unroll 6
          for (int i = 0; i < thread_m; i++) {
            const long m = ty * thread_m + i;
            #pragma GCC unroll 2
            for (int j = 0; j < thread_n; j++) {
              const long n = tx * tile_n + j * vector;
              store_f32x8(&y[m * N + n], relu_f32x8(acc[i][j] + load_f32x8(&bias[n])));
            }
          }
        }
      }
    }
  }
}
