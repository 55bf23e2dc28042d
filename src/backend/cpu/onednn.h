// What the files that know oneDNN share. Only for them, and only where dptrain is built with it.
#pragma once

#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "graph/kernel.h"

namespace dpt::onednn {

dnnl::engine& engine();
// Primitives of this thread take one core, when they are made and when they run. oneDNN asks
// OpenMP, whose answer belongs to the thread.
void use_one_core();

// Neither f32 nor, on CPUs with AMX, bf16; or empty.
std::string refuses(const KernelQuery& query);

// REQUIRES: f32 or bf16.
dnnl::memory::data_type type_of(const TensorDesc& desc);

}  // namespace dpt::onednn
