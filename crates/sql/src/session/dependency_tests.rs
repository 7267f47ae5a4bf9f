//! What two sessions do to objects that use each other; base types after a crash.

use std::time::Duration;

use melba_engine::EngineOptions;

use super::tests::Harness;

/// What a statement answers that begins while another session's statement is not committed.
fn beside(first: &str, second: &str, setup: &str) -> (String, Harness) {
    let mut one = Harness::new();
    let mut other = one.another();
    one.query(setup);
    let answer = one.query(&format!("begin; {first}"));
    assert!(answer.ends_with("Z:T"), "{first}: {answer}");
    // It waits.
    let blocked = other.query(&format!("begin; set local lock_timeout = '20ms'; {second}; rollback"));
    assert!(blocked.contains("E55P03"), "{second} beside {first}: {blocked}");
    other.query("rollback");
    let second = second.to_owned();
    let waiting = std::thread::spawn(move || other.query(&second));
    std::thread::sleep(Duration::from_millis(50));
    one.query("commit");
    (waiting.join().expect("an answer"), one)
}

/// Stored texts have names.
#[test]
fn a_new_object_and_the_renaming_of_what_it_uses_exclude_each_other() {
    let setup = "create schema s; create type s.e as enum ('a', 'b');
        create function s.f(int) returns int language sql immutable return $1";
    for (renaming, making) in [
        ("alter function s.f rename to g", "create table t (a int default s.f(1))"),
        ("alter schema s rename to r", "create table t (a int default s.f(1))"),
        ("alter type s.e rename value 'a' to 'x'", "create table t (a s.e default 'a')"),
        ("alter type s.e rename to g", "create table t (a s.e default 'a')"),
    ] {
        let (answer, _) = beside(renaming, making, setup);
        assert!(answer.starts_with('E'), "{making} beside {renaming}: {answer}");
        let (answer, mut h) = beside(making, renaming, setup);
        assert!(answer.starts_with("C:ALTER"), "{renaming} beside {making}: {answer}");
        assert_eq!(h.query("insert into t default values"), "C:INSERT 0 1 Z:I", "{renaming} beside {making}");
    }
}

#[test]
fn a_renaming_does_not_undo_what_others_did_to_users_of_the_object() {
    let setup = "create function f(int) returns int language sql immutable return $1; create table t (a int default f(1))";
    let (answer, mut h) = beside("alter table t add b int", "alter function f rename to g", setup);
    assert_eq!(answer, "EXX000 Z:I");
    assert_eq!(h.query("select count(b) from t"), "T D:0 C:SELECT 1 Z:I");
    let (answer, mut h) = beside("drop table t", "alter function f rename to g", setup);
    assert_eq!(answer, "EXX000 Z:I");
    assert_eq!(h.query("select * from t"), "E42P01 Z:I");
}

#[test]
fn a_role_that_gets_an_object_is_not_dropped() {
    let setup = "create role r; create table t (a int)";
    for making in ["alter table t owner to r", "grant select on t to r", "create policy p on t to r using (true)"] {
        assert_eq!(beside(making, "drop role r", setup).0, "E2BP01 Z:I", "{making}");
        assert_eq!(beside("drop role r", making, setup).0, "E42704 Z:I", "{making}");
    }
}

#[test]
fn two_sessions_add_a_label_each() {
    let setup = "create type e as enum ('a')";
    let (answer, mut h) = beside("alter type e add value 'b'", "alter type e add value 'c'", setup);
    assert_eq!(answer, "C:ALTER TYPE Z:I");
    assert_eq!(h.lines("select enum_range(null::e)"), "{a,b,c}");
}

#[test]
fn two_sessions_cannot_make_two_default_classes() {
    let setup = "create type n; create function n_in(cstring) returns n language internal strict immutable as 'int4in';
        create function n_out(n) returns cstring language internal strict immutable as 'int4out';
        create type n (input = n_in, output = n_out, like = int4);
        create function n_cmp(n, n) returns int language internal strict immutable as 'btint4cmp'";
    let class = |name: &str| format!("create operator class {name} default for type n using btree as function 1 n_cmp(n, n)");
    assert_eq!(beside(&class("x"), &class("y"), setup).0, "E42710 Z:I");
}

#[test]
fn base_types_survive_a_crash() {
    let mut h = Harness::new();
    h.query("create type hull; create type words");
    h.query("create function words_in(cstring) returns words language internal strict immutable as 'textin'");
    h.query("create function words_out(words) returns cstring language internal strict immutable as 'textout'");
    h.query("create type words (input = words_in, output = words_out, default = 'none', storage = extended)");
    h.query("create table t (id int primary key, w words, ws words[]); insert into t (id) values (1)");
    h.query("insert into t values (2, repeat('long', 5000)::words, '{a,b}')");
    let mut h = Harness::over(h.kill(), EngineOptions::default(), &[]);
    assert_eq!(h.lines("select w from t where id = 1"), "none");
    assert_eq!(h.lines("select length(w::text) from t where id = 2"), "20000");
    assert_eq!(h.lines("select ws[2] from t where id = 2"), "b");
    assert_eq!(h.query("create type hull as enum ('a'); drop type words"), "C:CREATE TYPE E2BP01 Z:I");
}
