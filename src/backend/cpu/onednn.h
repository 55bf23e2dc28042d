// Shared by the files that use oneDNN. Only included if dptrain is built with it.
#pragma once

#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "graph/kernel.h"

namespace dpt::onednn {

dnnl::engine& engine();
// Makes oneDNN use one core for primitives that this thread creates or runs. oneDNN asks OpenMP for
// the number of threads, which is a setting of the calling thread.
void use_one_core();

// Why oneDNN cannot take the query: a type other than f32, or bf16 without AMX; empty: it can.
std::string refuses(const KernelQuery& query);

// REQUIRES: f32 or bf16.
dnnl::memory::data_type type_of(const TensorDesc& desc);

}  // namespace dpt::onednn
