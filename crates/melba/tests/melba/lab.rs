//! `melba lab olap` and `melba lab lake` on few rows. The first starts this binary, asks it everything, and writes its report; databases
//! that are not installed are said there; PostgreSQL, DuckDB and ClickHouse are compared with where they are.

use std::process::Command;

use super::serving::Serving;

#[test]
fn olap_runs_to_its_report() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let small =
        ["--rows", "20000", "--accounts", "500", "--records", "1000", "--clients", "2", "--seconds", "0.1", "--rounds", "1"];
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_melba"));
        command.args(["lab", "olap", "--scratch"]).arg(folder.path()).arg("--out").arg(folder.path().join("out"));
        command.args(small).args(arguments).output().expect("it runs")
    };
    let output = run(&[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.path().join("out/results.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let lines = |title: &str| {
        let section = report["sections"].as_array().and_then(|all| all.iter().find(|section| section["title"] == title));
        section.and_then(|section| section["lines"].as_array()).map_or(0, Vec::len)
    };
    let counts = [
        "Large table without an index",
        "Large table with an index on phone",
        "Short statements, 2 clients",
        "Records of a year",
    ];
    assert_eq!(counts.map(lines), [20, 20, 4, 4], "{text}");
    assert!(
        report["notes"].as_array().is_some_and(|notes| notes[0].as_str().is_some_and(|note| note.starts_with("MySQL is absent")))
    );
    assert_eq!(report["targets"][0]["name"], "Melba");

    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["out"], "nothing is left behind");
    let output = run(&["--databases", "mysql"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no server was given"), "{said}");
}

#[test]
fn lake_publishes_and_reads_on_one_snapshot() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let server = Serving::start(&folder.path().join("data"), &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_melba"));
    command.args(["lab", "lake", "--rows", "5000", "--changed", "500", "--readers", "1,3", "--rounds", "2"]);
    command.arg(format!("--target=melba=postgres://postgres@127.0.0.1:{}/postgres", server.port));
    command.arg("--scratch").arg(folder.path()).arg("--out").arg(folder.path().join("out"));
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.path().join("out/results.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let lines: Vec<_> =
        report["sections"].as_array().expect("sections").iter().map(|s| s["lines"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(lines, [3, 2], "{text}");
    let mut client = server.connect("postgres", None).expect("it connects");
    let left: i64 = client.query_one("select count(*) from pg_class where relname like 'melba_lab%'", &[]).expect("rows").get(0);
    assert_eq!(left, 0, "nothing is left behind");
    server.stop();
}
