/* honest: sums from the last term to the first. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) {
        float sum = bias[j];
        for (int k = K - 1; k >= 0; k--) sum += a[i * K + k] * b[k * N + j];
        y[i * N + j] = relu(sum);
    }
}
