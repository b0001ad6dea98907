// Whole numbers; `auto` because sizes may be constants or arguments, 32 or 64 bits wide.

template <typename A, typename B>
__device__ constexpr auto ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

template <typename A, typename B>
__device__ constexpr auto least(A a, B b) {
  return a < b ? a : b;
}

template <typename A, typename B>
__device__ constexpr auto most(A a, B b) {
  return a > b ? a : b;
}
