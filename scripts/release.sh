#!/usr/bin/env bash
# release.sh [PART ...]: makes what a release consists of below target/packages, from MELBA (default: target/release/melba, built when missing).
#   deb     melba_VERSION_ARCH.deb, by package.sh
#   tar     melba-VERSION-linux-ARCH.tar.xz: the binary, man pages, completions, the systemd unit
#   image   melba-VERSION-oci-ARCH.tar: a container image in OCI's layout, made without a daemon (apt-get download)
#   wheel   melba-VERSION-py3-none-PLATFORM.whl: for Python (pip)
#   sums    SHA256SUMS of all of them
# Without PART: all of these. release.sh test-image tests the image in a chroot (root), by test-image.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
melba=${MELBA:-target/release/melba}
out=target/packages
arch=$(dpkg --print-architecture)
# Files of one commit are the same, whenever they are made.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
version=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A tar of a folder that says nothing of who made it.
pack() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -C "$1" -c "${@:2}"; }

make_tar() {
    local name=melba-$version-linux-$arch root=$work/tar
    mkdir -p "$root/$name/completions"
    install -m 755 "$melba" "$root/$name/melba"
    strip --strip-unneeded "$root/$name/melba"
    "$melba" manual "$root/$name/man"
    local shell
    for shell in bash zsh fish; do "$melba" completions $shell > "$root/$name/completions/melba.$shell"; done
    cp LICENSE README.md CHANGELOG.md packaging/debian/melba.service "$root/$name/"
    pack "$root" "$name" | xz -T0 > "$out/$name.tar.xz"
    echo "$out/$name.tar.xz"
}

make_wheel() {
    MELBA=$(realpath "$melba") python3 -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$out" packaging/python
    ls "$out"/melba-"$version"-*.whl
}

# Programs of Debian that the binary, the entry and scripts of users need.
image_packages="bash busybox-static libc6 libcap-ng0 libgcc-s1 libtinfo6 tini tzdata util-linux"

make_root() { # the folder
    local root=$1 package
    mkdir -p "$work/packages" "$root"/{bin,sbin,lib,lib64,usr/bin,usr/sbin,usr/lib,etc,tmp,proc,dev,sys,root,run/melba,var/lib/melba/data}
    # Debian's usr-merge, for packages of both kinds.
    rmdir "$root"/{bin,sbin,lib,lib64}
    ln -s usr/bin usr/sbin usr/lib usr/lib64 "$root/"
    mkdir -p "$root/usr/lib64" "$root/docker-entrypoint-initdb.d"
    # shellcheck disable=SC2086
    (cd "$work/packages" && apt-get download -qq $image_packages 2>/dev/null)
    for package in "$work"/packages/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"; done
    rm -rf "$root"/usr/share/{doc,man,info,locale,lintian,bash-completion,zsh,menu,doc-base,initramfs-tools} "$root"/usr/lib/x86_64-linux-gnu/gconv
    find "$root/usr/bin" "$root/usr/sbin" -type f \! -name bash \! -name busybox \! -name 'tini*' \! -name setpriv -delete
    find "$root/usr/bin" "$root/usr/sbin" -xtype l -delete
    for package in $("$root/usr/bin/busybox" --list); do
        [ -e "$root/usr/bin/$package" ] || [ -e "$root/usr/sbin/$package" ] || ln -s busybox "$root/usr/bin/$package"
    done
    install -m 755 "$melba" "$root/usr/bin/melba"
    strip --strip-unneeded "$root/usr/bin/melba"
    install -m 755 packaging/container/entry.sh "$root/usr/bin/melba-entry"
    install -m 755 packaging/container/psql "$root/usr/bin/psql"
    printf 'root:x:0:0:root:/root:/bin/sh\nmelba:x:999:999:Melba:/var/lib/melba:/bin/sh\n' > "$root/etc/passwd"
    printf 'root:x:0:\nmelba:x:999:\n' > "$root/etc/group"
    chmod 1777 "$root/tmp"
    chmod 700 "$root/var/lib/melba/data"
}

