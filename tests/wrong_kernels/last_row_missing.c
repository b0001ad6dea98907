/* refused: unwritten. It leaves the last row unwritten. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) if (i < M - 1) y[i * N + j] = relu(dot(a, b, N, K, i, j) + bias[j]);
}
