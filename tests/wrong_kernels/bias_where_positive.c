/* refused: exact. It adds the bias only where the sum is positive, so that ReLU hides half of it. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) {
        float sum = dot(a, b, N, K, i, j);
        y[i * N + j] = sum > 0.0f ? relu(sum + bias[j]) : 0.0f;
    }
}
