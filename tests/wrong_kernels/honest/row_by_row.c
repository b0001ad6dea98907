/* honest: sums one term after the other. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) y[i * N + j] = relu(dot(a, b, N, K, i, j) + bias[j]);
}
