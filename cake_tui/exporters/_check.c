// ---- inputs and check ----
#define CAKE_UNIT (1.0 / 16777216.0)
#define CAKE_LEAST 7.1746481373430634e-43  // 2^-140: below the least normal float, steps are no smaller
#define CAKE_PRODUCTS 1073741824.0         // in double on one core: some seconds; of more, evenly spaced rows

static size_t cake_rows;  // that were checked last
static uint64_t cake_sum; // of the inputs' bytes

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

static double cake_integer(double most, int negative) {
  double size = 1.0 + floor(cake_uniform() * most);
  return negative && cake_uniform() < 0.5 ? -size : size;
}

static double cake_drawn(const struct cake_buffer *buffer) {
  switch (buffer->fill) {
    case 'n': return cake_normal() * buffer->scale;
    case 'u': return cake_uniform() * buffer->scale;
    case 'i': return (floor(cake_uniform() * 17.0) - 8.0) * buffer->scale;
    default: return buffer->scale;
  }
}

static uint64_t cake_hash(void) {
  uint64_t sum = 14695981039346656037u;
  for (size_t b = 0; b < CAKE_COUNT(cake_buffers); ++b) {
    if (cake_buffers[b].role != 'i') continue;
    const unsigned char *bytes = (const unsigned char *)cake_buffers[b].data;
    for (size_t i = 0; i < cake_buffers[b].count * cake_buffers[b].size; ++i) sum = (sum ^ bytes[i]) * 1099511628211u;
  }
  return sum;
}

// Draw the inputs, as the problem says or whole numbers whose sums are exact, and poison everything else.
static void cake_fill(int integers) {
  for (size_t b = 0; b < CAKE_COUNT(cake_buffers); ++b) {
    struct cake_buffer *buffer = &cake_buffers[b];
    size_t bytes = buffer->count * buffer->size;
    if (buffer->role == 'o' || buffer->role == 'w') {
      memset(buffer->data, 0xFF, bytes);  // NaN: what is not written shows
      continue;
    }
    for (size_t i = 0; i < buffer->count; ++i) {
      int whole = buffer->element == 'i' || buffer->element == 'b';
      double value = integers ? cake_integer(CAKE_INTEGERS, buffer->element != 'b') : cake_drawn(buffer);
      cake_write(buffer->given, buffer->element, i, integers && whole ? value / 16.0 : value);
    }
    if (buffer->role == 'x') memcpy(buffer->data, buffer->given, bytes);
  }
  cake_sum = cake_hash();
}

static int cake_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

#ifndef CAKE_NO_REFERENCE
// Whether an error is within the product's bounds. Random inputs: tolerance absolute, and units of u S. Whole numbers:
// none where the value is exact; of a contraction with another value, 4 ulp and 4 u S.
static int cake_within(double error, double value, double scale, int integers) {
  if (integers && CAKE_EXACT) return error == 0.0;
  if (integers && CAKE_CONTRACTION) {
    float single = (float)fabs(value);
    return error <= 4.0 * ((double)nextafterf(single, INFINITY) - single) + 4.0 * CAKE_UNIT * scale;
  }
  return error <= CAKE_TOLERANCE && error <= CAKE_UNITS * CAKE_UNIT * scale + CAKE_LEAST;
}
#endif

// 1 where every checked element is right and no input was changed, 0 where not, -1 where nothing says what is right.
static int cake_check(int integers, double *worst) {
  if (cake_hash() != cake_sum) return fprintf(stderr, "the kernel changed an input\n"), 0;
#ifdef CAKE_NO_REFERENCE
  (void)integers, (void)worst;
  return -1;
#else
  size_t rows = CAKE_ROWS, columns = CAKE_COLUMNS, affordable = (size_t)(CAKE_PRODUCTS / (CAKE_COST * columns)) + 1;
  size_t step = rows > affordable ? (rows + affordable - 1) / affordable : 1;
  double *sum = (double *)calloc(columns, sizeof *sum), *size = (double *)calloc(columns, sizeof *size);
  int passed = 1;
  if (!sum || !size) fprintf(stderr, "out of memory\n"), exit(3);
  cake_rows = 0;
  for (size_t at = 0; at < rows + step - 1; at += step) {
    size_t row = at < rows ? at : rows - 1;  // the last row too
    ++cake_rows;
    cake_row(row, sum, size);
    for (size_t n = 0; n < columns; ++n) {
      double value = cake_value(sum[n], row, n), scale = cake_scale(sum[n], size[n], row, n);
      double found = cake_read(cake_buffers[CAKE_OUT].data, cake_buffers[CAKE_OUT].element, row * columns + n);
      double error = found == value || (found != found && value != value) ? 0.0 : fabs(found - value);
      if (!cake_within(error, value, scale, integers)) passed = 0;  // a NaN fails
      if (!integers && !(error <= *worst)) *worst = error;
    }
  }
  free(sum), free(size);
  return passed;
#endif
}

// Wrong once is wrong; not known is less than right.
static int cake_both(int one, int other) { return !one || !other ? 0 : one < other ? one : other; }

// The first half of the line of figures; a number that is none is null.
static void cake_report(int passed, double worst) {
  printf("{\"passed\": %s, \"max_abs_err\": ", passed < 0 ? "null" : passed ? "true" : "false");
  printf(passed >= 0 && worst - worst == 0.0 ? "%.9g" : "null", worst);
  printf(", \"checked_rows\": %lu", (unsigned long)cake_rows);
}

// A time far from the one stated above is told, beside the fastest run: other work on the machine looks like that.
static void cake_hold(double time_us, double fastest_us) {
  double stated = CAKE_STATED_US, slow = CAKE_SLOW_US;
  if (slow > 0.0 && time_us > slow)
    fprintf(stderr, "%.2f times the stated %.4g us; the fastest run took %.4g us\n", time_us / stated, stated, fastest_us);
}
