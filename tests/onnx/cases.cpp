#include "onnx/cases.h"

#include <cstring>

#include "formats/safetensors.h"

namespace dpt::onnx {
namespace {

using golden::at;

template <class T>
std::vector<double> as_doubles(const SafeTensors::Entry& e) {
  std::vector<double> out;
  for (size_t i = 0; i < static_cast<size_t>(e.desc.shape.elements()); ++i) {
    T x{};
    std::memcpy(&x, e.data + i * sizeof(T), sizeof(T));
    out.push_back(static_cast<double>(x));
  }
  return out;
}

std::vector<double> content(const SafeTensors::Entry& e) {
  switch (e.desc.dtype) {
    case DType::f32:
      return as_doubles<float>(e);
    case DType::f64:
      return as_doubles<double>(e);
    case DType::i64:
      return as_doubles<int64_t>(e);
    case DType::i32:
      return as_doubles<int32_t>(e);
    case DType::u8:
      return as_doubles<uint8_t>(e);
    case DType::f16:
    case DType::bf16:
      break;
  }
  FAIL("onnx_nodes.py writes no ", name_of(e.desc.dtype));
  return {};
}

std::vector<Tensor> tensors(const Node& list, const std::string& name, const SafeTensors& file) {
  std::vector<Tensor> out;
  for (const Node& n : list.items) {
    Tensor& t = out.emplace_back();
    t.name = at(n, "name").text;
    if (t.name.empty()) continue;
    t.type = at(n, "type").text;
    if (const Node* shape = n.find("shape"))
      for (const Node& extent : shape->items)
        t.extents.push_back(static_cast<int64_t>(golden::number(extent)));
    if (const SafeTensors::Entry* e = file.find(name + "/" + t.name)) t.data = content(*e);
  }
  return out;
}

}  // namespace

double Case::number(std::string_view attribute, double otherwise) const {
  const Node* n = attributes.find(attribute);
  return n ? golden::number(*n) : otherwise;
}

std::string Case::word(std::string_view attribute, const std::string& otherwise) const {
  const Node* n = attributes.find(attribute);
  return n ? n->text : otherwise;
}

CaseFile read_cases(const std::string& folder) {
  CaseFile file{golden::read_document(folder + "/onnx_nodes.json"), {}};
  const SafeTensors contents = SafeTensors::read(folder + "/onnx_nodes.safetensors");
  for (const Node& n : at(file.document.root, "cases").items) {
    const std::string name = at(n, "name").text;
    file.cases.push_back({name, at(n, "op").text, at(n, "attributes"),
                          tensors(at(n, "inputs"), name, contents),
                          tensors(at(n, "outputs"), name, contents)});
  }
  return file;
}

}  // namespace dpt::onnx
