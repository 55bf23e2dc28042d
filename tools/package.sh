#!/usr/bin/env bash
# Makes packages of dptrain: a .deb for this Debian or Ubuntu, and a Python wheel that carries the
# program with the libraries it needs. What `meson install` installs is packed, and moved to where the
# package manager wants it; the program finds its files relative to itself.
set -u

usage() {
  cat <<'TEXT'
Usage: tools/package.sh [--deb] [--wheel] [--build DIR] [--out DIR]
  --deb        make a .deb only (default: both)
  --wheel      make a wheel only
  --build DIR  pack what is built in this meson build directory; default: build in build-package
  --out DIR    where the packages are written (default: dist)
Variables: DEBFULLNAME and DEBEMAIL name the maintainer of the .deb, SOURCE_DATE_EPOCH the time of all
files (default: of the last commit).
TEXT
}

fail() {  # what happened, what to do
  printf 'package.sh: error: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}

deb=false wheel=false build='' out=dist
while [ $# -gt 0 ]; do
  case $1 in
    --deb) deb=true ;;
    --wheel) wheel=true ;;
    --build | --out)
      [ $# -gt 1 ] || { usage >&2; exit 2; }
      if [ "$1" = --build ]; then build=$2; else out=$2; fi
      shift ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'package.sh: unknown option %s\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
if ! $deb && ! $wheel; then deb=true wheel=true; fi

{ mkdir -p "$out" && out=$(cd "$out" && pwd); } || fail "the folder of --out cannot be created" 'choose another one'
[ -z "$build" ] || build=$(cd "$build" && pwd) || fail '--build is not a folder' 'name a meson build directory'
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
cd "$here" || exit 1

needed=(meson python3 strip readelf)
if $deb; then needed+=(dpkg-deb dpkg-shlibdeps); fi
for tool in "${needed[@]}"; do
  command -v "$tool" >/dev/null ||
    fail "$tool is not installed" 'install meson python3 binutils dpkg-dev, as root: apt-get install PACKAGE'
done

if [ -z "$build" ]; then
  build=$here/build-package
  [ -e "$build/build.ninja" ] ||
    meson setup "$build" --prefix=/usr --buildtype=release -Dtests=disabled ||
    fail "meson could not set up $build, see above" "fix the error, remove $build, then run this again"
  ninja -C "$build" || fail "the build in $build failed, see the first error above" 'fix it, then run this again'
fi

work=$(mktemp -d) || fail "mktemp can't make a folder" "is \${TMPDIR:-/tmp} full or not writable?"
trap 'rm -rf "$work"' EXIT
umask 022
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

ask() { meson introspect "$build" "$1" | python3 -c "import json, sys; d = json.load(sys.stdin); print($2)"; }
version=$(ask --projectinfo 'd["version"]') || fail "$build is not a meson build directory" 'name one with --build'
prefix=$(ask --buildoptions '[o["value"] for o in d if o["name"] == "prefix"][0]')
DESTDIR=$work/stage meson install -C "$build" --no-rebuild --quiet --strip ||
  fail "'meson install' failed in $build, see above" "build everything there first: ninja -C $build"
tree=$work/stage$prefix
[ -x "$tree/bin/dptrain" ] || fail "$build installs no program" "is it a build directory of dptrain?"
[ -e "$tree/share/man/man1/dptrain.1" ] ||
  fail "$build has no manual page: it is of sanitizers, or for another processor" 'build without -Db_sanitize, natively'

# The control files and the layout that Debian's policy asks for.
make_deb() {
  local root=$work/deb doc maintainer architecture depends
  maintainer="${DEBFULLNAME:-dptrain developers} <${DEBEMAIL:-dptrain@example.org}>"
  architecture=$(dpkg --print-architecture)
  mkdir -p "$root/DEBIAN" "$work/shlibs/debian"
  cp -a "$tree" "$root/usr"
  find "$root/usr/lib" -name '*.so' -exec chmod 644 {} + 2>/dev/null  # no program: Debian's policy
  local share=$root/usr/share
  mv "$share/bash-completion/completions/dptrain.bash" "$share/bash-completion/completions/dptrain"
  mv "$share/zsh/site-functions" "$share/zsh/vendor-completions"
  gzip -9n "$share/man/man1/dptrain.1"
  doc=$share/doc/dptrain
  mkdir -p "$doc"
  {
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n'
    printf 'Upstream-Name: dptrain\n\nFiles: *\n%s\nLicense: Expat\n' "$(sed -n 's/^Copyright (c)/Copyright:/p' LICENSE)"
    sed -n '/^Permission/,$p' LICENSE | sed 's/^$/./; s/^/ /'
  } >"$doc/copyright"
  printf 'dptrain (%s) unstable; urgency=medium\n\n  * Version %s; docs/changelog.md of the sources lists the changes.\n\n -- %s  %s\n' \
    "$version" "$version" "$maintainer" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"

  # The CUDA module's libraries are NVIDIA's, and no package of Debian's: it is loaded where they are.
  printf 'Source: dptrain\n\nPackage: dptrain\nArchitecture: any\n' >"$work/shlibs/debian/control"
  depends=$(cd "$work/shlibs" && dpkg-shlibdeps -O "$root/usr/bin/dptrain" | sed -n 's/^shlibs:Depends=//p')
  # Where a module's own library is missing, the others still work.
  local recommends='ca-certificates, curl' suggests='' module libraries
  for module in "$root"/usr/lib/dptrain/libdptrain_{gloo,openmpi,mpich}.so; do
    [ -e "$module" ] || continue
    libraries=$(cd "$work/shlibs" && dpkg-shlibdeps -O "$module" 2>/dev/null | sed 's/^shlibs:Depends=//' |
      tr ',' '\n' | sed 's/^ *//' | grep -E '^lib(gloo|openmpi|mpich)' | paste -sd, | sed 's/,/, /g')
    case $module in
      *_gloo.so) recommends+=${libraries:+, $libraries} ;;
      *) suggests+=${libraries:+${suggests:+, }$libraries} ;;
    esac
  done
  [ -n "$depends" ] || fail 'dpkg-shlibdeps names no packages, see above' 'is the program linked with libraries of packages?'
  cat >"$root/DEBIAN/control" <<TEXT
Package: dptrain
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Recommends: $recommends
${suggests:+Suggests: $suggests
}Section: science
Priority: optional
Description: trainer of neural networks described in one YAML file
 dptrain reads layers, data, loss and optimizer from one YAML file and trains
 the network on one device, with data parallelism in one process or in several,
 or in a pipeline. Specs use PyTorch's names; initial weights and sample order
 are PyTorch's for the same seed.
TEXT
  (cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
  find "$root" -depth -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz --build "$root" "$out/dptrain_${version}_$architecture.deb" >/dev/null ||
    fail 'dpkg-deb failed, see above' "is $out writable?"
  printf '%s\n' "$out/dptrain_${version}_$architecture.deb"
}

if $deb; then make_deb; fi
if $wheel; then
  python3 tools/make_wheel.py --tree "$tree" --version "$version" --out "$out" ||
    fail 'tools/make_wheel.py failed, see above' 'fix the reported problem, then run this again'
fi
