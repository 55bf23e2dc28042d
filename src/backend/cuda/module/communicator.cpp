#include "backend/cuda/module/communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <nccl.h>

#include "backend/cuda/interface/libraries.h"
#include "backend/cuda/interface/settle.h"
#include "backend/cuda/module/stream.h"
#include "base/fail.h"

namespace dpt::cuda {
namespace {

// The functions of NCCL that are used.
struct Functions {
  explicit Functions(const FoundLibrary& library) {
    if (!library.handle) fail(Fault::device, "{}", library.problem());
    const auto find = [&](auto*& function, const char* name) {
      function = function_of<std::remove_reference_t<decltype(*function)>>(library, name);
      if (!function)
        fail(Fault::device, "{} has no {}; install NCCL 2.14 or newer", library.path, name);
    };
    find(get_unique_id, "ncclGetUniqueId");
    find(comm_init, "ncclCommInitRankConfig");
    find(comm_finalize, "ncclCommFinalize");
    find(comm_destroy, "ncclCommDestroy");
    find(comm_abort, "ncclCommAbort");
    find(group_start, "ncclGroupStart");
    find(group_end, "ncclGroupEnd");
    find(async_error, "ncclCommGetAsyncError");
    find(all_reduce, "ncclAllReduce");
    find(reduce_scatter, "ncclReduceScatter");
    find(all_gather, "ncclAllGather");
    find(broadcast, "ncclBroadcast");
    find(send, "ncclSend");
    find(receive, "ncclRecv");
    find(error_string, "ncclGetErrorString");
    find(last_error, "ncclGetLastError");
  }
  decltype(ncclGetUniqueId)* get_unique_id = nullptr;
  decltype(ncclCommInitRankConfig)* comm_init = nullptr;
  decltype(ncclCommFinalize)* comm_finalize = nullptr;
  decltype(ncclCommDestroy)* comm_destroy = nullptr;
  decltype(ncclCommAbort)* comm_abort = nullptr;
  decltype(ncclGroupStart)* group_start = nullptr;
  decltype(ncclGroupEnd)* group_end = nullptr;
  decltype(ncclCommGetAsyncError)* async_error = nullptr;
  decltype(ncclAllReduce)* all_reduce = nullptr;
  decltype(ncclReduceScatter)* reduce_scatter = nullptr;
  decltype(ncclAllGather)* all_gather = nullptr;
  decltype(ncclBroadcast)* broadcast = nullptr;
  decltype(ncclSend)* send = nullptr;
  decltype(ncclRecv)* receive = nullptr;
  decltype(ncclGetErrorString)* error_string = nullptr;
  decltype(ncclGetLastError)* last_error = nullptr;
};

const Functions& nccl() {
  static const Functions functions(find_library("libnccl.so.2"));
  return functions;
}

void check(ncclResult_t status, ncclComm_t comm, const char* call) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  const char* more = comm ? nccl().last_error(comm) : "";
  throw Error(Fault::rank, fmt::format("{}: {}{}{}", call, nccl().error_string(status),
                                       *more ? ": " : "", more));
}

ncclDataType_t type_of(DType t) {
  switch (t) {
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::f64:
      return ncclFloat64;
    default:
      fail(Fault::device, "NCCL is not asked to sum {}", name_of(t));
  }
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const CommunicatorId& id, int rank, int ranks, WhileWaiting waiting,
                   int most_blocks)
      : rank_(rank), waiting_(std::move(waiting)) {
    ncclUniqueId theirs;
    static_assert(sizeof theirs.internal == std::tuple_size_v<CommunicatorId>);
    std::memcpy(theirs.internal, id.data(), id.size());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // non-blocking, so that the wait for a missing rank can be abandoned
    if (most_blocks > 0) config.maxCTAs = most_blocks;
    const ncclResult_t status = nccl().comm_init(&comm_, ranks, theirs, rank, &config);
    try {
      dpt::cuda::check(status, comm_, "ncclCommInitRankConfig");
      settle("ncclCommInitRankConfig");
    } catch (...) {
      abort();
      throw;
    }
  }
  ~NcclCommunicator() override { abort(); }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  void all_reduce(Stream& stream, void* data, size_t count, DType dtype) override {
    need_comm();
    dpt::cuda::check(
        nccl().all_reduce(data, data, count, type_of(dtype), ncclSum, comm_, handle_of(stream)),
        comm_, "ncclAllReduce");
    settle("ncclAllReduce");
  }
  void reduce_scatter(Stream& stream, void* data, size_t count, DType dtype) override {
    need_comm();
    dpt::cuda::check(nccl().reduce_scatter(data, own_row(data, count, dtype), count, type_of(dtype),
                                           ncclSum, comm_, handle_of(stream)),
                     comm_, "ncclReduceScatter");
    settle("ncclReduceScatter");
  }
  void all_gather(Stream& stream, void* data, size_t count, DType dtype) override {
    need_comm();
    dpt::cuda::check(nccl().all_gather(own_row(data, count, dtype), data, count, type_of(dtype),
                                       comm_, handle_of(stream)),
                     comm_, "ncclAllGather");
    settle("ncclAllGather");
  }
  void broadcast(Stream& stream, void* data, size_t bytes, int root) override {
    need_comm();
    dpt::cuda::check(nccl().broadcast(data, data, bytes, ncclUint8, root, comm_, handle_of(stream)),
                     comm_, "ncclBroadcast");
    settle("ncclBroadcast");
  }
  void send(Stream& stream, const void* data, size_t bytes, int to) override {
    need_comm();
    dpt::cuda::check(nccl().send(data, bytes, ncclUint8, to, comm_, handle_of(stream)), comm_,
                     "ncclSend");
    settle("ncclSend");
  }
  void receive(Stream& stream, void* data, size_t bytes, int from) override {
    need_comm();
    dpt::cuda::check(nccl().receive(data, bytes, ncclUint8, from, comm_, handle_of(stream)), comm_,
                     "ncclRecv");
    settle("ncclRecv");
  }
  void begin_group() override {
    need_comm();
    dpt::cuda::check(nccl().group_start(), comm_, "ncclGroupStart");
    groups_ = true;
  }
  void end_group() override {
    groups_ = false;
    dpt::cuda::check(nccl().group_end(), comm_, "ncclGroupEnd");
    settle("ncclGroupEnd");
  }
  // Waits until NCCL's own thread has recorded its work, which must happen before the capture ends.
  void cancel_group() noexcept override {
    groups_ = false;
    nccl().group_end();
    ncclResult_t state = ncclInProgress;
    try {
      dpt::cuda::settle(
          [&] {
            return nccl().async_error(comm_, &state) == ncclSuccess && state == ncclInProgress;
          },
          [](double) { throw Error(Fault::rank, "NCCL: a group was given up"); });
    } catch (const Error&) {  // the caller has an error already
    }
  }
  void check() override {
    need_comm();
    ncclResult_t state = ncclSuccess;
    dpt::cuda::check(nccl().async_error(comm_, &state), comm_, "ncclCommGetAsyncError");
    dpt::cuda::check(state, comm_, "NCCL");
  }
  void finish() override {
    need_comm();
    dpt::cuda::check(nccl().comm_finalize(comm_), comm_, "ncclCommFinalize");
    settle("ncclCommFinalize");
    dpt::cuda::check(nccl().comm_destroy(std::exchange(comm_, nullptr)), nullptr,
                     "ncclCommDestroy");
  }
  bool alive() const { return comm_ != nullptr; }
  void abort() noexcept override {
    if (comm_) nccl().comm_abort(comm_);
    comm_ = nullptr;
  }

