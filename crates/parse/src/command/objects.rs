//! The words of command tags for kinds of objects.

use pg_query::protobuf::ObjectType;

macro_rules! words {
    ($($($kind:ident)|+ => $word:literal,)*) => {
        /// The word for a kind of object in command tags.
        pub fn object_word(kind: ObjectType) -> &'static str {
            match kind {
                $($(ObjectType::$kind)|+ => $word,)*
                _ => "OBJECT",
            }
        }

        pub(super) fn create(kind: ObjectType) -> &'static str {
            match kind {
                $($(ObjectType::$kind)|+ => concat!("CREATE ", $word),)*
                _ => "CREATE",
            }
        }

        pub(super) fn alter(kind: ObjectType) -> &'static str {
            match kind {
                $($(ObjectType::$kind)|+ => concat!("ALTER ", $word),)*
                _ => "ALTER",
            }
        }

        pub(super) fn drop(kind: ObjectType) -> &'static str {
            match kind {
                $($(ObjectType::$kind)|+ => concat!("DROP ", $word),)*
                _ => "DROP",
            }
        }
    };
}

// A part of an object has the object's word.
words! {
    ObjectAccessMethod => "ACCESS METHOD",
    ObjectAggregate => "AGGREGATE",
    ObjectCast => "CAST",
    ObjectCollation => "COLLATION",
    ObjectConversion => "CONVERSION",
    ObjectDatabase => "DATABASE",
    ObjectDomain | ObjectDomconstraint => "DOMAIN",
    ObjectEventTrigger => "EVENT TRIGGER",
    ObjectExtension => "EXTENSION",
    ObjectFdw => "FOREIGN DATA WRAPPER",
    ObjectForeignServer => "SERVER",
    ObjectForeignTable => "FOREIGN TABLE",
    ObjectFunction => "FUNCTION",
    ObjectIndex => "INDEX",
    ObjectLanguage => "LANGUAGE",
    ObjectLargeobject => "LARGE OBJECT",
    ObjectMatview => "MATERIALIZED VIEW",
    ObjectOpclass => "OPERATOR CLASS",
    ObjectOperator => "OPERATOR",
    ObjectOpfamily => "OPERATOR FAMILY",
    ObjectPolicy => "POLICY",
    ObjectProcedure => "PROCEDURE",
    ObjectPublication => "PUBLICATION",
    ObjectRole => "ROLE",
    ObjectRoutine => "ROUTINE",
    ObjectRule => "RULE",
    ObjectSchema => "SCHEMA",
    ObjectSequence => "SEQUENCE",
    ObjectStatisticExt => "STATISTICS",
    ObjectSubscription => "SUBSCRIPTION",
    ObjectTable | ObjectColumn | ObjectTabconstraint => "TABLE",
    ObjectTablespace => "TABLESPACE",
    ObjectTransform => "TRANSFORM",
    ObjectTrigger => "TRIGGER",
    ObjectTsconfiguration => "TEXT SEARCH CONFIGURATION",
    ObjectTsdictionary => "TEXT SEARCH DICTIONARY",
    ObjectTsparser => "TEXT SEARCH PARSER",
    ObjectTstemplate => "TEXT SEARCH TEMPLATE",
    ObjectType | ObjectAttribute => "TYPE",
    ObjectView => "VIEW",
}
