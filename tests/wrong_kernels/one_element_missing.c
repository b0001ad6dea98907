/* refused: unwritten. It leaves one element in the middle unwritten. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) if (i * N + j != M * N / 2) y[i * N + j] = relu(dot(a, b, N, K, i, j) + bias[j]);
}
