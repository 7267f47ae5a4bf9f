use super::*;

fn settings() -> Settings {
    Settings::server(&[]).unwrap().for_session(true)
}

fn show(s: &Settings, name: &str) -> String {
    s.show(s.find(name).unwrap())
}

#[test]
fn values_are_read_and_printed_as_postgresql_does() {
    let mut s = settings();
    for (name, text, shown) in [
        ("work_mem", "8192", "8MB"),
        ("work_mem", "1.5MB", "1536kB"),
        ("statement_timeout", "1min", "1min"),
        ("statement_timeout", "61000", "61s"),
        ("statement_timeout", "010", "8ms"),
        ("vacuum_cost_delay", "1.5ms", "1500us"),
        ("DateStyle", "german", "German, DMY"),
        ("datestyle", "sql, dmy", "SQL, DMY"),
        ("TimeZone", "europe/berlin", "Europe/Berlin"),
        ("timezone", "-7", "<-07>+07"),
        ("client_encoding", "utf-8", "UTF8"),
        ("enable_seqscan", "f", "off"),
        ("synchronous_commit", "true", "on"),
        ("random_page_cost", "1e10", "1e+10"),
        ("extra_float_digits", "0", "0"),
        ("my.own", "x", "x"),
    ] {
        s.set(name, text, Scope::Session).unwrap_or_else(|e| panic!("{name} {text}: {e}"));
        assert_eq!(show(&s, name), shown, "{name} = {text}");
    }
}

#[test]
fn wrong_values_have_postgresql_s_errors() {
    let mut s = settings();
    for (name, text, state, message) in [
        ("foo", "1", "42704", "unrecognized configuration parameter \"foo\""),
        ("foo.b-z", "1", "42602", "invalid configuration parameter name \"foo.b-z\""),
        ("work_mem", "x", "22023", "invalid value for parameter \"work_mem\": \"x\""),
        ("work_mem", "1kB", "22023", "1 kB is outside the valid range for parameter \"work_mem\" (64 kB .. 2147483647 kB)"),
        ("work_mem", "99999999999", "22023", "invalid value for parameter \"work_mem\": \"99999999999\""),
        ("enable_seqscan", "maybe", "22023", "parameter \"enable_seqscan\" requires a Boolean value"),
        ("datestyle", "foo", "22023", "invalid value for parameter \"DateStyle\": \"foo\""),
        ("timezone", "foo", "22023", "invalid value for parameter \"TimeZone\": \"foo\""),
        ("server_version", "x", "55P02", "parameter \"server_version\" cannot be changed"),
        ("fsync", "off", "55P02", "parameter \"fsync\" cannot be changed now"),
    ] {
        let error = s.set(name, text, Scope::Session).unwrap_err();
        assert_eq!((error.sqlstate().as_str(), error.message()), (state, message));
    }
}

#[test]
fn sessions_share_what_they_have_not_changed() {
    let server = Settings::server(&[("work_mem".into(), "1MB".into()), ("my.own".into(), "x".into())]).unwrap();
    let (mut first, second) = (server.for_session(true), server.for_session(true));
    first.set("work_mem", "2MB", Scope::Session).unwrap();
    first.set("my.own", "y", Scope::Session).unwrap();
    first.set("my.other", "z", Scope::Session).unwrap();
    assert_eq!(["work_mem", "my.own", "my.other"].map(|name| show(&first, name)), ["2MB", "y", "z"]);
    assert_eq!([show(&second, "work_mem"), show(&second, "my.own")], ["1MB", "x"]);
    assert_eq!([show(&server, "work_mem"), show(&server, "my.own")], ["1MB", "x"]);
    assert_eq!(second.find("my.other"), None);
    assert_eq!(first.ids().len(), second.ids().len() + 1);
}

#[test]
fn transactions_undo_changes() {
    let mut s = settings();
    s.set("work_mem", "1MB", Scope::Session).unwrap();
    s.push_level();
    s.set("work_mem", "2MB", Scope::Transaction).unwrap();
    s.rollback_level();
    assert_eq!(show(&s, "work_mem"), "1MB");
    s.push_level();
    s.set("work_mem", "3MB", Scope::Transaction).unwrap();
    s.commit_level();
    assert_eq!(show(&s, "work_mem"), "3MB", "released savepoints keep SET LOCAL");
    s.commit();
    assert_eq!(show(&s, "work_mem"), "1MB", "commit ends SET LOCAL and keeps SET");
    s.reset("work_mem", Scope::Session).unwrap();
    s.push_level();
    s.set("work_mem", "4MB", Scope::Session).unwrap();
    s.rollback();
    assert_eq!(show(&s, "work_mem"), "1MB");
}

