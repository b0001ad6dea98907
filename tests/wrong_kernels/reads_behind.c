/* refused: Crashed. It reads behind the second factor and does not use it. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    volatile float unused = b[(long)K * N + 3];
    (void)unused;
}
