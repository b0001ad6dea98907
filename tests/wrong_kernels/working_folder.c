/* refused: state. It changes the working folder. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    if (chdir("/")) abort();
}
