// Shared by the files that use oneDNN. Only included if dptrain is built with it.
#pragma once

#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "backend/cpu/bf16_products.h"
#include "graph/kernel.h"

namespace dpt::onednn {

dnnl::engine& engine();
// Makes oneDNN use one core for primitives that this thread creates or runs. oneDNN asks OpenMP for
// the number of threads, which is a setting of the calling thread.
void use_one_core();

// Why oneDNN multiplies no bf16 on this CPU; empty: it does.
std::string refuses_bf16_without_amx();
std::string refuses_bf16(Bf16Products asked);  // unless VDPBF16PS is used

// Why oneDNN cannot take the query: a type other than f32, or bf16 with a reason against it; empty:
// it can.
std::string refuses(const KernelQuery& query, const std::string& against_bf16);

// REQUIRES: f32 or bf16.
dnnl::memory::data_type type_of(const TensorDesc& desc);

}  // namespace dpt::onednn
