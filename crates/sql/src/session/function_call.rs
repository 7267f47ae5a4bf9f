//! The FunctionCall message: one function by its OID, outside any statement.

use melba_catalog::privileges::AclKind;
use melba_catalog::{Function, FunctionKind, acl};
use melba_protocol::Format;
use melba_protocol::frontend::FunctionCall as Message;
use melba_statement::client::Client;
use melba_statement::context::StatementContext;
use melba_statement::large_objects::{call_large_object, is_large_object_function};
use melba_statement::transaction::{Block, aborted};
use melba_statement::value_io::{ValueIo, too_long, unknown_format};
use melba_statement::values;
use melba_types::{Datum, DbError, Oid, Result, bail, err};

use super::Session;

/// Calls the function and sends its result.
pub(super) fn function_call(session: &mut Session, message: &Message<'_>, client: &mut dyn Client) -> Result<()> {
    session.set_source(&"".into());
    if session.block == Block::Failed {
        return Err(aborted());
    }
    session.start_command()?;
    if let Some(transaction) = &mut session.transaction {
        transaction.used = true;
    }
    if message.argument_formats.len() > 1 && message.argument_formats.len() != message.arguments.len() {
        bail!(
            PROTOCOL_VIOLATION,
            "function call message contains {} argument formats but {} arguments",
            message.argument_formats.len(),
            message.arguments.len()
        );
    }
    let context = session.context().clone();
    let function = callable(&context, message)?;
    let io = ValueIo::new(&context);
    let mut arguments = Vec::with_capacity(function.arg_types.len());
    for (i, (value, ty)) in message.arguments.iter().zip(&function.arg_types).enumerate() {
        arguments.push(match (value, message.argument_formats.get(i)) {
            (_, Format::Unknown(code)) => return Err(unknown_format(code)),
            (None, _) => Datum::Null,
            (Some(bytes), Format::Text) => io.input(*ty, melba_protocol::body::utf8(bytes)?)?,
            (Some(bytes), Format::Binary) => {
                io.receive(*ty, bytes).map_err(|e| too_long(e, &format!("function argument {}", i + 1)))?
            }
        });
    }
    let value = session.lend_for(client, || call(&context, &function, arguments))?;
    let mut bytes = Vec::new();
    match (&value, message.result_format) {
        (_, Format::Unknown(code)) => return Err(unknown_format(code)),
        (Datum::Null, _) => {}
        (value, Format::Text) => io.output(function.return_type, value, &mut bytes)?,
        (value, Format::Binary) => io.send(function.return_type, value, &mut bytes)?,
    }
    session.lend(client, Session::finish_command)?;
    session.send_notices(client);
    client.output().function_call_response((!value.is_null()).then_some(&bytes));
    Ok(())
}

/// Functions that work on an open descriptor, a piece at a time.
const PIECES: [&str; 6] = ["be_loread", "be_lowrite", "be_lo_lseek", "be_lo_lseek64", "be_lo_tell", "be_lo_tell64"];

/// Large objects are read and written through this message a piece at a time: those functions are called without a plan, and their
/// writes stay in the transaction's buffer until another statement reads them, such as the opening of a descriptor for reading.
fn call(context: &StatementContext, function: &Function, arguments: Vec<Datum>) -> Result<Datum> {
    if !is_large_object_function(&function.source) {
        return values::call_function(context, function, arguments);
    }
    if arguments.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    if !PIECES.contains(&&*function.source) {
        tx.flush_large_objects()?;
    }
    tx.engine.statement_view();
    call_large_object(context, &function.source, &arguments)
}

/// The function that the message names, if it may be called this way.
fn callable(context: &StatementContext, message: &Message<'_>) -> Result<std::sync::Arc<Function>> {
    let catalog = &context.catalog;
    let Some(function) = catalog.function(message.function) else {
        bail!(UNDEFINED_FUNCTION, "function with OID {} does not exist", message.function);
    };
    if function.kind != FunctionKind::Function || function.returns_set {
        bail!(FEATURE_NOT_SUPPORTED, "cannot call function \"{}\" via fastpath interface", function.name);
    }
    let user: Oid = context.user.oid;
    if let Some(namespace) = catalog.namespace(function.namespace)
        && !catalog.has_privileges(user, AclKind::Namespace, namespace.owner, &namespace.acl, acl::USAGE)
    {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for schema {}", namespace.name);
    }
    if !catalog.has_privileges(user, AclKind::Function, function.owner, &function.acl, acl::EXECUTE) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for function {}", function.name);
    }
    if message.arguments.len() != function.arg_types.len() {
        return Err(err!(
            PROTOCOL_VIOLATION,
            "function call message contains {} arguments but function requires {}",
            message.arguments.len(),
            function.arg_types.len()
        ));
    }
    Ok(function.clone())
}
