/* refused: Crashed. It runs off its stack. */
#include "rows.h"

static float deeper(int n) {
    volatile char block[4096];
    block[0] = (char)n;
    return n ? deeper(n + 1) + block[0] : 0.0f;
}

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    y[0] += deeper(1);
}
