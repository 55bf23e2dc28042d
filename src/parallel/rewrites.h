// Rewrites of a plan that several modes share: each is a function from plan to plan.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/program/plan.h"
#include "parallel/topology.h"

namespace dpt {

// What a mode must know of the machine, the model and the run to rewrite a plan.
struct PlanTarget {
  Topology topology;
  bool gpus = false;
  // How replicas on GPUs exchange data: through memory that their hosts share; else by NCCL.
  bool by_host = false;
  // Each replica keeps the optimizer states of its piece of each bucket only.
  bool shards_states = false;
  // With several hosts: into how many buckets the gradients are divided (parallel/host_sums.h).
  size_t host_buckets = 0;
  // The first buckets, which are sent during the backward part: for each the instruction of the
  // part that completes it and all before it.
  std::vector<size_t> host_made_after{};

  // The gradients of each device of a replica: buckets, and what completes each of them with all
  // before it: an instruction of the backward part, or with stages an operation of the device's
  // schedule. Of one element on CPUs, where workers sum ranges instead.
  struct Buckets {
    std::vector<Bucket> buckets;
    std::vector<size_t> made_after;
  };
  std::vector<Buckets> gradients;

  // A model whose stages lie on several devices; empty: one stage.
  PipelineSchedule schedule;
  std::vector<int> stage_device;
  // The devices of a replica are in different processes, which send and receive.
  bool stages_are_processes = false;
  // Copies between stages: `stage` runs the copy, in its operations of `part`.
  struct StageCopy {
    Part part = Part::forward;
    int stage = 0, from = 0, to = 0;
  };
  std::vector<StageCopy> copies;
};

// Replaces the micro-batches' steps by a list for each device of a replica, if the model has
// several stages: the device's operations of the schedule, and what they wait for or exchange.
Plan place_stages(Plan plan, const PlanTarget& target);

// Adds what shares a step's gradients and weights: on CPUs barriers before gradients are summed and
// after the weights are updated, each worker summing and updating its own range; on GPUs the
// exchange between replicas; with several hosts the exchange between these.
Plan share_gradients(Plan plan, const PlanTarget& target);

// Adds the average of the replicas' weights and optimizer states in steps with When::averaged, if
// replicas own their weights.
Plan average_weights(Plan plan, const PlanTarget& target);

// Computes the loss of all replicas on topology.loss_device, if it names a device.
Plan gather_for_loss(Plan plan, const PlanTarget& target);

}  // namespace dpt
