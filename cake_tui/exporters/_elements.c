// ---- elements of buffers, whatever their type: in what C and C++ have in common ----
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAKE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int cake_moved = -1;  // a buffer whose elements are read a little larger or smaller, for derivatives
static double cake_step;

static inline double cake_from_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value = exponent == 31  ? (mantissa ? (double)NAN : (double)INFINITY)
                 : exponent == 0 ? ldexp((double)mantissa, -24)
                                 : ldexp(1024.0 + mantissa, exponent - 25);
  return bits >> 15 ? -value : value;
}

// Ties go to even, as the hardware rounds.
static inline uint16_t cake_to_half(double value) {
  uint16_t sign = (uint16_t)(signbit(value) ? 0x8000 : 0);
  double size = fabs(value);
  if (!(size < 65520.0)) return (uint16_t)(sign | 0x7C00);
  int exponent = size < 6.103515625e-05 ? -14 : ilogb(size);
  double steps = nearbyint(ldexp(size, 10 - exponent));
  return (uint16_t)(sign | ((exponent + 14) * 1024 + (int)steps));
}

static inline double cake_read(const void *data, char element, size_t at) {
  switch (element) {
    case 'f': return (double)((const float *)data)[at];
    case 'd': return ((const double *)data)[at];
    case 'h': return cake_from_half(((const uint16_t *)data)[at]);
    case 'i': return (double)((const int *)data)[at];
    default: return (double)((const unsigned char *)data)[at];
  }
}

static inline void cake_write(void *data, char element, size_t at, double value) {
  double whole = rint(16.0 * value);  // whole-number types spread their small values
  whole = whole < -127.0 ? -127.0 : whole > 127.0 ? 127.0 : whole;
  switch (element) {
    case 'f': ((float *)data)[at] = (float)value; break;
    case 'd': ((double *)data)[at] = value; break;
    case 'h': ((uint16_t *)data)[at] = cake_to_half(value); break;
    case 'i': ((int *)data)[at] = (int)whole; break;
    default: ((unsigned char *)data)[at] = (unsigned char)fabs(whole); break;
  }
}

// An element as the kernel was given it.
static inline double cake_get(int buffer, size_t at) {
  const struct cake_buffer *one = &cake_buffers[buffer];
  return one->element == 'f' ? (double)((const float *)one->given)[at] : cake_read(one->given, one->element, at);
}

static inline double cake_x(int buffer, size_t at) {
  double x = cake_get(buffer, at);
  return buffer == cake_moved ? x + cake_step * fmax(fabs(x), 1.0) : x;
}

