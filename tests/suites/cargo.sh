# For the suites of crates, sourced by their `run`: fetch NAME VERSION, try_tests ARGUMENT...
suite=$(basename "$here")
made=$here/../../../target/suites/$suite
command -v cargo >/dev/null && command -v python3 >/dev/null || { echo "skipped $suite: cargo and python3 are not installed"; exit 0; }
mkdir -p "$made"
made=$(cd "$made" && pwd)

# The source of a crate, which has the tests, as a copy that may be written to; into $source.
fetch() {
    printf 'version\t%s\n' "$2" >>"$OUTCOMES"
    source=$made/source-$2
    if [ ! -d "$source" ]; then
        mkdir -p "$made/fetch/src" && touch "$made/fetch/src/lib.rs"
        printf '[package]\nname = "fetch"\nedition = "2021"\n[dependencies]\n%s = "=%s"\n[workspace]\n' "$1" "$2" >"$made/fetch/Cargo.toml"
        (cd "$made/fetch" && cargo fetch --quiet)
        cp -r "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1-$2" "$source"
        # Not a member of the workspace it lies in.
        printf '\n[workspace]\n' >>"$source/Cargo.toml"
    fi
    cd "$source"
}

try_tests() {
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=$made/target cargo test --no-fail-fast "$@" | python3 "$here/../outcomes.py" cargo
}
