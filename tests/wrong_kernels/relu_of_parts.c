/* refused: exact. It applies ReLU to each part of a sum. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) {
            sum += a[i * K + k] * b[k * N + j];
            if (k % 16 == 15) sum = relu(sum);
        }
        y[i * N + j] = relu(sum + bias[j]);
    }
}
