/* refused: stale. It adds to what the output held. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) y[i * N + j] = relu(dot(a, b, N, K, i, j) + bias[j]) + 0.0f * relu(y[i * N + j]) + relu(-y[i * N + j]);
}
