#include <cmath>

#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {
namespace {

// Two heads of two columns at three positions: sin(0.7 i); dy: cos(0.3 i).
Given waves(Shape s, double frequency, double (*wave)(double)) {
  Given n{f64(s), {}};
  for (int64_t i = 0; i < s.elements(); ++i)
    n.content.push_back(wave(static_cast<double>(i) * frequency));
  return n;
}

struct Expected {
  bool causal;
  std::vector<double> y, logsumexp, dqkv;
};
// torch.nn.functional.scaled_dot_product_attention in double, and what autograd makes of it.
const Expected kTorch[] = {
    {false,
     {-0.1306891068218607, -0.2373751540327618, -0.35500000739201176, -0.39135191000553265,
      -0.28223835083299315, -0.36125847285239726, 0.29174757249732697, 0.4493646107858078,
      0.4825111735984914, 0.5052222382297981, 0.1733585136990718, 0.18658993661256484},
     {1.1564826919520832, 1.2532369375997734, 1.4333788731122759, 1.3797894416628722,
      1.2910090071589997, 1.1370916677476326},
     {-0.58422631324819,    -0.5173449148368955,  -0.2747149098436115,  -0.05680649713487723,
      -0.21459698940533423, -0.25323831142571457, 0.3914701476666397,   0.19763371535126273,
      0.20364691645940808,  0.056428155511584845, -0.5272882108467507,  -0.7178135557020242,
      -0.0803511777243046,  -0.0549790248485618,  0.2297393664721712,   0.22265889365678646,
      0.334728789093632,    0.5681310918834321,   0.06887036219437719,  0.08824225326209804,
      -0.21086035289727217, -0.37412856573356223, -0.04147112103271134, -0.16953543459196296,
      0.4652087073175521,   0.2297393381701637,   0.610274968103914,    0.5506472600413757,
      -0.12013179968829778, -0.31489278045771757, -0.4603405098610168,  -0.2858759686133607,
      0.6321774753732923,   0.43970195899822534,  0.17690035549560795,  0.01663308405592906}},
    {true,
     {-0.6312666378723216, 0.016813900484349713, 0.6569865987187891, 0.9881682338770003,
      -0.1471422378097115, 0.26424783144256436, 0.5789245971213447, 0.6858985268425346,
      0.4825111735984914, 0.5052222382297981, 0.1733585136990718, 0.18658993661256484},
     {-0.15979252757608717, 0.4778113438622449, 1.4333788731122759, -1.2070004506470071,
      1.086209774153995, 1.1370916677476326},
     {0,
      0,
      0,
      0,
      -0.2769134502116345,
      -0.24502546193916538,
      0.27867783332596285,
      0.06221771685163423,
      1.0726510137872558,
      0.7823790723903202,
      0.20313792484416063,
      -0.21585474892911372,
      -0.12576572937110728,
      -0.025585777883709537,
      0.08497608888502667,
      0.15508460364484916,
      0.3711095038043978,
      0.3485670717787486,
      -0.0943796488193378,
      -0.07758197863850103,
      -0.38989453164893695,
      -0.5895218371366164,
      -0.37068930906339886,
      -0.4311228863017026,
      0.4652087073175521,
      0.2297393381701637,
      0.610274968103914,
      0.5506472600413757,
      -0.09419605359276331,
      -0.10354160983958315,
      -0.18429818450662505,
      0.015364261786866772,
      -0.05779244320289062,
      -0.07085568647745573,
      -0.2243075921646157,
      -0.22373827100724167}}};

}  // namespace

TEST_CASE("attention and its gradient are torch's") {
  const Given qkv = waves({1, 3, 12}, 0.7, std::sin), dy = waves({1, 3, 4}, 0.3, std::cos);
  for (const Expected& e : kTorch) {
    CAPTURE(e.causal);
    const Attention attrs{.heads = 2, .causal = e.causal};
    CHECK(close(run_op("attention", {qkv}, attrs), e.y));
    CHECK(close(run_op("attention", {qkv}, attrs, {}, 1), e.logsumexp));
    const std::vector<Given> in = {dy, qkv, {f64({1, 3, 4}), e.y}, {f64({1, 2, 3}), e.logsumexp}};
    CHECK(close(run_op("attention_gradient", in, attrs), e.dqkv));
  }
}

TEST_CASE("scores that exp can't take alone do no harm") {
  // One position's score is larger by 800 than the other's.
  const std::vector<Given> in = {{f64({1, 2, 3}), {1, 1000, 5, 1, 200, 7}}};
  CHECK(run_op("attention", in, Attention{}) == std::vector<double>{5, 5});
  CHECK(run_op("attention", in, Attention{}, {}, 1) == std::vector<double>{1000, 1000});
}

TEST_CASE("attention names what does not fit") {
  CHECK(refusal("attention", {f32({4, 12})}, Attention{}) ==
        "attention: [4, 12] is not [N, T, 3E]: q, k and v of each position");
  CHECK(refusal("attention", {f32({2, 4, 8})}, Attention{}) ==
        "attention: [2, 4, 8] is not [N, T, 3E]: q, k and v of each position");
  CHECK(refusal("attention", {f32({2, 4, 12})}, Attention{.heads = 3}) ==
        "attention: q, k and v of [2, 4, 12] have 4 columns each, which 3 heads can't share");
  CHECK(refusal("attention", {i32({2, 4, 12})}, Attention{}) ==
        "attention: the input must be real numbers, not i32[2, 4, 12]");
}

}  // namespace dpt
