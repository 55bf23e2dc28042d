// The table of pointwise losses: a name here and its file in losses/ make the word of a spec, an
// operator and its gradient, kernels for CPUs and GPUs, and the line of an exported program.
#pragma once

#include "graph/formulas/losses/bce.h"
#include "graph/formulas/losses/bce_with_logits.h"
#include "graph/formulas/losses/hinge_embedding.h"
#include "graph/formulas/losses/huber.h"
#include "graph/formulas/losses/kl_div.h"
#include "graph/formulas/losses/l1.h"
#include "graph/formulas/losses/margin_ranking.h"
#include "graph/formulas/losses/mse.h"
#include "graph/formulas/losses/multilabel_soft_margin.h"
#include "graph/formulas/losses/poisson_nll.h"
#include "graph/formulas/losses/sigmoid_focal.h"
#include "graph/formulas/losses/smooth_l1.h"
#include "graph/formulas/losses/soft_margin.h"

namespace dpt::formula {

using PointwiseLosses =
    FormulaList<Mse, L1, SmoothL1, Huber, Bce, BceWithLogits, KlDiv, PoissonNll, SoftMargin,
                MultilabelSoftMargin, HingeEmbedding, SigmoidFocal, MarginRanking>;

template <class F>
inline constexpr int kLossOf = index_in<F>(PointwiseLosses{});

}  // namespace dpt::formula
