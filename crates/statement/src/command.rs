//! Whether a read-only transaction, a transaction block or a function may run a statement.

use melba_parse::command::{Allowed, allowed, is_query, tag, writing_command};
use melba_types::{Result, bail, err};
use pg_query::NodeEnum as N;
use pg_query::protobuf::VariableSetKind;

use super::context::SessionState;
use super::transaction::{Block, prevent_in_block};

/// Raises PostgreSQL's errors for a command in the wrong kind of transaction.
pub fn check(node: &N, block: Block, read_only: bool) -> Result<()> {
    if read_only {
        check_read_only(node)?;
    }
    match allowed(node) {
        Allowed::OwnTransaction(command) => prevent_in_block(block, command),
        Allowed::Block(command) if block == Block::None => {
            bail!(NO_ACTIVE_SQL_TRANSACTION, "{command} can only be used in transaction blocks")
        }
        Allowed::Block(_) | Allowed::Anywhere | Allowed::FailedBlock => Ok(()),
    }
}

/// Warns of a command without effect, because its transaction ends with it.
pub fn warn_outside_block(node: &N, block: Block, session: &SessionState) {
    let command = match node {
        _ if block != Block::None => return,
        N::ConstraintsSetStmt(_) => "SET CONSTRAINTS",
        N::VariableSetStmt(set) if set.is_local => "SET LOCAL",
        N::VariableSetStmt(set) => match (set.kind == VariableSetKind::VarSetMulti as i32, set.name.as_str()) {
            (true, "SESSION CHARACTERISTICS") | (false, _) => return,
            (true, _) => "SET TRANSACTION",
        },
        _ => return,
    };
    session.warning(err!(NO_ACTIVE_SQL_TRANSACTION, "{command} can only be used in transaction blocks"));
}

/// # Errors
/// 25006 for a command that a read-only transaction refuses by its text. What INSERT, UPDATE, DELETE and MERGE change is known when
/// they are planned (`execution::check_use`).
pub fn check_read_only(node: &N) -> Result<()> {
    match writing_command(node) {
        Some(command) if !matches!(node, N::InsertStmt(_) | N::UpdateStmt(_) | N::DeleteStmt(_) | N::MergeStmt(_)) => {
            bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {command} in a read-only transaction")
        }
        _ => Ok(()),
    }
}

/// For a statement of a function's body. `shares_view`: the function is not VOLATILE and uses its caller's view.
///
/// # Errors
/// 0A000 for a statement with changes and for one that is no query in such a function, 25006 in a read-only transaction.
pub fn check_in_function(node: &N, shares_view: bool, session: &SessionState) -> Result<()> {
    let command = writing_command(node);
    if shares_view && (command.is_some() || !is_query(node)) {
        bail!(FEATURE_NOT_SUPPORTED, "{} is not allowed in a non-volatile function", command.unwrap_or_else(|| tag(node)));
    }
    if command.is_none() {
        return Ok(());
    }
    match session.settings.lock().get("transaction_read_only").as_bool() {
        true => check_read_only(node),
        false => Ok(()),
    }
}

/// # Errors
/// 25001 for a command that a function cannot run.
pub fn check_in_routine(node: &N) -> Result<()> {
    match allowed(node) {
        Allowed::OwnTransaction(command) => bail!(ACTIVE_SQL_TRANSACTION, "{command} cannot be executed from a function"),
        Allowed::Block(_) | Allowed::Anywhere | Allowed::FailedBlock => Ok(()),
    }
}
