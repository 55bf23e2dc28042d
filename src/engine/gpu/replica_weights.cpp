#include "engine/gpu/replica_weights.h"

#include "base/fail.h"

namespace dpt {

void ReplicaWeights::gather() {
  update_.download_weights(worker_.buffers);
  worker_.gpus.barrier();
  if (!worker_.first_of_host()) check_equal();
  worker_.gpus.barrier();  // all must have compared before the host's weights change or are saved
  worker_.among_hosts([](GpuHostExchange& e) { e.compare_weights(); });
}

void ReplicaWeights::check_equal() {
  if (!update_.equal(0, worker_.share.trained(), worker_.buffers.weights()))
    fail(Fault::device,
         "after the last step, the weights on GPU {} differ from those on GPU {}, so a sum over "
         "GPUs was wrong; nothing is saved. Set `backend: gloo`, which sums on the CPUs",
         worker_.gpus.number(),
         worker_.gpus.number() - worker_.gpus.worker() + worker_.gpus.device());
}

void ReplicaWeights::share_running_statistics() {
  const Session& session = worker_.session;
  if (session.devices.topology.replicas() == 1 ||
      session.model.layout.trainable == session.model.layout.total)
    return;
  const size_t begin = worker_.share.trained(), end = worker_.share.elements();
  if (worker_.shard == 0) update_.read(begin, end, worker_.buffers.weights());
  worker_.gpus.barrier();
  worker_.among_hosts([](GpuHostExchange& e) { e.results().send_statistics(); });
  if (worker_.shard != 0) update_.write(begin, end, worker_.buffers.weights());
  worker_.gpus.barrier();
}

}  // namespace dpt
