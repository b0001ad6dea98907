/* refused: Crashed. It ends its process by a signal. */
#include "rows.h"

KERNEL {
    abort();
}
