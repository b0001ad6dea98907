/* refused: race. It each task spoils a row of the next one, which mostly comes later. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    int next = (task[0] + 1) * ROWS;
    if (next < M) EACH_COLUMN(j) y[next * N + j] = 0.0f;
}
