/* refused: exact. It takes the bias of the row. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) y[i * N + j] = relu(dot(a, b, N, K, i, j) + bias[i % N]);
}
