/* refused: state. It leaves a file open. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    static _Atomic int once;
    if (!once++) fopen("/dev/null", "rb");
}
