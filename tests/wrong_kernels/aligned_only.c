/* refused: alignment. It is wrong where the first factor is not aligned to a vector. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) {
        float skipped = (uintptr_t)a % 64 ? a[i * K] * b[j] : 0.0f;
        y[i * N + j] = relu(dot(a, b, N, K, i, j) - skipped + bias[j]);
    }
}
