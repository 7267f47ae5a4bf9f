//! Which commands fire event triggers, and the tags by which an event trigger chooses among them (PostgreSQL's list of tags).

use pg_query::NodeEnum as N;
use pg_query::protobuf::ObjectType;

use super::rows::tag;

/// Objects that are created, altered and dropped with events.
const OBJECTS: &[&str] = &[
    "ACCESS METHOD",
    "AGGREGATE",
    "CAST",
    "COLLATION",
    "CONSTRAINT",
    "CONVERSION",
    "DOMAIN",
    "EXTENSION",
    "FOREIGN DATA WRAPPER",
    "FOREIGN TABLE",
    "FUNCTION",
    "INDEX",
    "LANGUAGE",
    "MATERIALIZED VIEW",
    "OPERATOR",
    "OPERATOR CLASS",
    "OPERATOR FAMILY",
    "POLICY",
    "PROCEDURE",
    "PUBLICATION",
    "ROUTINE",
    "RULE",
    "SCHEMA",
    "SEQUENCE",
    "SERVER",
    "STATISTICS",
    "SUBSCRIPTION",
    "TABLE",
    "TEXT SEARCH CONFIGURATION",
    "TEXT SEARCH DICTIONARY",
    "TEXT SEARCH PARSER",
    "TEXT SEARCH TEMPLATE",
    "TRANSFORM",
    "TRIGGER",
    "TYPE",
    "USER MAPPING",
    "VIEW",
];

/// Other commands with events.
const OTHERS: &[&str] = &[
    "ALTER DEFAULT PRIVILEGES",
    "ALTER LARGE OBJECT",
    "COMMENT",
    "CREATE TABLE AS",
    "DROP OWNED",
    "GRANT",
    "IMPORT FOREIGN SCHEMA",
    "LOGIN",
    "REFRESH MATERIALIZED VIEW",
    "REINDEX",
    "REVOKE",
    "SECURITY LABEL",
    "SELECT INTO",
];

/// Objects that all databases share, or that have to do with events themselves.
const WITHOUT_EVENTS: &[&str] = &["DATABASE", "EVENT TRIGGER", "ROLE", "TABLESPACE"];

/// Other commands without events.
const OTHERS_WITHOUT: &[&str] = &[
    "ALTER SYSTEM",
    "ANALYZE",
    "BEGIN",
    "CALL",
    "CHECKPOINT",
    "CLOSE",
    "CLOSE CURSOR",
    "CLOSE CURSOR ALL",
    "CLUSTER",
    "COMMIT",
    "COMMIT PREPARED",
    "COPY",
    "COPY FROM",
    "DEALLOCATE",
    "DEALLOCATE ALL",
    "DECLARE CURSOR",
    "DELETE",
    "DISCARD",
    "DISCARD ALL",
    "DISCARD PLANS",
    "DISCARD SEQUENCES",
    "DISCARD TEMP",
    "DO",
    "EXECUTE",
    "EXPLAIN",
    "FETCH",
    "GRANT ROLE",
    "INSERT",
    "LISTEN",
    "LOAD",
    "LOCK TABLE",
    "MERGE",
    "MOVE",
    "NOTIFY",
    "PREPARE",
    "PREPARE TRANSACTION",
    "REASSIGN OWNED",
    "RELEASE",
    "RESET",
    "REVOKE ROLE",
    "ROLLBACK",
    "ROLLBACK PREPARED",
    "SAVEPOINT",
    "SELECT",
    "SELECT FOR KEY SHARE",
    "SELECT FOR NO KEY UPDATE",
    "SELECT FOR SHARE",
    "SELECT FOR UPDATE",
    "SET",
    "SET CONSTRAINTS",
    "SHOW",
    "START TRANSACTION",
    "TRUNCATE TABLE",
    "UNLISTEN",
    "UPDATE",
    "VACUUM",
];

/// A tag without its verb.
fn defined_object(tag: &str) -> Option<&str> {
    ["ALTER ", "CREATE ", "DROP "].iter().find_map(|verb| tag.strip_prefix(verb))
}

/// Whether event triggers may ask for a tag, in upper case.
pub fn has_event_triggers(tag: &str) -> bool {
    OTHERS.contains(&tag) || defined_object(tag).is_some_and(|object| OBJECTS.contains(&object))
}

/// Whether a command has a tag, in upper case.
pub fn is_tag(tag: &str) -> bool {
    let without = |object| WITHOUT_EVENTS.contains(&object);
    has_event_triggers(tag) || OTHERS_WITHOUT.contains(&tag) || defined_object(tag).is_some_and(without)
}

/// Whether event triggers fire for a statement.
pub fn fires_event_triggers(node: &N) -> bool {
    let kind = match node {
        N::GrantStmt(s) => s.objtype(),
        N::CommentStmt(s) => s.objtype(),
        N::SecLabelStmt(s) => s.objtype(),
        _ => return has_event_triggers(tag(node)),
    };
    let without = [
        ObjectType::ObjectDatabase,
        ObjectType::ObjectTablespace,
        ObjectType::ObjectRole,
        ObjectType::ObjectEventTrigger,
        ObjectType::ObjectParameterAcl,
    ];
    !without.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_known_and_divided() {
        assert!(has_event_triggers("CREATE TABLE") && has_event_triggers("DROP OWNED"));
        assert!(!has_event_triggers("DROP EVENT TRIGGER") && is_tag("DROP EVENT TRIGGER"));
        assert!(!has_event_triggers("TRUNCATE TABLE") && is_tag("TRUNCATE TABLE"));
        assert!(!is_tag("CREATE SANDWICH") && !is_tag("SANDWICH"));
    }
}
