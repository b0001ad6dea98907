/* y = x · s: ROWS rows a task, the last task's fewer. */
#include <stddef.h>
#ifndef ROWS
#define ROWS 1
#endif
#ifndef SIZES
#define SIZES , int R, int C
#endif

void scale_rows(const int task[3], const float *x, const float *s, float *y SIZES) {
  for (int r = task[0] * ROWS; r < R && r < (task[0] + 1) * ROWS; r++)
    for (int c = 0; c < C; c++) y[(size_t)r * C + c] = x[(size_t)r * C + c] * s[r];
}
