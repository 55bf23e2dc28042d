// In place of libcuda.so.1 where cuDNN plans for a GPU that is not there: engines whose kernels are
// compiled at run time load them by the driver when a plan is made or restored. Here that succeeds,
// and everything that needs a GPU fails. The names are all that cuDNN 9.19 and its CUDA runtime
// look up.
namespace {
constexpr int kSuccess = 0, kNoDriver = 34;  // CUDA_ERROR_STUB_LIBRARY, as of the toolkit's stub
int some_handle;
int give(void** handle) {
  *handle = &some_handle;
  return kSuccess;
}
int give(int* value, int number) {
  *value = number;
  return kSuccess;
}
}  // namespace

extern "C" {

int cuInit(unsigned) { return kSuccess; }
int cuDriverGetVersion(int* version) { return give(version, 13000); }
int cuLibraryLoadData(void** library) { return give(library); }
int cuLibraryGetKernel(void** kernel) { return give(kernel); }
int cuKernelGetFunction(void** function) { return give(function); }
int cuModuleLoadData(void** module) { return give(module); }
int cuModuleGetFunction(void** function) { return give(function); }
int cuKernelGetAttribute(int* value) { return give(value, 0); }
int cuFuncGetAttribute(int* value) { return give(value, 0); }
int cuGetErrorString(int, const char** text) {
  *text = "there is no driver";
  return kSuccess;
}
int cuGetErrorName(int, const char** text) {
  *text = "CUDA_ERROR_STUB_LIBRARY";
  return kSuccess;
}

#define DPT_SUCCEEDS(name) \
  int name() { return kSuccess; }
DPT_SUCCEEDS(cuLibraryUnload)
DPT_SUCCEEDS(cuModuleUnload)
DPT_SUCCEEDS(cuKernelSetAttribute)
DPT_SUCCEEDS(cuFuncSetAttribute)
#undef DPT_SUCCEEDS

#define DPT_FAILS(name) \
  int name() { return kNoDriver; }
DPT_FAILS(cuCtxGetCurrent)
DPT_FAILS(cuCtxGetDevice)
DPT_FAILS(cuCtxGetLimit)
DPT_FAILS(cuCtxPopCurrent)
DPT_FAILS(cuCtxPushCurrent)
DPT_FAILS(cuDeviceGet)
DPT_FAILS(cuDeviceGetAttribute)
DPT_FAILS(cuDeviceGetCount)
DPT_FAILS(cuDevicePrimaryCtxRelease)
DPT_FAILS(cuDevicePrimaryCtxReset)
DPT_FAILS(cuDevicePrimaryCtxRetain)
DPT_FAILS(cuGetExportTable)
DPT_FAILS(cuGetProcAddress)
DPT_FAILS(cuGetProcAddress_v2)
DPT_FAILS(cuLaunchCooperativeKernel)
DPT_FAILS(cuLaunchKernel)
DPT_FAILS(cuLaunchKernelEx)
DPT_FAILS(cuLibraryLoadFromFile)
DPT_FAILS(cuLinkAddData)
DPT_FAILS(cuLinkAddData_v2)
DPT_FAILS(cuLinkAddFile_v2)
DPT_FAILS(cuLinkComplete)
DPT_FAILS(cuLinkCreate)
DPT_FAILS(cuLinkCreate_v2)
DPT_FAILS(cuLinkDestroy)
DPT_FAILS(cuMemcpyDtoH_v2)
DPT_FAILS(cuModuleGetGlobal_v2)
DPT_FAILS(cuModuleLoadDataEx)
DPT_FAILS(cuModuleLoadFatBinary)
DPT_FAILS(cuOccupancyMaxActiveBlocksPerMultiprocessor)
DPT_FAILS(cuOccupancyMaxPotentialClusterSize)
DPT_FAILS(cuStreamGetCtx)
DPT_FAILS(cuStreamSynchronize)
DPT_FAILS(cuTensorMapEncodeTiled)
#undef DPT_FAILS
}
