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

Registries registries() {
  return {.layers = layer_registry(),
          .losses = loss_registry(),
          .optimizers = optimizer_registry(),
          .schedules = schedule_registry(),
          .datasets = dataset_registry(),
          .transforms = transform_registry(),
          .target_transforms = target_transform_registry(),
          .modes = mode_registry(),
          .precisions = precision_registry(),
          .initialisations = initialisation_registry()};
}

}  // namespace dpt
