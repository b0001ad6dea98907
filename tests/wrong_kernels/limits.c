/* refused: state. It leaves those who come after it less memory. */
#include "rows.h"
#include <sys/resource.h>

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit)) abort();
    limit.rlim_cur = 1l << 45;
    if (setrlimit(RLIMIT_AS, &limit)) abort();
}
