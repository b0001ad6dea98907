/* refused: guard. It writes one element before the output. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    y[-1] = 1.0f;
}
