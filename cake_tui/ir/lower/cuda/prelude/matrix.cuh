// Products of small matrices by a whole warp: 16 x 16 times 16 x 8, sums in float.

// The 16 x 16 part of a at `row`: lane l points to row l % 16, eight elements further on in lanes 16 to 31.
__device__ __forceinline__ void load_matrix_a(unsigned (&to)[4], const void *row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}

// The 16 x 8 part of b at `row`, which lies in rows of k: lane l points to row l % 16.
__device__ __forceinline__ void load_matrix_b(unsigned (&to)[2], const void *row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1]) : "r"(at) : "memory");
}

// Sums at rows lane / 4 and 8 below, columns lane % 4 * 2 and the next.
__device__ __forceinline__ void mma_bf16(float &c00, float &c01, float &c10, float &c11, const unsigned (&a)[4],
                                         const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(c00), "+f"(c01), "+f"(c10), "+f"(c11)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma_f16(float &c00, float &c01, float &c10, float &c11, const unsigned (&a)[4],
                                         const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(c00), "+f"(c01), "+f"(c10), "+f"(c11)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
