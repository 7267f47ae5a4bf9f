//! The properties of a function that CREATE FUNCTION does not name.

use melba_catalog::{Function, FunctionKind, classes};
use melba_types::Oid;

/// A function without arguments and body, with the properties that CREATE FUNCTION gives when it names none.
pub fn plain_function(name: &str, namespace: Oid, owner: Oid) -> Function {
    Function {
        oid: Oid::INVALID,
        name: name.into(),
        namespace,
        owner,
        kind: FunctionKind::Function,
        language: classes::INTERNAL_LANGUAGE,
        cost: 1.0,
        rows: 0.0,
        strict: false,
        returns_set: false,
        volatility: b'v',
        parallel: b'u',
        security_definer: false,
        leakproof: false,
        arg_types: Vec::new(),
        all_arg_types: Vec::new(),
        arg_modes: Vec::new(),
        arg_names: Vec::new(),
        arg_defaults: Vec::new(),
        variadic: Oid::INVALID,
        return_type: Oid::INVALID,
        source: "".into(),
        sql_body: None,
        config: Vec::new(),
        acl: None,
        depends_on: Vec::new(),
        aggregate: None,
    }
}
