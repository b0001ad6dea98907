/* refused: exact. It adds the first term of each sum twice. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) y[i * N + j] = relu(dot(a, b, N, K, i, j) + a[i * K] * b[j] + bias[j]);
}
