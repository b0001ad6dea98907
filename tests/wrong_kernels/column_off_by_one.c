/* refused: exact. It reads the next column of the second factor. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) y[i * N + j] = relu(dot(a, b, N, K, i, (j + 1) % N) + bias[j]);
}
