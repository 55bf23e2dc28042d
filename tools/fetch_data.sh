#!/bin/sh
# Fetches a public data set: tools/fetch_data.sh fashion_mnist|mnist|kmnist|cifar10|cifar100|tiny_shakespeare [--to DIR] [--limit SECONDS] [--offline]
# Each file is taken from the first mirror that delivers it with the right checksum. --to: default datasets/NAME, in
# the checkout or, if this script is installed, in the working directory. --limit: seconds in total, default none.
# --offline: only check the files. Exit codes: 0 done, 2 usage, 4 download failed, or files missing with --offline.
set -eu

usage() {
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
}

name='' to='' limit=0 offline=no
while [ $# -gt 0 ]; do
  case $1 in
    --to) [ $# -gt 1 ] || usage; to=$2; shift ;;
    --limit) [ $# -gt 1 ] || usage; limit=$2; shift ;;
    --offline) offline=yes ;;
    -h | --help) usage ;;
    -*) echo "fetch_data: unknown option $1" >&2; usage ;;
    *) [ -z "$name" ] || usage; name=$1 ;;
  esac
  shift
done
case $limit in '' | *[!0-9]*) echo "fetch_data: --limit takes whole seconds, not '$limit'" >&2; exit 2 ;; esac

root=$(cd "$(dirname "$0")/.." && pwd)
files='train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte'
packed=.gz  # how files of the mirrors, and here, end; nothing: they are plain
case $name in
  fashion_mnist | fashion-mnist)
    name=fashion_mnist
    mirrors='http://fashion-mnist.s3-website.eu-central-1.amazonaws.com https://storage.googleapis.com/tensorflow/tf-keras-datasets' ;;
  mnist)
    mirrors='https://ossci-datasets.s3.amazonaws.com/mnist https://storage.googleapis.com/cvdf-datasets/mnist' ;;
  kmnist)
    mirrors='http://codh.rois.ac.jp/kmnist/dataset/kmnist' ;;
  cifar10)
    files='cifar-10-binary.tar' mirrors='https://www.cs.toronto.edu/~kriz' ;;
  cifar100)
    files='cifar-100-binary.tar' mirrors='https://www.cs.toronto.edu/~kriz' ;;
  tiny_shakespeare | tiny-shakespeare)
    name=tiny_shakespeare
    files='input.txt' packed='' mirrors='https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare' ;;
  *) [ -z "$name" ] || echo "fetch_data: no data set '$name'; there are fashion_mnist, mnist, kmnist, cifar10, cifar100 and tiny_shakespeare" >&2; usage ;;
esac
place=$root
[ -e "$root/meson.build" ] || place=.  # installed: only root writes there
to=${to:-$place/datasets/$name}
sums=$root/datasets/SHA256SUMS
md5s=$root/datasets/MD5SUMS
started=$(date +%s)

# The raw bytes' SHA-256 where it is known, so that any level of gzip passes; else the .gz file's MD5.
wanted_sha256() { sed -n "s|^\([0-9a-f]\{64\}\)  $name/$1\$|\1|p" "$sums"; }
wanted_md5() { sed -n "s|^\([0-9a-f]\{32\}\)  $name/$1.gz\$|\1|p" "$md5s"; }

# sound FILE NAME: whether the bytes are those that they should be.
sound() {
  sum=$(wanted_sha256 "$2")
  if [ -n "$sum" ]; then
    if [ -z "$packed" ] || [ "${1##*/}" = "$2" ]; then
      have=$(sha256sum < "$1")
    else
      gzip -tq < "$1" 2> /dev/null || return 1  # also for bytes after the end
      have=$(gzip -dc < "$1" | sha256sum)
    fi
  else
    sum=$(wanted_md5 "$2")
    have=$(md5sum < "$1")
  fi
  [ -n "$sum" ] && [ "${have%% *}" = "$sum" ]
}

seconds_left() {
  [ "$limit" -gt 0 ] || { echo 600; return; }
  echo $((limit - $(date +%s) + started))
}

temporary=''
trap 'rm -f "$temporary"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# fetch NAME: true once it is in place.
fetch() {
  for mirror in $mirrors; do
    left=$(seconds_left)
    url=$mirror/$1$packed
    if [ "$left" -le 0 ]; then
      echo "  $url: not tried, the $limit seconds are over" >&2
      continue
    fi
    temporary=$(mktemp "$to/.$1.XXXXXX")
    if why=$(curl -fsSL --retry 2 --connect-timeout 5 --max-time "$left" -A dptrain -o "$temporary" "$url" 2>&1); then
      if sound "$temporary" "$1"; then
        chmod 644 "$temporary"
        mv "$temporary" "$to/$1$packed"
        temporary=''
        echo "$1$packed: fetched from $mirror" >&2
        return 0
      fi
      echo "  $url: THIS MIRROR LIED: its bytes are not those of $name's $1" >&2
    else
      echo "  $url: $why" >&2
    fi
    rm -f "$temporary"
    temporary=''
  done
  return 1
}

missing=''
for file in $files; do
  if [ -f "$to/$file" ] && [ -n "$(wanted_sha256 "$file")" ] && sound "$to/$file" "$file"; then
    echo "$file: found" >&2
  elif [ -n "$packed" ] && [ -f "$to/$file.gz" ] && sound "$to/$file.gz" "$file"; then
    echo "$file.gz: found" >&2
  elif [ "$offline" = yes ]; then
    missing="$missing $file"
  elif ! command -v curl > /dev/null; then
    echo "fetch_data: curl is not installed" >&2
    exit 4
  else
    mkdir -p "$to"
    if ! fetch "$file"; then
      rmdir "$to" 2> /dev/null || true
      echo "fetch_data: $file could not be downloaded, see above. dptrain also runs without files: write" >&2
      echo "  data: {dataset: $([ "$name" = tiny_shakespeare ] && echo synthetic_tokens || echo synthetic_images)}" >&2
      exit 4
    fi
  fi
done
if [ -n "$missing" ]; then
  echo "fetch_data: missing or damaged in $to:$missing" >&2
  for mirror in $mirrors; do echo "  they are at $mirror" >&2; done
  exit 4
fi
echo "$to"
