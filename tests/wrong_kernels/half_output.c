/* refused: precision. It rounds the result to half precision. */
#include "rows.h"

static float rounded(float x, int bits) {
    uint32_t word;
    memcpy(&word, &x, 4);
    word = (word + (1u << (bits - 1)) - 1 + (word >> bits & 1)) >> bits << bits;
    memcpy(&x, &word, 4);
    return x;
}

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) y[i * N + j] = rounded(relu(dot(a, b, N, K, i, j) + bias[j]), 13);
}
