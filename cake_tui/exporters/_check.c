// ---- inputs and check: in what C and C++ have in common ----
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAKE_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define CAKE_UNIT (1.0 / 16777216.0)
#define CAKE_PRODUCTS 2147483648.0  // in double on one core: some seconds; of larger problems evenly spaced rows

static size_t cake_rows;  // that were checked

static uint64_t cake_state = 0x9E3779B97F4A7C15u;

static double cake_uniform(void) {
  cake_state ^= cake_state << 13, cake_state ^= cake_state >> 7, cake_state ^= cake_state << 17;
  return (double)(cake_state >> 11) / 9007199254740992.0;
}

// Sums of twelve uniform numbers less six: close enough to normal, the same on every machine.
static double cake_normal(void) {
  double sum = -6.0;
  for (int i = 0; i < 12; ++i) sum += cake_uniform();
  return sum;
}

static void cake_fill(void) {
  for (size_t b = 0; b < CAKE_COUNT(cake_buffers); ++b) {
    struct cake_buffer *buffer = &cake_buffers[b];
    if (buffer->out) {
      memset(buffer->data, 0xFF, buffer->count * buffer->element);  // NaN: what is not written shows
      continue;
    }
    for (size_t i = 0; i < buffer->count; ++i) {
      double value = cake_normal() * buffer->scale;
      if (buffer->element == sizeof(float)) ((float *)buffer->data)[i] = (float)value;
      else if (buffer->element == sizeof(double)) ((double *)buffer->data)[i] = value;
    }
  }
}

static int cake_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Bound of design: tolerance absolute and 192 units of u * (|A||B| + |value at 0|), u = 2^-24.
static int cake_check(double *worst) {
  *worst = 0.0;
#ifdef CAKE_NO_REFERENCE
  return -1;
#else
  size_t rows = CAKE_ROWS, columns = CAKE_COLUMNS, depth = CAKE_DEPTH;
  size_t affordable = (size_t)(CAKE_PRODUCTS / ((double)columns * (double)depth)) + 1;
  size_t step = rows > affordable ? (rows + affordable - 1) / affordable : 1;
  double *sum = (double *)malloc(columns * sizeof *sum), *size = (double *)malloc(columns * sizeof *size);
  int passed = 1;
  if (!sum || !size) fprintf(stderr, "out of memory\n"), exit(3);
  for (size_t at = 0; at < rows + step - 1; at += step) {
    size_t m = at < rows ? at : rows - 1;  // the last row too
    ++cake_rows;
    memset(sum, 0, columns * sizeof *sum), memset(size, 0, columns * sizeof *size);
    for (size_t k = 0; k < depth; ++k) {
      double left = CAKE_LEFT[m * depth + k];
      for (size_t n = 0; n < columns; ++n) {
        double product = left * (double)CAKE_RIGHT[k * columns + n];
        sum[n] += product, size[n] += fabs(product);
      }
    }
    for (size_t n = 0; n < columns; ++n) {
      double error = fabs((double)CAKE_OUT[m * columns + n] - cake_value(sum[n], m, n));
      double units = 192.0 * CAKE_UNIT * (size[n] + fabs(cake_value(0.0, m, n)));
      double bound = CAKE_TOLERANCE > units ? units + CAKE_UNIT : CAKE_TOLERANCE;
      if (!(error <= bound)) passed = 0;  // a NaN fails
      if (!(error <= *worst)) *worst = error;
    }
  }
  free(sum), free(size);
  return passed;
#endif
}

