//! LISTEN, NOTIFY and UNLISTEN.

use melba_types::{Datum, Result, bail};
use pg_query::protobuf::node::Node as N;

use super::context::StatementContext;
use super::outcome::Outcome;
use melba_transaction::Tx;

/// Runs LISTEN, NOTIFY or UNLISTEN; `None`: it is another statement.
pub(super) fn run(context: &StatementContext, tx: &Tx, node: &N) -> Option<Result<Outcome>> {
    let listener = &context.session.listener;
    let result = match node {
        N::NotifyStmt(s) => tx.notify(listener, &s.conditionname, &s.payload).map(|()| "NOTIFY"),
        N::ListenStmt(s) => {
            check_unrestricted(context, "LISTEN").and_then(|()| tx.listen(listener, &s.conditionname)).map(|()| "LISTEN")
        }
        N::UnlistenStmt(s) => check_unrestricted(context, "UNLISTEN").map(|()| {
            tx.unlisten(listener, Some(&*s.conditionname).filter(|channel| !channel.is_empty()));
            "UNLISTEN"
        }),
        _ => return None,
    };
    Some(result.map(|tag| Outcome::Done { tag: tag.to_owned() }))
}

fn check_unrestricted(context: &StatementContext, command: &str) -> Result<()> {
    if context.user.restricted {
        bail!(INSUFFICIENT_PRIVILEGE, "cannot execute {command} within security-restricted operation");
    }
    Ok(())
}

impl StatementContext {
    /// pg_notify.
    pub(super) fn call_notify(&self, tx: &Tx, args: &[Datum]) -> Result<Datum> {
        let text = |argument: &Datum| if argument.is_null() { String::new() } else { argument.as_str().to_owned() };
        tx.notify(&self.session.listener, &text(&args[0]), &text(&args[1]))?;
        Ok(Datum::text(""))
    }
}
