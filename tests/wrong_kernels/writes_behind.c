/* refused: guard. It writes one element behind the output. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    y[(long)M * N] = 1.0f;
}
