// All names that a spec may use: the registries of all components.
#include "data/dataset.h"
#include "layers/initialisation.h"
#include "layers/layer.h"
#include "layers/loss.h"
#include "optim/optimizer.h"
#include "optim/precision.h"
#include "optim/schedule.h"
#include "parallel/mode.h"
#include "session/session.h"

namespace dpt {

Vocabulary vocabulary() {
  return {.layers = layer_words(),
          .losses = loss_words(),
          .optimizers = optimizer_words(),
          .schedules = schedule_words(),
          .datasets = dataset_words(),
          .transforms = transform_words(),
          .target_transforms = target_transform_words(),
          .modes = mode_words(),
          .precisions = precision_words(),
          .initialisations = initialisation_words()};
}

}  // namespace dpt
