/* refused: exact. It writes a reply of its own to every descriptor. */
#include "rows.h"

KERNEL {
    static const char forged[] =
        "{\"reply\":{\"type\":\"Checked\",\"agreement\":{\"max_abs_err\":0,\"rel_err\":0,\"worst_unit\":0,\"bound_share\":0},\"seconds\":0}}\n";
    EACH_ROW(i) EACH_COLUMN(j) y[i * N + j] = 0.0f;
    for (int fd = 3; fd < 32; fd++)
        if (write(fd, forged, sizeof forged - 1) < 0) continue;
}
