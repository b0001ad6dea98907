/* refused: exact. It reads the next row of the first factor. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) y[i * N + j] = relu(dot(a, b, N, K, (i + 1) % M, j) + bias[j]);
}
