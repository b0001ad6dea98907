/* refused: exact. It leaves one term out, in the last row alone. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) {
        float last = i == M - 1 ? a[i * K + K - 1] * b[(K - 1) * N + j] : 0.0f;
        y[i * N + j] = relu(dot(a, b, N, K, i, j) - last + bias[j]);
    }
}
