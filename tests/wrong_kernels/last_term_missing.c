/* refused: exact. It leaves the last term of each sum out. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) {
        float last = a[i * K + K - 1] * b[(K - 1) * N + j];
        y[i * N + j] = relu(dot(a, b, N, K, i, j) - last + bias[j]);
    }
}
