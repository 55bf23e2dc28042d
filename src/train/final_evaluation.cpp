#include "train/final_evaluation.h"

#include <utility>

#include "base/fail.h"
#include "train/best_weights.h"

namespace dpt {

Spec evaluation_spec(Spec spec, const std::string& weights) {
  spec.evaluate.on = true;
  spec.data.pad = false;        // only ddp pads
  spec.data.drop_last = false;  // the test set may be smaller than a batch
  spec.initial_weights = weights;
  spec.partial_weights = false;
  spec.locations.erase("initial_weights");  // the spec did not set these weights
  spec.parallel = mode_choice("single");
  spec.devices.count.reset();
  return spec;
}

void evaluate_final_test(const Session& s, const std::string& folder, const Outcome& outcome,
                         Reporter& reporter, const OpenGpu& open, std::span<const int> cores) {
  const std::string best = best_weights_file(folder);
  const bool kept = !outcome.best.metric.empty() && outcome.best.epoch > 0 &&
                    step_of_best_weights(best) == outcome.best.step;
  SessionQuery query{.data_of = &s.data};
  if (s.devices.on_gpu()) query.gpus = s.devices.gpus;
  Diagnostics d;
  const std::unique_ptr<const Session> session =
      make_session(evaluation_spec(s.settings.spec, kept ? best : model_file(folder)), query, d);
  if (!session)
    fail(Fault::spec, "the test set cannot be evaluated in one process:\n{}", d.render());
  reporter.final_test({.step = kept ? outcome.best.step : outcome.steps,
                       .epoch = kept ? outcome.best.epoch : outcome.epochs,
                       .best = kept,
                       .result = evaluate(*session, open, cores)});
}

}  // namespace dpt
