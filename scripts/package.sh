#!/usr/bin/env bash
# package.sh deb [VERSION]: makes target/packages/melba_VERSION_ARCH.deb of MELBA (default: target/release/melba, built when missing).
# package.sh test: installs, starts, upgrades, removes and purges such a package in a chroot (root; debootstrap unless CHROOT names one).
set -euo pipefail
cd "$(dirname "$0")/.."
melba=${MELBA:-target/release/melba}
out=target/packages

make_deb() {
    local version=${1:-$("$melba" --version | cut -d' ' -f2)} arch root glibc
    arch=$(dpkg --print-architecture)
    root=$(mktemp -d)
    install -D -m 755 "$melba" "$root/usr/bin/melba"
    strip --strip-unneeded "$root/usr/bin/melba"
    install -D -m 644 packaging/debian/melba.service "$root/usr/lib/systemd/system/melba.service"
    install -D -m 644 packaging/debian/melba.default "$root/etc/default/melba"
    "$melba" manual "$root/usr/share/man/man1"
    gzip -9 -n "$root"/usr/share/man/man1/*.1
    local to="$root/usr/share"
    mkdir -p "$to/bash-completion/completions" "$to/zsh/vendor-completions" "$to/fish/vendor_completions.d" "$to/doc/melba"
    "$melba" completions bash > "$to/bash-completion/completions/melba"
    "$melba" completions zsh > "$to/zsh/vendor-completions/_melba"
    "$melba" completions fish > "$to/fish/vendor_completions.d/melba.fish"
    cp LICENSE "$to/doc/melba/copyright"
    gzip -9 -n -c CHANGELOG.md > "$to/doc/melba/changelog.gz"
    glibc=$(readelf -V "$melba" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
    mkdir "$root/DEBIAN"
    echo /etc/default/melba > "$root/DEBIAN/conffiles"
    install -m 755 packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm "$root/DEBIAN/"
    cat > "$root/DEBIAN/control" <<EOF
Package: melba
Version: $version
Architecture: $arch
Maintainer: Melba's developers <melba@localhost>
Section: database
Priority: optional
Depends: libc6 (>= ${glibc#GLIBC_}), libgcc-s1, adduser
Suggests: postgresql-client
Installed-Size: $(du -sk --exclude DEBIAN "$root" | cut -f1)
Description: PostgreSQL-compatible database in one binary
 Melba stores large and repetitive values several times smaller than
 PostgreSQL, keeps single-row reads and writes fast, and answers analytical
 questions over the same tables. PostgreSQL's clients work with it.
EOF
    mkdir -p "$out"
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out/melba_${version}_$arch.deb" >/dev/null
    rm -rf "$root"
    echo "$out/melba_${version}_$arch.deb"
}

check() { # what it says, and a command in the chroot that must succeed
    if chroot "$chroot" sh -c "$2"; then echo "ok: $1"; else echo "failed: $1" >&2; exit 1; fi
}

test_deb() {
    [ "$(id -u)" = 0 ] || { echo "a chroot needs root" >&2; exit 1; }
    local first second upper
    first=$(make_deb 0.0.1) second=$(make_deb 0.0.2)
    work=$(mktemp -d)
    chroot=$work/root
    trap 'umount -l "$chroot/proc" "$chroot" "$work" 2>/dev/null || true; rm -rf "$work"' EXIT
    mkdir -p "$chroot"
    if [ -n "${CHROOT:-}" ]; then
        # Above the named tree, which stays as it is.
        mount -t tmpfs tmpfs "$work" && mkdir -p "$work/upper" "$work/work" "$chroot"
        mount -t overlay overlay -o "lowerdir=$CHROOT,upperdir=$work/upper,workdir=$work/work" "$chroot"
    else
        debootstrap --variant=minbase stable "$chroot" >/dev/null
    fi
    mount -t proc proc "$chroot/proc"
    cp "$first" "$second" "$chroot/tmp/"
    first=/tmp/$(basename "$first") second=/tmp/$(basename "$second")
    chroot "$chroot" sh -c "command -v adduser >/dev/null || { apt-get update -qq; apt-get install -y -qq adduser >/dev/null; }"
    local serve="melba serve --data /var/lib/melba/data --listen 127.0.0.1:15432 -c unix_socket_directories=/tmp"
    local run="su melba -s /bin/sh -c"
    check "installs" "dpkg -i $first >/dev/null"
    check "the data directory is melba's alone" "test \"\$(stat -c '%a %U' /var/lib/melba)\" = '700 melba'"
    check "man pages and completions are there" "test -s /usr/share/man/man1/melba-serve.1.gz -a -s /usr/share/bash-completion/completions/melba"
    # The server is sent SIGINT, as by the unit, and ends by itself.
    check "serves" "$run 'timeout -s INT 20 $serve & sleep 5
        melba sql -c \"create table t as select 1 as a\" postgres://postgres@127.0.0.1:15432/postgres; done=\$?; kill -INT \$!; wait; exit \$done'"
    check "keeps a changed configuration at an upgrade" \
        "echo '# mine' >> /etc/default/melba; dpkg --force-confdef --force-confold -i $second >/dev/null && grep -q mine /etc/default/melba"
    check "has the data after the upgrade" "$run 'melba sql --data /var/lib/melba/data -c \"select a from t\" --format csv' | grep -qx 1"
    check "is removed" "dpkg -r melba >/dev/null; ! test -e /usr/bin/melba; test -e /etc/default/melba -a -d /var/lib/melba/data"
    check "is purged, but for the databases" "dpkg -P melba | grep -q 'databases stay'; ! test -e /etc/default/melba; test -d /var/lib/melba/data"
}

case "${1:-}" in
deb) [ -x "$melba" ] || make build; make_deb "${2:-}" ;;
test) [ -x "$melba" ] || make build; test_deb ;;
*) echo "usage: $0 deb [VERSION] | test" >&2; exit 2 ;;
esac
