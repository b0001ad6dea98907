/* refused: Crashed. It writes through a null pointer. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    *(volatile float *)0 = 1.0f;
}
