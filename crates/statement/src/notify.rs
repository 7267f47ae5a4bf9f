//! LISTEN, NOTIFY and UNLISTEN.

use melba_transaction::Tx;
use melba_types::{Datum, Result, bail};
use pg_query::protobuf::{ListenStmt, NotifyStmt, UnlistenStmt};

use super::context::StatementContext;
use super::ddl_context::Utility;

pub(super) fn notify(utility: &Utility<'_>, s: &NotifyStmt) -> Result<()> {
    utility.tx.notify(&utility.context.session.listener, &s.conditionname, &s.payload)
}

pub(super) fn listen(utility: &Utility<'_>, s: &ListenStmt) -> Result<()> {
    check_unrestricted(utility.context, "LISTEN")?;
    utility.tx.listen(&utility.context.session.listener, &s.conditionname)
}

pub(super) fn unlisten(utility: &Utility<'_>, s: &UnlistenStmt) -> Result<()> {
    check_unrestricted(utility.context, "UNLISTEN")?;
    let channel = Some(&*s.conditionname).filter(|channel| !channel.is_empty());
    utility.tx.unlisten(&utility.context.session.listener, channel);
    Ok(())
}

fn check_unrestricted(context: &StatementContext, command: &str) -> Result<()> {
    if context.user.restricted {
        bail!(INSUFFICIENT_PRIVILEGE, "cannot execute {command} within security-restricted operation");
    }
    Ok(())
}

/// pg_notify.
pub(super) fn call_notify(context: &StatementContext, tx: &Tx, args: &[Datum]) -> Result<Datum> {
    let text = |argument: &Datum| if argument.is_null() { String::new() } else { argument.as_str().to_owned() };
    tx.notify(&context.session.listener, &text(&args[0]), &text(&args[1]))?;
    Ok(Datum::text(""))
}
