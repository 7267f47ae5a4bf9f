//! Calls as SQL would make them, with PostgreSQL's results.

use melba_fmgr::registry;
use melba_types::oids;

use super::*;

fn call(source: &str, args: &[Datum]) -> melba_types::Result<Datum> {
    let session = crate::testing::session();
    registry::scalar(source).expect(source)(&session.call(&[], oids::TEXT), args)
}

fn text(source: &str, args: &[Datum]) -> String {
    match call(source, args).expect(source) {
        Datum::Null => "NULL".into(),
        value => value.as_str().to_owned(),
    }
}

#[test]
fn types_and_functions_are_described() {
    assert_eq!(text("format_type", &[Datum::Oid(1043), Datum::Int4(14)]), "character varying(10)");
    assert_eq!(text("format_type", &[Datum::Oid(1042), Datum::Null]), "character");
    assert_eq!(text("pg_get_function_arguments", &[Datum::Oid(2096)]), "pid integer, timeout bigint DEFAULT 0");
    assert_eq!(text("pg_get_function_result", &[Datum::Oid(2096)]), "boolean");
    assert_eq!(text("pg_get_userbyid", &[Datum::Oid(10)]), "postgres");
    assert_eq!(text("pg_get_userbyid", &[Datum::Oid(9)]), "unknown (OID=9)");
    let index = "CREATE UNIQUE INDEX pg_class_oid_index ON pg_catalog.pg_class USING btree (oid)";
    assert_eq!(text("pg_get_indexdef", &[Datum::Oid(2662)]), index);
    assert_eq!(text("pg_get_indexdef_ext", &[Datum::Oid(2662), Datum::Int4(1), Datum::Bool(true)]), "oid");
    assert_eq!(text("pg_get_indexdef", &[Datum::Oid(1)]), "NULL");
    assert_eq!(text("PG_encoding_to_char", &[Datum::Int4(6)]), "UTF8");
    assert_eq!(call("PG_char_to_encoding", &[Datum::text("utf-8")]).expect("a number").as_i32(), 6);
}

#[test]
fn aclitems_are_checked() {
    let session = crate::testing::session();
    let read = |text| melba_fmgr::io::text_in(&session, oids::ACLITEM, -1, text);
    assert_eq!(read("postgres=r*w/postgres").expect("an aclitem").as_str(), "postgres=r*w/postgres");
    assert_eq!(read("nobody=r/postgres").expect_err("unknown").message(), "role \"nobody\" does not exist");
    assert_eq!(read("postgres").expect_err("unfinished").message(), "missing \"=\" sign");
}

#[test]
fn visibility_is_null_for_missing_objects() {
    assert!(call("pg_table_is_visible", &[Datum::Oid(1259)]).expect("a truth").as_bool());
    assert!(call("pg_table_is_visible", &[Datum::Oid(1)]).expect("null").is_null());
}

#[test]
fn privileges_are_checked_by_name_and_oid() {
    let has = |source, args: &[Datum]| call(source, args).map(|v| v.as_bool());
    let monitor = || Datum::text("pg_monitor");
    assert!(has("has_table_privilege_name_name", &[monitor(), Datum::text("pg_class"), Datum::text("select")]).expect("a truth"));
    assert!(!has("has_table_privilege_name_id", &[monitor(), Datum::Oid(1260), Datum::text("select")]).expect("a truth"));
    assert!(has("pg_has_role_name_name", &[monitor(), Datum::text("pg_read_all_stats"), Datum::text("USAGE")]).expect("a truth"));
    let error =
        has("has_schema_privilege_name_name", &[monitor(), Datum::text("nope"), Datum::text("usage")]).expect_err("unknown");
    assert_eq!(error.message(), "schema \"nope\" does not exist");
    let error = has("has_table_privilege_name_id", &[monitor(), Datum::Oid(1259), Datum::text("fly")]).expect_err("unknown");
    assert_eq!(error.sqlstate().to_string(), "22023");
}

#[test]
fn privilege_lists_explode() {
    let session = crate::testing::session();
    let list = call("acldefault_sql", &[Datum::Char(b'd'), Datum::Oid(10)]).expect("a list");
    let items: Vec<_> = list.as_array().elements.iter().map(|e| e.as_str().to_owned()).collect();
    assert_eq!(items, ["=Tc/postgres", "postgres=CTc/postgres"]);
    let explode = registry::set_returning("aclexplode").expect("a function");
    let rows: Vec<_> = explode(&session.call(&[], oids::RECORD), &[list]).expect("rows").map(|r| r.expect("a row")).collect();
    let names: Vec<_> = rows.iter().map(|r| (r[1].as_oid(), r[2].as_str())).collect();
    assert_eq!(names, [(0, "TEMPORARY"), (0, "CONNECT"), (10, "CREATE"), (10, "TEMPORARY"), (10, "CONNECT")]);
}
