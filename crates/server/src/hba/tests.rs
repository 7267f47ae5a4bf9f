use melba_types::Datum;

use super::*;

fn settings(data: &Path) -> Settings {
    Settings::server(&[("data_directory".to_owned(), data.display().to_string())]).expect("settings")
}

fn write(data: &Path, name: &str, text: &str) {
    std::fs::write(data.join(name), text).expect("the folder can be written");
}

fn methods(access: &HostAccess) -> Vec<&'static str> {
    access.in_force().rules.iter().map(|rule| rule.method.name()).collect()
}

#[test]
fn without_a_file_the_owner_needs_no_password() {
    let data = tempfile::tempdir().expect("a folder");
    let access = HostAccess::load(&settings(data.path()), false, &Arc::default()).expect("built-in rules");
    assert_eq!(methods(&access), ["owner", "owner", "owner", "scram-sha-256"]);
    let access = HostAccess::load(&settings(data.path()), true, &Arc::default()).expect("built-in rules");
    assert_eq!(methods(&access), ["scram-sha-256"; 4]);
}

#[test]
fn a_file_with_an_error_is_an_error_at_the_start_and_changes_nothing_later() {
    let data = tempfile::tempdir().expect("a folder");
    let settings = settings(data.path());
    write(data.path(), "pg_hba.conf", "local all all nonsense\nhost all\n");
    let error = HostAccess::load(&settings, false, &Arc::default()).expect_err("the file is malformed");
    let detail = error.fields().detail.clone().expect("a detail");
    assert!(detail.contains("invalid authentication method \"nonsense\" (line 1 of configuration file"), "{detail}");
    assert!(detail.contains("end-of-line before role specification (line 2 of"), "{detail}");

    write(data.path(), "pg_hba.conf", "local all all peer map=m");
    write(data.path(), "pg_ident.conf", "m root postgres");
    let access = HostAccess::load(&settings, false, &Arc::default()).expect("a rule");
    for broken in ["local all all nonsense", "# nothing", ""] {
        write(data.path(), "pg_hba.conf", broken);
        write(data.path(), "pg_ident.conf", "m root");
        access.reload(&settings);
        assert_eq!(methods(&access), ["peer"], "{broken}");
        assert_eq!(access.in_force().mappings.len(), 1);
    }
    std::fs::remove_file(data.path().join("pg_hba.conf")).expect("it is there");
    access.reload(&settings);
    assert_eq!(methods(&access), ["peer"], "a file that vanishes leaves its rules");

    write(data.path(), "pg_hba.conf", "local all all trust\nlocal all all reject");
    write(data.path(), "pg_ident.conf", "");
    access.reload(&settings);
    assert_eq!(methods(&access), ["trust", "reject"]);
    assert!(access.in_force().mappings.is_empty());
}

#[test]
fn a_named_file_must_be_there() {
    let data = tempfile::tempdir().expect("a folder");
    let named = [("data_directory", data.path().to_str().expect("text")), ("hba_file", "other.conf")];
    let settings = Settings::server(&named.map(|(n, v)| (n.to_owned(), v.to_owned()))).expect("settings");
    let detail = HostAccess::load(&settings, false, &Arc::default()).expect_err("it is missing").fields().detail.clone();
    assert!(detail.expect("a detail").contains("No such file or directory"));
    write(data.path(), "other.conf", "local all all reject");
    assert_eq!(methods(&HostAccess::load(&settings, false, &Arc::default()).expect("a rule")), ["reject"]);
}

#[test]
fn trust_and_peer_are_refused_where_passwords_are_required() {
    let data = tempfile::tempdir().expect("a folder");
    for (method, is_good) in [("trust", false), ("peer", false), ("scram-sha-256", true), ("reject", true)] {
        write(data.path(), "pg_hba.conf", &format!("local all all {method}"));
        assert_eq!(HostAccess::load(&settings(data.path()), true, &Arc::default()).is_ok(), is_good, "{method}");
    }
}

/// Rows as text with bars, as the expected files have them: names of files without their folder.
fn shown(rows: &[Vec<Datum>], folder: &Path) -> String {
    let quoted = |e: &Datum| match e.as_str().contains([' ', ',']) {
        true => format!("\"{}\"", e.as_str()),
        false => e.as_str().to_owned(),
    };
    let text = |datum: &Datum| match datum {
        Datum::Null => String::new(),
        Datum::Int4(n) => n.to_string(),
        Datum::Array(a) => format!("{{{}}}", a.elements.iter().map(quoted).collect::<Vec<_>>().join(",")),
        other => {
            let text = other.as_str().replace(&format!("{}/", folder.display()), "");
            text.strip_prefix("conf.d/").unwrap_or(&text).to_owned()
        }
    };
    let line = |row: &Vec<Datum>| row.iter().map(text).collect::<Vec<_>>().join("|") + "\n";
    rows.iter().map(line).collect()
}

/// `testdata` has files with all possible lines, and PostgreSQL 18's view rows for them.
#[test]
fn the_views_show_the_files_as_postgresql_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/hba/testdata");
    let access = HostAccess {
        hba_file: Some(folder.join("pg_hba.conf")),
        ident_file: Some(folder.join("pg_ident.conf")),
        is_named: true,
        ..HostAccess::owner_only()
    };
    let expected = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of the test");
    let rules = access.rule_rows(&Settings::server(&[]).expect("settings")).expect("the file is there");
    assert_eq!(shown(&rules, &folder), expected("rules.expected"));
    let mut mappings = access.mapping_rows().expect("the file is there");
    mappings.iter_mut().for_each(|row| drop(row.remove(1)));
    assert_eq!(shown(&mappings, &folder), expected("mappings.expected"));
}
