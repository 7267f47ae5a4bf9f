//! Row-level security of tables: their policies, and whether it is enabled.

use super::{Reader, USER};
use crate::Result;
use crate::archive::{Entry, Section};

pub fn entries(reader: &mut Reader) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    for sql in [policies(), row_security(), comments()] {
        all.extend(reader.entries(Section::After, &sql)?);
    }
    Ok(all)
}

const TABLES: &str = "pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace";

fn policies() -> String {
    format!(
        "SELECT 'POLICY', n.nspname, c.relname, format('CREATE POLICY %I ON %I.%I%s%s TO %s%s%s;', p.polname, n.nspname, c.relname,
            CASE WHEN p.polpermissive THEN '' ELSE ' AS RESTRICTIVE' END,
            CASE p.polcmd WHEN 'r' THEN ' FOR SELECT' WHEN 'a' THEN ' FOR INSERT' WHEN 'w' THEN ' FOR UPDATE' WHEN 'd' THEN ' FOR DELETE' ELSE '' END,
            CASE WHEN p.polroles = '{{0}}' THEN 'PUBLIC' ELSE
                (SELECT string_agg(quote_ident(r.rolname), ', ' ORDER BY r.rolname) FROM pg_catalog.pg_roles r WHERE r.oid = ANY (p.polroles)) END,
            coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', ''),
            coalesce(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', ''))
         FROM {TABLES} JOIN pg_catalog.pg_policy p ON p.polrelid = c.oid WHERE {USER} AND c.relpersistence <> 't' ORDER BY p.oid"
    )
}

fn row_security() -> String {
    format!(
        "SELECT 'ROW SECURITY', n.nspname, c.relname, format('ALTER TABLE %I.%I %s ROW LEVEL SECURITY;', n.nspname, c.relname, w.what)
         FROM {TABLES} CROSS JOIN (VALUES ('ENABLE'), ('FORCE')) w (what)
         WHERE {USER} AND c.relpersistence <> 't' AND CASE w.what WHEN 'FORCE' THEN c.relforcerowsecurity ELSE c.relrowsecurity END ORDER BY c.oid"
    )
}

fn comments() -> String {
    format!(
        "SELECT 'COMMENT', n.nspname, c.relname,
            format('COMMENT ON POLICY %I ON %I.%I IS %s;', p.polname, n.nspname, c.relname, quote_literal(d.description))
         FROM {TABLES} JOIN pg_catalog.pg_policy p ON p.polrelid = c.oid
            JOIN pg_catalog.pg_description d ON d.classoid = 'pg_policy'::regclass AND d.objoid = p.oid
         WHERE {USER} AND c.relpersistence <> 't' ORDER BY p.oid"
    )
}
