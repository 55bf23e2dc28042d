// Describes the work of a library for messages and logs: "[100, 200] = [100, 784] x [784, 200] +
// bias in f32, f32".
#pragma once

#include <string>

#include "backend/cuda/interface/device_work.h"

namespace dpt::cuda {

std::string describe(const Matmul& m);
std::string describe(const DnnConvolution& c);
std::string describe(const DnnNorm& n);
std::string describe(const DnnPool& p);
std::string describe(const DnnAttention& a);

// All fields, for telling descriptions apart.
std::string all_of(const DnnConvolution& c);
std::string all_of(const DnnNorm& n);
std::string all_of(const DnnPool& p);
std::string all_of(const DnnAttention& a);

}  // namespace dpt::cuda
