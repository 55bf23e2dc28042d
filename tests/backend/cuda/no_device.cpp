// In place of the CUDA runtime where cuDNN plans for a GPU that is not there: cudnn_frontend asks
// these things of a device. set_device says which one.
#include <cstdlib>

namespace {
int major_version, minor_version, multiprocessor_count;
}

// cudaDeviceAttr's numbers, and int for its codes: CUDA's headers would declare other types.
extern "C" {

void set_device(int compute, int multiprocessors) {
  major_version = compute / 100, minor_version = compute / 10 % 10;
  multiprocessor_count = multiprocessors;
}

int cudaGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cudaDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cudaDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 75:
      *value = major_version;
      return 0;
    case 76:
      *value = minor_version;
      return 0;
    case 16:
      *value = multiprocessor_count;
      return 0;
    default:
      std::abort();  // a new version asks for more
  }
}
}
