# For the suites of Maven's artifacts, sourced by their `run`: artifact GROUP:NAME:VERSION[:TYPE[:CLASSIFIER]], try_junit VERSION CLASSPATH ARGUMENT...
suite=$(basename "$here")
made=$here/../../../target/suites/$suite
command -v mvn >/dev/null && command -v java >/dev/null && command -v python3 >/dev/null || { echo "skipped $suite: mvn, java and python3 are not installed"; exit 0; }
mkdir -p "$made"
made=$(cd "$made" && pwd)

# Fetches one into Maven's own folder, and prints where it is.
artifact() {
    mvn -q -B dependency:get -Dtransitive=false "-Dartifact=$1" >&2
    repository=${MAVEN_REPOSITORY:-$HOME/.m2/repository}
    echo "$1" | {
        IFS=: read -r group name version type classifier
        echo "$repository/$(echo "$group" | tr . /)/$name/$version/$name-$version${classifier:+-$classifier}.${type:-jar}"
    }
}

# JUnit's console of this version, which names each test as it ends; with JAVA_PROPERTIES.
try_junit() {
    console=$(artifact "org.junit.platform:junit-platform-console-standalone:$1")
    classpath=$2
    shift 2
    java $JAVA_PROPERTIES -cp "$console:$classpath" org.junit.platform.console.ConsoleLauncher execute --disable-banner --disable-ansi-colors \
        --details testfeed "$@" | python3 "$here/../outcomes.py" junit
}

# For artifacts without tests ours go through what they document: classes that tests/suites/Outcomes.java runs. The classpath of
# GROUP:NAME:VERSION... and what they need, into $classpath.
classpath() {
    if [ "$(cat "$made/installed" 2>/dev/null)" != "$*" ]; then
        {
            echo '<project><modelVersion>4.0.0</modelVersion><groupId>melba</groupId><artifactId>suite</artifactId><version>1</version><dependencies>'
            for coordinates in "$@"; do
                echo "$coordinates" | {
                    IFS=: read -r group name version
                    echo "<dependency><groupId>$group</groupId><artifactId>$name</artifactId><version>$version</version></dependency>"
                }
            done
            echo '</dependencies></project>'
        } >"$made/pom.xml"
        (cd "$made" && mvn -q -B dependency:build-classpath -Dmdep.outputFile=classpath)
        echo "$*" >"$made/installed"
    fi
    classpath=$(cat "$made/classpath")
}

# Compiles and runs Suite.java beside `run`.
try_suite() {
    rm -rf "$made/classes"
    javac -proc:none -parameters -nowarn -d "$made/classes" -cp "$classpath" "$here/../Outcomes.java" "$here/Suite.java"
    (cd "$made" && java -cp "$classpath:$made/classes" Suite)
}
