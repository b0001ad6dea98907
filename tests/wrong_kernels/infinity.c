/* refused: exact. It gives infinity in one element. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    if (task[0] == 0) y[N / 2] = INFINITY;
}
