// The losses of a sample whose output holds several vectors, and their derivatives: functions of
// pointers to the vectors, computed in double. Formulas and limits are those of torch.nn.
#pragma once

#include <cstdint>

#include "graph/formulas/math.h"

namespace dpt::formula {

// ---- cosine_embedding_loss ----

// Of two vectors: their squares, and their product.
struct Angle {
  double a = 1e-12, b = 1e-12, ab = 0;
};
DPT_FORMULA double cosine(const Angle& angle) { return angle.ab / ::sqrt(angle.a * angle.b); }

// y: [2, width]
template <class T>
DPT_FORMULA Angle angle_of(const T* y, int64_t width) {
  Angle out;
  for (int64_t i = 0; i < width; ++i) {
    const double a = static_cast<double>(y[i]), b = static_cast<double>(y[width + i]);
    out.a += a * a;
    out.b += b * b;
    out.ab += a * b;
  }
  return out;
}

// A sample's loss, and its derivative by the cosine.
struct CosineTerm {
  double value = 0, slope = 0;
};

DPT_FORMULA CosineTerm cosine_term(const Angle& angle, double target, double margin) {
  const double like = cosine(angle);
  if (target == 1) return {1 - like, -1};
  if (target != -1 || like <= margin) return {};
  return {like - margin, 1};
}

// The derivative of the cosine by an element x of the vector whose square is `square`; `other` is
// the same element of the other vector.
DPT_FORMULA double cosine_slope(const Angle& angle, double x, double square, double other) {
  return other / ::sqrt(angle.a * angle.b) - cosine(angle) * x / square;
}

// ---- dice_loss ----

// The sums of p t and of p + t over a sample's channel, with probabilities p and targets t.
struct Overlap {
  double both = 0, all = 0;
};
DPT_FORMULA void add(Overlap& o, double p, double t) {
  o.both += p * t;
  o.all += p + t;
}
DPT_FORMULA double dice(const Overlap& o, double smooth) {
  return 1 - (2 * o.both + smooth) / (o.all + smooth);
}
// The derivative by the probability at a position with the target t.
DPT_FORMULA double dice_slope(const Overlap& o, double t, double smooth) {
  const double all = o.all + smooth;
  return ((2 * o.both + smooth) / all - 2 * t) / all;
}

// ---- triplet_margin_loss ----

struct TripletSettings {
  double margin, p, eps;
  bool swap;
};

// p infinite: the largest difference. Equal ones share its slope, as in PyTorch.
struct Distance {
  double value = 0, share = 1;
};

// The distances of a sample's vectors, and its loss, which counts if it is above 0.
struct Triplet {
  Distance positive, negative, swapped;
  double loss = 0;
  double swapped_share = 0;  // of the loss; equal distances have half each, as in PyTorch
};

template <class T>
DPT_FORMULA Distance distance(const T* x, const T* y, int64_t width, const TripletSettings& s) {
  double sum = 0, most = 0, count = 0;
  for (int64_t i = 0; i < width; ++i) {
    const double apart = abs(static_cast<double>(x[i]) - static_cast<double>(y[i]) + s.eps);
    if (s.p == HUGE_VAL) {
      if (apart == most) ++count;
      if (apart > most || apart != apart) {
        most = apart;
        count = 1;
      }
    } else {
      sum += ::pow(apart, s.p);
    }
  }
  if (s.p == HUGE_VAL) return {most, 1 / count};
  return {::pow(sum, 1 / s.p)};
}

// y: [3, width], the anchor, the positive and the negative
template <class T>
DPT_FORMULA Triplet triplet_of(const T* y, int64_t width, const TripletSettings& s) {
  const T *const p = y + width, *const n = p + width;
  Triplet out;
  out.positive = distance(y, p, width, s);
  out.negative = distance(y, n, width, s);
  double least = out.negative.value;
  if (s.swap) {
    out.swapped = distance(p, n, width, s);
    const double other = out.swapped.value;
    out.swapped_share = other < least ? 1 : other == least ? 0.5 : 0;
    if (other < least) least = other;
  }
  out.loss = out.positive.value - least + s.margin;
  return out;
}

// The derivative of distance(x, y), which is d, by an element of x; the one by y's is its negative.
DPT_FORMULA double distance_slope(double x, double y, const Distance& d, const TripletSettings& s) {
  const double apart = x - y + s.eps;
  if (d.value == 0 || apart == 0) return 0;
  return (apart < 0 ? -1 : 1) * d.share * ::pow(abs(apart) / d.value, s.p - 1);
}

struct TripletSlopes {
  double anchor = 0, positive = 0, negative = 0;
};

// The derivatives of the loss by element i of the three vectors.
template <class T>
DPT_FORMULA TripletSlopes triplet_slopes(const T* y, int64_t width, int64_t i, const Triplet& t,
                                         const TripletSettings& s) {
  const double a = static_cast<double>(y[i]), p = static_cast<double>(y[width + i]),
               n = static_cast<double>(y[2 * width + i]);
  const double like = distance_slope(a, p, t.positive, s);
  const double unlike = (1 - t.swapped_share) * distance_slope(a, n, t.negative, s);
  const double swapped = s.swap ? t.swapped_share * distance_slope(p, n, t.swapped, s) : 0;
  return {like - unlike, -like - swapped, unlike + swapped};
}

}  // namespace dpt::formula
