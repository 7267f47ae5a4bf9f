//! csvlog: one record of 26 columns a message, for COPY into a table.

use crate::policy::Verbosity;
use crate::{LogRecord, prefix};

pub(crate) fn line(record: &LogRecord<'_>, number: u64) -> Vec<u8> {
    let (source, entry) = (record.source, record.entry);
    let client = source.client.as_ref();
    let login = client.and_then(|client| client.login());
    let mut out = Row::default();
    out.bare(&record.stamp.milliseconds());
    out.literal(login.as_ref().map(|(user, _)| &**user));
    out.literal(login.as_ref().map(|(_, database)| &**database));
    out.bare(&source.pid.to_string());
    out.literal(client.map(|client| match client.port {
        Some(port) => format!("{}:{port}", client.host),
        None => client.host.clone(),
    }));
    out.bare(&source.session_id());
    out.bare(&number.to_string());
    out.literal(client.map(|_| entry.command));
    out.bare(&record.started.seconds());
    out.bare(&prefix::virtual_id(record).unwrap_or_default());
    out.bare(&entry.transaction.xid.to_string());
    out.bare(entry.level.name());
    out.bare(entry.sqlstate.as_str());
    out.literal(Some(&*entry.message));
    out.literal(entry.detail.as_deref());
    out.literal(entry.hint.as_deref());
    out.literal(entry.internal.as_ref().map(|(_, query)| &**query));
    out.bare(&entry.internal.as_ref().map_or_else(String::new, |(position, _)| position.to_string()));
    out.literal(entry.context.as_deref());
    out.literal(entry.statement.as_deref());
    out.bare(&entry.position.filter(|_| entry.statement.is_some()).map_or_else(String::new, |p| p.to_string()));
    let origin = entry.origin.filter(|_| record.verbosity == Verbosity::Verbose);
    out.literal(origin.map(|o| format!("{}, {}:{}", o.routine, o.file, o.line)));
    out.literal(Some(client.map(|client| client.application_name()).as_deref().unwrap_or_default()));
    out.literal(Some(source.kind));
    // The leader of a parallel worker.
    out.bare("");
    out.bare(&entry.query_id.to_string());
    out.0.push('\n');
    out.0.into_bytes()
}

#[derive(Default)]
struct Row(String);

impl Row {
    fn bare(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(text);
    }

    /// In quotes; nothing at all for no text.
    fn literal(&mut self, text: Option<impl AsRef<str>>) {
        self.bare("");
        if let Some(text) = text {
            self.0.push('"');
            self.0.push_str(&text.as_ref().replace('"', "\"\""));
            self.0.push('"');
        }
    }
}
