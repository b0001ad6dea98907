// ---- harness: buffers on the device, the time between two events ----
static void cake_must(cudaError_t error, const char *what) {
  if (error != cudaSuccess) fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error)), exit(3);
}

static void cake_start(const void *kernel, dim3 grid, dim3 block, dim3 cluster, size_t smem, void **arguments) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x, attribute.val.clusterDim.y = cluster.y, attribute.val.clusterDim.z = cluster.z;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = smem;
  config.attrs = &attribute, config.numAttrs = cluster.x * cluster.y * cluster.z > 1;
  cake_must(cudaLaunchKernelExC(&config, kernel, arguments), "launch");
}

static void cake_allow(const void *kernel, size_t smem) {
  cake_must(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem), "shared memory");
}

#ifdef CAKE_MAPS
static void cake_encode(CUtensorMap *map, CUtensorMapDataType type, void *address, unsigned rank, const cuuint64_t *dims,
                        const cuuint64_t *strides, const cuuint32_t *box, CUtensorMapSwizzle swizzle) {
  typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                             const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                             CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  static void *encode;
  cudaDriverEntryPointQueryResult found;
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  if (!encode)
    cake_must(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found),
              "tensor maps");
  if (!encode || ((Encode)encode)(map, type, rank, address, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                  swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    fprintf(stderr, "a tensor map was refused\n"), exit(3);
}
#endif

static void cake_copy(size_t b, cudaMemcpyKind kind) {
  size_t bytes = cake_buffers[b].count * cake_buffers[b].size;
  void *to = kind == cudaMemcpyHostToDevice ? cake_device[b] : cake_buffers[b].data;
  void *from = kind == cudaMemcpyHostToDevice ? cake_buffers[b].data : cake_device[b];
  cake_must(cudaMemcpy(to, from, bytes, kind), "copy");
}

// Draw inputs, run the kernel once and compare. The inputs come back too: a kernel must not change them.
static int cake_trial(int integers, double *worst) {
  cake_fill(integers);
  for (size_t b = 0; b < CAKE_COUNT(cake_buffers); ++b) cake_copy(b, cudaMemcpyHostToDevice);
  cake_run();
  cake_must(cudaDeviceSynchronize(), "the kernel");
  for (size_t b = 0; b < CAKE_COUNT(cake_buffers); ++b) cake_copy(b, cudaMemcpyDeviceToHost);
  return cake_check(integers, worst);
}

// A kernel that writes where it reads begins each sample with what it was given.
static void cake_restore() {
  for (size_t b = 0; b < CAKE_COUNT(cake_buffers); ++b) {
    if (cake_buffers[b].role != 'x') continue;
    memcpy(cake_buffers[b].data, cake_buffers[b].given, cake_buffers[b].count * cake_buffers[b].size);
    cake_copy(b, cudaMemcpyHostToDevice);
  }
}

int main() {
  for (size_t b = 0; b < CAKE_COUNT(cake_buffers); ++b) {
    size_t bytes = cake_buffers[b].count * cake_buffers[b].size;
    cake_buffers[b].data = malloc(bytes ? bytes : 1);
    cake_buffers[b].given = cake_buffers[b].role == 'x' ? malloc(bytes ? bytes : 1) : cake_buffers[b].data;
    if (!cake_buffers[b].data || !cake_buffers[b].given) return fprintf(stderr, "out of memory\n"), 3;
    cake_must(cudaMalloc(&cake_device[b], bytes ? bytes : 1), "device memory");
  }
  cake_prepare();
  double worst = 0.0, times[31];
  int passed = cake_both(cake_trial(1, &worst), cake_trial(0, &worst));
  cudaEvent_t begin, end;
  cake_must(cudaEventCreate(&begin), "event"), cake_must(cudaEventCreate(&end), "event");
  int repeats = 1;
  for (size_t s = 0; s < CAKE_COUNT(times);) {
    float ms;
    cake_restore();
    cake_must(cudaEventRecord(begin), "event");
    for (int r = 0; r < repeats; ++r) cake_run();
    cake_must(cudaEventRecord(end), "event");
    cake_must(cudaEventSynchronize(end), "the kernel");
    cake_must(cudaEventElapsedTime(&ms, begin, end), "event");
    if (ms < 10.0f && repeats < 1 << 20) repeats *= 2;  // long samples: a launch's own cost and the clock's step vanish
    else times[s++] = 1e3 * ms / repeats;
  }
  passed = cake_both(passed, cake_trial(0, &worst));  // other inputs at the same places: nothing may be remembered
  qsort(times, CAKE_COUNT(times), sizeof times[0], cake_compare);
  cudaDeviceProp device;
  cake_must(cudaGetDeviceProperties(&device, 0), "device");
  cake_report(passed, worst);
  printf(", \"time_us\": %.6g, \"fastest_us\": %.6g, \"device\": \"%s\", \"cache\": \"warm\"}\n",
         times[CAKE_COUNT(times) / 2], times[0], device.name);
  cake_hold(times[CAKE_COUNT(times) / 2], times[0]);
  return passed == 0 ? 7 : 0;
}
