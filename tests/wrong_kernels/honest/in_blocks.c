/* honest: sums in blocks of 32 terms. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) {
        float sum = 0.0f;
        for (int k0 = 0; k0 < K; k0 += 32) {
            float part = 0.0f;
            for (int k = k0; k < k0 + 32 && k < K; k++) part += a[i * K + k] * b[k * N + j];
            sum += part;
        }
        y[i * N + j] = relu(sum + bias[j]);
    }
}
