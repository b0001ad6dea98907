/* refused: Crashed. It divides a whole number by zero. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    volatile int zero = 0;
    y[0] += 7 / zero;
}
