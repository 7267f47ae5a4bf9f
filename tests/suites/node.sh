# For packages of npm, whose registry has no tests: ours go through what they document, or those of a copy of their repository are run.
# Sourced by their `run`: install NAME@VERSION..., the first of which is what is tested; try_tests; source VARIABLE PATH..., try_mocha FILE...
suite=$(basename "$here")
made=$here/../../../target/suites/$suite
command -v node >/dev/null && command -v npm >/dev/null || { echo "skipped $suite: node and npm are not installed"; exit 0; }
mkdir -p "$made"
made=$(cd "$made" && pwd)

# Into a folder of its own, anew when the list changes.
install() {
    printf 'version\t%s\n' "${1##*@}" >>"$OUTCOMES"
    if [ "$(cat "$made/installed" 2>/dev/null)" != "$*" ]; then
        rm -rf "$made/node" && mkdir "$made/node"
        echo '{"private": true, "type": "module"}' >"$made/node/package.json"
        (cd "$made/node" && npm install --silent --no-fund --no-audit --ignore-scripts "$@")
        echo "$*" >"$made/installed"
    fi
}

# Modules are found beside the file that names them.
try_tests() {
    cp "$here/test.mjs" "$here/../outcomes.mjs" "$made/node/"
    node "$made/node/test.mjs"
}

# Folders and files of the repository that a variable names, copied to where the installed modules are found; into $source. Nothing of
# it is built.
source() {
    eval "named=\$$1"
    shift
    source=$made/node/source
    rm -rf "$source" && mkdir "$source"
    git -C "$named" archive HEAD "$@" | tar x -C "$source"
}

try_mocha() {
    node "$made/node/node_modules/mocha/bin/mocha.js" --exit --reporter "$here/../outcomes.cjs" "$@" || true
}
