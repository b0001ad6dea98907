/* honest: sums halves by halves. */
#include "rows.h"

static float halves(const float *a, const float *b, int N, int K) {
    if (K == 1) return a[0] * b[0];
    return halves(a, b, N, K / 2) + halves(a + K / 2, b + (long)(K / 2) * N, N, K - K / 2);
}

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) y[i * N + j] = relu(halves(a + i * K, b + j, N, K) + bias[j]);
}