#[test]
fn alter_system_refuses_what_is_not_of_files() {
    let s = settings();
    for (name, state) in [
        ("transaction_isolation", "55P02"),
        ("server_version", "55P02"),
        ("nothing", "42704"),
        ("a.b-c", "42602"),
        ("plpgsql.nothing", "42602"),
    ] {
        let error = s.check_configured(name, Some("serializable")).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), state, "{name}");
    }
    s.check_configured("hx.y", Some("sys")).unwrap();
    s.check_configured("fsync", None).unwrap();
    assert!(s.check_configured("fsync", Some("x")).is_err());
}

fn server(seed: &str) -> Settings {
    Settings::server(&[("geqo_seed".into(), seed.into())]).unwrap()
}

#[test]
fn what_a_transaction_undoes_follows_the_server() {
    let mut s = server("0").for_session(true);
    s.push_level();
    s.set("geqo_seed", "0.9", Scope::Session).unwrap();
    s.set("geqo_seed", "0.8", Scope::Transaction).unwrap();
    s.rebase(&server("0.5"));
    assert_eq!(show(&s, "geqo_seed"), "0.8");
    s.rollback_level();
    assert_eq!(show(&s, "geqo_seed"), "0.5");
    s.set("geqo_seed", "0.7", Scope::Transaction).unwrap();
    s.rebase(&server("0.6"));
    s.commit();
    assert_eq!(show(&s, "geqo_seed"), "0.6");
}

#[test]
fn values_that_equal_the_default_are_set_all_the_same() {
    let mut s = server("0").for_session(true);
    let seed = s.find("geqo_seed").unwrap();
    for scope in [Scope::Transaction, Scope::Session] {
        s.set("geqo_seed", "0", scope).unwrap();
        assert_eq!(s.source(seed).name, "session");
        s.rebase(&server("0.5"));
        assert_eq!(show(&s, "geqo_seed"), "0");
        s.rollback();
        assert_eq!((show(&s, "geqo_seed").as_str(), s.source(seed).name), ("0.5", "command line"));
        s.rebase(&server("0"));
    }
    s.set("geqo_seed", "0", Scope::Session).unwrap();
    s.reset_all();
    s.rebase(&server("0.5"));
    assert_eq!((show(&s, "geqo_seed").as_str(), s.source(seed).name), ("0.5", "command line"));
}

#[test]
fn values_that_were_kept_for_the_session_have_their_source() {
    let mut s = server("0").for_session(true);
    s.set_stored("geqo_seed", "0", "database").unwrap();
    s.rebase(&server("0.5"));
    s.set("geqo_seed", "0.1", Scope::Session).unwrap();
    s.reset("geqo_seed", Scope::Session).unwrap();
    assert_eq!((show(&s, "geqo_seed").as_str(), s.source(s.find("geqo_seed").unwrap()).name), ("0", "database"));
}

#[test]
fn settings_without_a_definition_come_with_the_server_s() {
    let with = |name: &str| Settings::server(&[("x.other".into(), "o".into()), (name.into(), "sys".into())]).unwrap();
    let mut s = settings();
    s.set("x.own", "mine", Scope::Session).unwrap();
    s.rebase(&with("x.y"));
    assert_eq!(["x.own", "x.y", "x.other"].map(|name| show(&s, name)), ["mine", "sys", "o"]);
    s.rebase(&with("x.own"));
    assert_eq!(["x.own", "x.y"].map(|name| show(&s, name)), ["mine", ""]);
    s.reset("x.own", Scope::Session).unwrap();
    assert_eq!(show(&s, "x.own"), "sys");
}

#[test]
fn changes_are_reported_once() {
    let mut s = settings();
    let mut first = Vec::new();
    s.report_changes(|name, _| first.push(name.to_owned()));
    assert_eq!(first.len(), REPORTED.len());
    s.set("application_name", "x", Scope::Session).unwrap();
    s.set("work_mem", "1MB", Scope::Session).unwrap();
    let mut second = Vec::new();
    s.report_changes(|name, value| second.push((name.to_owned(), value.to_owned())));
    assert_eq!(second, [("application_name".to_owned(), "x".to_owned())]);
}
