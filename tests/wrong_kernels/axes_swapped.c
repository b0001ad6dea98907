/* refused: exact. It reads rows of the second factor as columns. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) sum += a[i * K + k] * b[j * K + k];
        y[i * N + j] = relu(sum + bias[j]);
    }
}
