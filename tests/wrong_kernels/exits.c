/* refused: Crashed. It ends its process as if all were well. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    _exit(0);
}
