//! `cargo xtask tour`: types README.md's commands for a new user into real psql; then kill -9, and everything must still exist.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::melba::{Address, Melba};
use crate::root;

const PAGES: &str = "/usr/share/doc/postgresql-doc-15/html";

pub fn tour(server: Option<Address>) -> Result<(), String> {
    if !Path::new(PAGES).is_dir() {
        println!("skipped tour: postgresql-doc-15 is not installed");
        return Ok(());
    }
    let typed = typed_lines(&std::fs::read_to_string(root().join("README.md")).map_err(|e| format!("README.md: {e}"))?);
    let expected = expected()?;
    let Some(address) = server else {
        let melba = Melba::fresh("tour")?;
        type_into_psql(&melba.address, &typed)?;
        check(&melba.address, &expected, "before")?;
        let melba = melba.crash_and_restart()?;
        check(&melba.address, &expected, "after kill -9")?;
        return melba.stop();
    };
    type_into_psql(&address, &typed)?;
    check(&address, &expected, "once")
}

/// The lines of README's tour that are typed into psql: all but the shell's.
fn typed_lines(readme: &str) -> String {
    let tour = readme.lines().skip_while(|l| *l != "## A tour").skip(1).take_while(|l| !l.starts_with("## "));
    let code = tour.filter_map(|l| l.strip_prefix("    "));
    let psql = code.skip_while(|l| !l.starts_with("psql ")).skip(1).take_while(|l| !l.contains("pkill"));
    psql.map(|l| format!("{l}\n")).collect()
}

fn type_into_psql(address: &Address, lines: &str) -> Result<(), String> {
    if !lines.contains("create table") {
        return Err("README.md: there is no tour".to_owned());
    }
    let mut psql = address.psql();
    psql.args(["-X", "-P", "pager=off", "-v", "ON_ERROR_STOP=1"]).stdin(Stdio::piped());
    let mut child = psql.spawn().map_err(|e| format!("psql: {e}"))?;
    let mut input = child.stdin.take().ok_or("psql takes no input")?;
    input.write_all(lines.as_bytes()).map_err(|e| format!("psql: {e}"))?;
    drop(input);
    let status = child.wait().map_err(|e| format!("psql: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("the tour of README.md failed: {status}")) }
}

/// tests/tour/expected.txt, with the facts that depend on the installed manual filled in.
fn expected() -> Result<String, String> {
    let mut pages = 0;
    let mut characters = 0;
    for entry in Path::new(PAGES).read_dir().map_err(|e| format!("{PAGES}: {e}"))?.flatten() {
        if entry.path().extension().is_some_and(|e| e == "html") {
            pages += 1;
            let page = std::fs::read_to_string(entry.path()).map_err(|e| format!("{}: {e}", entry.path().display()))?;
            // The tour renames PostgreSQL in one page.
            let shorter = if entry.file_name() == "sql-select.html" { page.matches("PostgreSQL").count() * 5 } else { 0 };
            // pages-as-csv ends each page with a line feed, whether the file does or not.
            characters += page.chars().count() + usize::from(!page.ends_with('\n')) - shorter;
        }
    }
    let path = root().join("tests/tour/expected.txt");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let facts = [("{pages}", pages), ("{unvisited}", pages - 1000), ("{characters}", characters)];
    Ok(facts.iter().fold(text, |text, (name, fact)| text.replace(name, &fact.to_string())))
}

fn check(address: &Address, expected: &str, when: &str) -> Result<(), String> {
    let mut psql = address.psql();
    psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-f", "tests/tour/check.sql"]);
    let output = psql.output().map_err(|e| format!("psql: {e}"))?;
    let actual = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || actual != expected {
        let difference = diff(expected, &actual)?;
        return Err(format!("tour, {when}: {}\n{difference}", String::from_utf8_lossy(&output.stderr)));
    }
    println!("ok      tour: {when}");
    Ok(())
}

fn diff(expected: &str, actual: &str) -> Result<String, String> {
    let folder = root().join("target/tour");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for (name, text) in [("expected", expected), ("actual", actual)] {
        std::fs::write(folder.join(name), text).map_err(|e| format!("{name}: {e}"))?;
    }
    let output = Command::new("diff").args(["-U2", "expected", "actual"]).current_dir(folder).output();
    Ok(String::from_utf8_lossy(&output.map_err(|e| format!("diff: {e}"))?.stdout).into_owned())
}
