/* refused: unwritten. It returns at once. */
#include "rows.h"

KERNEL {
}
