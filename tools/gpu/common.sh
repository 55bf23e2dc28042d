# Sourced by check.sh, probe.sh and bundle.sh: the programs of an unpacked bundle, the libraries that
# they need, and the models that all of them train. Before: `here` is the bundle's folder, `tiny` is
# true or false. After: `dptrain` and `unit` are commands, `ours` runs any other program with the
# bundle's libraries, `packages` are the folders of Python's nvidia packages.
# shellcheck shell=bash disable=SC2034,SC2154  # used, and set, by those who source it

find_programs() {  # name of the script, for messages
  local program
  for program in dptrain unit; do
    [ -x "$here/bin/$program" ] && continue
    printf '%s: error: %s was not found\n  run this from an unpacked bundle of tools/gpu/bundle.sh\n' \
      "$1" "$here/bin/$program" >&2
    exit 2
  done
  # The bundle's libraries are for its own programs only; the compiler's are used if this machine's are older.
  local libraries=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  LD_LIBRARY_PATH=$libraries "$here/bin/dptrain" --version >/dev/null 2>&1 || libraries=$here/lib/gcc:$libraries
  ours=(env "LD_LIBRARY_PATH=$libraries")
  dptrain=("${ours[@]}" "$here/bin/dptrain") unit=("${ours[@]}" "$here/bin/unit")
  mapfile -t packages < <(python3 -c '
import importlib.util, pathlib
nvidia = importlib.util.find_spec("nvidia")
print(*(f for root in nvidia.submodule_search_locations for f in sorted(pathlib.Path(root).glob("*"))), sep="\n")
' 2>/dev/null)
  if [ -z "${DPTRAIN_CUDA_PATH:-}" ] && [ ${#packages[@]} -gt 0 ]; then
    DPTRAIN_CUDA_PATH=$(printf '%s/lib:' "${packages[@]}")
    export DPTRAIN_CUDA_PATH
  fi
}

find_sanitizer() {  # prints the path of compute-sanitizer; nothing: it is not there
  local folder
  command -v compute-sanitizer && return
  for folder in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda "${packages[@]}"; do
    [ -x "$folder/bin/compute-sanitizer" ] && printf '%s\n' "$folder/bin/compute-sanitizer" && return
  done
}

# The second line of a bench.csv, whose columns are named in the first.
bench_row() {  # name, file
  awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i }
    NR == 2 { printf "%-35s %10.1f us a step %10.0f samples/s\n", name, $at["ms_per_sample"] * $at["batch_size"] * 1000,
              $at["samples_per_second"] }' "$2"
}

# Fashion-MNIST's sizes, from a formula: no data has to be there. A net of convolutions and batch norm, one of layers
# that are placed on devices, and a GPT.
set_models() {
  mlp=("$here/configs/fmnist_single.yaml" optimizer.lr=0.001 log.every=1 epochs=1)
  resnet=("$here/configs/large/resnet18.yaml" log.every=1 evaluate=true)
  placed=("$here/configs/split_devices.yaml" log.every=1 epochs=1)
  gpt=("$here/configs/gpt_shakespeare.yaml" optimizer.lr=0.0001 log.every=1 epochs=1)
  local images='samples: 12000, test_samples: 1000, classes: 10, shape: [1, 28, 28]'
  local painted='samples: 160, test_samples: 32, shape: [3, 112, 112]'
  local large='samples: 384, test_samples: 64, classes: 1000, shape: [3, 224, 224]'
  local text='samples: 650, test_samples: 130, length: 64, vocabulary: 65, targets: next'
  if $tiny; then
    images='samples: 400, test_samples: 50, classes: 10, shape: [1, 28, 28]'
    painted='samples: 8, test_samples: 4, shape: [3, 16, 16]'
    text='samples: 6, test_samples: 3, length: 8, vocabulary: 65, targets: next'
    mlp+=(data.batch_size=50)
    resnet+=(data.batch_size=4 steps=1)  # of so small images the second step's loss depends on every bit
    gpt+=(data.batch_size=4 evaluate.batch_size=4)
  fi
  mlp+=("data.dataset={synthetic_images: {$images}}")
  resnet+=("data.dataset={synthetic_images: {$painted}}")
  gpt+=("data.dataset={synthetic_tokens: {$text}}")
  resnet50=("$here/configs/large/resnet50.yaml" data.batch_size=128 "data.dataset={synthetic_images: {$large}}")
  if $tiny; then resnet50=("$here/configs/lenet.yaml" data.batch_size=4 "data.dataset={synthetic_images: {$images}}"); fi
  # 120 steps of batches of 100.
  mlp120=("${mlp[@]}" data.batch_size=100)
  if $tiny; then mlp120=("${mlp[@]}"); fi
}

# What probe.sh compares a GPU's runs with: losses of CPUs, to FOLDER/NAME.jsonl.
cpu_metrics() {  # folder
  local name runs=$1/runs
  mkdir -p "$1" || return
  for name in mlp mlp-ddp-1 mlp-ddp-2 resnet18 gpt; do
    local how
    case $name in
      mlp) how=("${mlp120[@]}") ;;
      mlp-ddp-1) how=("${mlp120[@]}" parallel=ddp devices=1) ;;
      mlp-ddp-2) how=("${mlp120[@]}" parallel=ddp devices=2) ;;
      resnet18) how=("${resnet[@]}" optimizer.lr=0.001) ;;
      gpt) how=("${gpt[@]}") ;;
    esac
    "${dptrain[@]}" "${how[@]}" device=cpu "out=$runs/$name" >"$1/$name.log" 2>&1 || {
      tail -n 5 "$1/$name.log" >&2
      return 1
    }
    mv "$runs/$name/metrics.jsonl" "$1/$name.jsonl" && rm "$1/$name.log" || return
  done
  rm -r "$runs"
}
