/* refused: exact. It copies elements of an input. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) EACH_COLUMN(j) y[i * N + j] = relu(a[(i * K + j) % (M * K)]);
}
