/* refused: TimedOut. It never returns. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    volatile int forever = 1;
    while (forever) {
    }
}