 private:
  // The address that NCCL expects for in-position calls.
  std::byte* own_row(void* data, size_t count, DType dtype) const {
    return static_cast<std::byte*>(data) + static_cast<size_t>(rank_) * count * size_of(dtype);
  }
  void need_comm() const {
    if (!comm_) throw Error(Fault::rank, "NCCL: this communicator was given up");
  }
  // A call of a non-blocking communicator may continue after it has returned, until all ranks have
  // made it. Calls within a group do so at the group's end.
  void settle(const char* call) {
    if (groups_) return;
    dpt::cuda::settle(
        [&] {
          ncclResult_t state = ncclInProgress;
          dpt::cuda::check(nccl().async_error(comm_, &state), comm_, "ncclCommGetAsyncError");
          dpt::cuda::check(state, comm_, call);
          return state == ncclInProgress;
        },
        waiting_);
  }
  int rank_;
  WhileWaiting waiting_;
  ncclComm_t comm_ = nullptr;
  bool groups_ = false;  // between begin_group() and end_group()
};

}  // namespace

std::string nccl_problem() {
  try {
    nccl();
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

CommunicatorId new_nccl_id() {
  ncclUniqueId theirs;
  check(nccl().get_unique_id(&theirs), nullptr, "ncclGetUniqueId");
  CommunicatorId id;
  std::memcpy(id.data(), theirs.internal, id.size());
  return id;
}

std::unique_ptr<Communicator> join_nccl(const CommunicatorId& id, int rank, int ranks,
                                        const WhileWaiting& waiting, int most_blocks) {
  return std::make_unique<NcclCommunicator>(id, rank, ranks, waiting, most_blocks);
}

// Within a group, each call only tells its kernels to end; what waits for the GPU happens at the
// group's end.
void abort_nccl(std::span<Communicator* const> communicators) noexcept {
  const auto any = [](Communicator* c) {
    return c != nullptr && static_cast<NcclCommunicator*>(c)->alive();
  };
  if (std::none_of(communicators.begin(), communicators.end(), any)) return;
  nccl().group_start();
  for (Communicator* c : communicators)
    if (c != nullptr) c->abort();
  nccl().group_end();
}

}  // namespace dpt::cuda
