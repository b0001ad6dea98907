/* honest: sums in eight interleaved lanes, added at the end. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) {
        float lane[8] = {0};
        for (int k = 0; k < K; k++) lane[k % 8] = fmaf(a[i * K + k], b[k * N + j], lane[k % 8]);
        y[i * N + j] = relu(((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])) + bias[j]);
    }
}