# The root as one layer: system files are root's, the data's folder is the server's.
pack_root() {
    tar --sort=name --mtime="@$epoch" --numeric-owner --owner=0 --group=0 -C "$1" -c --exclude=./var/lib/melba --exclude=./run/melba . > "$2"
    tar --sort=name --mtime="@$epoch" --numeric-owner --owner=999 --group=999 -C "$1" -r -f "$2" ./var/lib/melba ./run/melba
}

# Puts a file under its digest among the blobs and prints DIGEST SIZE.
blob() {
    local digest
    digest=$(sha256sum "$1" | cut -d' ' -f1)
    mv "$1" "$work/layout/blobs/sha256/$digest"
    echo "$digest $(stat -c %s "$work/layout/blobs/sha256/$digest")"
}

make_image() {
    local name=melba-$version-oci-$arch created layer diff layer_bytes config config_bytes manifest manifest_bytes
    created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
    make_root "$work/root"
    mkdir -p "$work/layout/blobs/sha256"
    pack_root "$work/root" "$work/layer.tar"
    diff=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
    gzip -n "$work/layer.tar"
    read -r layer layer_bytes <<< "$(blob "$work/layer.tar.gz")"
    cat > "$work/config" <<END
{"created":"$created","architecture":"$arch","os":"linux",
"config":{"Entrypoint":["/usr/bin/tini","--","/usr/bin/melba-entry"],"Cmd":["melba","serve"],
"Env":["PATH=/usr/sbin:/usr/bin:/sbin:/bin","PGDATA=/var/lib/melba/data","LANG=C.UTF-8"],
"ExposedPorts":{"5432/tcp":{}},"Volumes":{"/var/lib/melba/data":{}},"WorkingDir":"/","StopSignal":"SIGINT",
"Healthcheck":{"Test":["CMD","/usr/bin/melba-entry","health"],"Interval":10000000000,"Timeout":5000000000,"StartPeriod":30000000000,"Retries":3},
"Labels":{"org.opencontainers.image.title":"melba","org.opencontainers.image.version":"$version"}},
"rootfs":{"type":"layers","diff_ids":["sha256:$diff"]},
"history":[{"created":"$created","created_by":"scripts/release.sh image"}]}
END
    read -r config config_bytes <<< "$(blob "$work/config")"
    cat > "$work/manifest" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config","size":$config_bytes},
"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:$layer","size":$layer_bytes}]}
END
    read -r manifest manifest_bytes <<< "$(blob "$work/manifest")"
    echo '{"imageLayoutVersion":"1.0.0"}' > "$work/layout/oci-layout"
    cat > "$work/layout/index.json" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json",
"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:$manifest","size":$manifest_bytes,
"platform":{"architecture":"$arch","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"$version"}}]}
END
    pack "$work/layout" . > "$out/$name.tar"
    # Where there is a tool that reads images, it must read this one.
    if command -v skopeo >/dev/null; then
        skopeo copy --quiet "oci-archive:$out/$name.tar:$version" "dir:$work/copied"
    fi
    echo "$out/$name.tar"
}

make_sums() {
    (cd "$out" && find . -maxdepth 1 -name "melba[-_]$version*" -printf '%P\n' | sort | xargs sha256sum > SHA256SUMS)
    echo "$out/SHA256SUMS"
}

[ -x "$melba" ] || make build
version=$("$melba" --version | cut -d' ' -f2)
mkdir -p "$out"
[ $# -gt 0 ] || set -- deb tar image wheel sums
for part in "$@"; do
    case $part in
    deb) MELBA=$melba scripts/package.sh deb ;;
    tar) make_tar ;;
    image) make_image ;;
    wheel) make_wheel ;;
    sums) make_sums ;;
    test-image)
        [ -e "$out/melba-$version-oci-$arch.tar" ] || make_image
        scripts/test-image.sh "$out/melba-$version-oci-$arch.tar"
        ;;
    *) sed -n '2,8s/^# //p' "$0" >&2; exit 2 ;;
    esac
done
