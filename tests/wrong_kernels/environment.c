/* refused: state. It changes the environment. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    setenv("LANG", "nowhere", 1);
}
