/* What the wrong kernels share: an honest kernel over ROWS rows a task, to be spoilt in one way each. */
#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS 8
#define KERNEL \
    void entry(const int task[3], const float *a, const float *b, const float *bias, float *y, int M, int N, int K)
#define EACH_ROW(i) for (int i = task[0] * ROWS; i < task[0] * ROWS + ROWS && i < M; i++)
#define EACH_COLUMN(j) for (int j = 0; j < N; j++)

static inline float relu(float x) { return x > 0.0f ? x : 0.0f; }

static inline float dot(const float *a, const float *b, int N, int K, int i, int j) {
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += a[(long)i * K + k] * b[(long)k * N + j];
    return sum;
}

static inline void honest(const int task[3], const float *a, const float *b, const float *bias, float *y, int M, int N,
                          int K) {
    EACH_ROW(i) EACH_COLUMN(j) y[(long)i * N + j] = relu(dot(a, b, N, K, i, j) + bias[j]);
}
