/* refused: nan. It multiplies what lies behind the second factor by zero. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    y[(long)task[0] * ROWS * N] += 0.0f * b[(long)K * N + 3];
}
