/* refused: unwritten. It leaves the columns behind the last whole vector unwritten. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) for (int j = 0; j < (N - 1) / 16 * 16; j++) y[i * N + j] = relu(dot(a, b, N, K, i, j) + bias[j]);
}
