//! Functions and procedures.

use super::{OWN_FUNCTION, USER};

/// Bodies are not checked when they are restored: text bodies may mention objects that are created later.
pub fn functions() -> String {
    format!(
        "SELECT 'f' || p.oid, CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, n.nspname, p.proname,
            rtrim(pg_get_functiondef(p.oid), E'\\n') || ';'
         FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE {USER} AND p.prokind <> 'a' AND {OWN_FUNCTION} ORDER BY p.oid"
    )
}
