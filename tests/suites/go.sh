# For the suites of Go modules, sourced by their `run`: fetch MODULE VERSION, try_tests PACKAGE...
suite=$(basename "$here")
made=$here/../../../target/suites/$suite
command -v go >/dev/null && command -v python3 >/dev/null || { echo "skipped $suite: go and python3 are not installed"; exit 0; }
mkdir -p "$made"

# A module's source, which has the tests, as a copy that may be written to; into $source.
fetch() {
    printf 'version\t%s\n' "$2" >>"$OUTCOMES"
    source=$made/source-$2
    if [ ! -d "$source" ]; then
        cp -r "$(go mod download -json "$1@$2" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" "$source"
        chmod -R u+w "$source"
    fi
    cd "$source"
}

try_tests() {
    go test -json -count=1 -p 1 -timeout 15m "$@" | python3 "$here/../outcomes.py" go
}
