# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # the lists are used by the scripts that source this
# Installs Debian packages that are missing; starts none of the services that they bring. Sourced by the other scripts.

BUILD_PACKAGES=(cmake ninja-build gcc g++ libc6-dev pkg-config libelf-dev libdw-dev libiberty-dev liblzma-dev nettle-dev libzydis-dev zlib1g-dev)
TEST_PACKAGES=(libcmocka-dev libunwind-dev binutils curl groff-base mandoc python3 redis-server redis-tools nginx-light musl-tools strace dwz btrfs-progs xfsprogs
    libdebuginfod-dev libjemalloc-dev libgoogle-perftools-dev libmimalloc-dev libpython3-dev python3-greenlet default-jdk-headless
    chromium protobuf-compiler)

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "$0: not root, and there is no sudo: cannot run $*" >&2
        return 1
    fi
}

# Debian asks policy-rc.d whether a package may start its service; 101 forbids it. A file that is there already stays.
forbid_services() {
    [ -e /usr/sbin/policy-rc.d ] && return
    printf '#!/bin/sh\nexit 101\n' | as_root tee /usr/sbin/policy-rc.d >/dev/null
    as_root chmod 755 /usr/sbin/policy-rc.d
    policy_is_ours=1
}

allow_services() {
    [ -n "${policy_is_ours:-}" ] && as_root rm -f /usr/sbin/policy-rc.d
    policy_is_ours=
}

# Another apt, as unattended-upgrades runs one, ends by itself.
APT_WAIT=(-o DPkg::Lock::Timeout=600)

# install_packages NAME...: what is installed already is left alone, and apt is not called at all when nothing is missing.
install_packages() {
    local missing=() name code=0
    for name in "$@"; do
        dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
    done
    [ ${#missing[@]} = 0 ] && return 0
    echo "installing ${missing[*]}"
    trap allow_services EXIT
    forbid_services
    as_root env DEBIAN_FRONTEND=noninteractive apt-get "${APT_WAIT[@]}" -q update &&
        as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get "${APT_WAIT[@]}" -qy --no-install-recommends install \
            "${missing[@]}" ||
        code=$?
    allow_services
    trap - EXIT
    return $code
}
