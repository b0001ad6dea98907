/* refused: state. It keeps memory at each call. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    static void *volatile kept;
    if (task[0] == 0) kept = malloc(4096);
}
