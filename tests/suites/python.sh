# For the suites of Python packages, sourced by their `run`: fetch NAME VERSION, install PACKAGE..., try_tests ARGUMENT...
# What is fetched stays below target/suites/NAME, once for both servers.
suite=$(basename "$here")
made=$here/../../../target/suites/$suite
command -v python3 >/dev/null || { echo "skipped $suite: python3 is not installed"; exit 0; }
mkdir -p "$made"
made=$(cd "$made" && pwd)
export PYTHONPATH=$here/..

# The source of a release, which has the tests; into $source.
fetch() {
    printf 'version\t%s\n' "$2" >>"$OUTCOMES"
    if [ ! -d "$made/source-$2" ]; then
        rm -rf "$made/fetched" && mkdir "$made/fetched"
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$1" --dest "$made/fetched" "$1==$2"
        tar xzf "$made"/fetched/*.tar.gz -C "$made/fetched"
        mv "$made"/fetched/*/ "$made/source-$2"
    fi
    source=$made/source-$2
}

# A virtual environment with these packages, made anew when they change.
install() {
    if [ "$(cat "$made/installed" 2>/dev/null)" != "$*" ]; then
        python3 -m venv --clear "$made/venv"
        "$made/venv/bin/pip" install --quiet --disable-pip-version-check "$@"
        echo "$*" >"$made/installed"
    fi
}

# pytest on what the arguments say. Its exit code says that tests failed, which is no failure of ours.
try_tests() {
    "$made/venv/bin/python" -m pytest -q --tb=short -p outcomes -p no:randomly --timeout 60 -o cache_dir="$made/cache" "$@" || true
}
