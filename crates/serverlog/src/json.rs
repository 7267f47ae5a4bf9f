//! jsonlog: one object per message and line; keys without a value are left out.

use crate::policy::Verbosity;
use crate::{LogRecord, prefix};

pub(crate) fn line(record: &LogRecord<'_>, number: u64) -> Vec<u8> {
    let (source, entry) = (record.source, record.entry);
    let mut out = Object("{".to_owned());
    out.text("timestamp", &record.stamp.milliseconds());
    if let Some(client) = &source.client {
        if let Some((user, database)) = client.login() {
            out.text("user", &user);
            out.text("dbname", &database);
        }
        out.bare("pid", source.pid);
        out.text("remote_host", &client.host);
        client.port.iter().for_each(|port| out.bare("remote_port", port));
    } else {
        out.bare("pid", source.pid);
    }
    out.text("session_id", &source.session_id());
    out.bare("line_num", number);
    if source.client.is_some() {
        out.text("ps", entry.command);
    }
    out.text("session_start", &record.started.seconds());
    prefix::virtual_id(record).iter().for_each(|id| out.text("vxid", id));
    out.bare("txid", entry.transaction.xid);
    out.text("error_severity", entry.level.name());
    // The code of success is left out.
    if entry.sqlstate.as_str() != "00000" {
        out.text("state_code", entry.sqlstate.as_str());
    }
    out.text("message", &entry.message);
    entry.detail.iter().for_each(|detail| out.text("detail", detail));
    entry.hint.iter().for_each(|hint| out.text("hint", hint));
    if let Some((position, query)) = &entry.internal {
        out.text("internal_query", query);
        out.bare("internal_position", position);
    }
    entry.context.iter().for_each(|context| out.text("context", context));
    if let Some(statement) = &entry.statement {
        out.text("statement", statement);
        entry.position.iter().for_each(|position| out.bare("cursor_position", position));
    }
    if let Some(origin) = entry.origin.filter(|_| record.verbosity == Verbosity::Verbose) {
        out.text("func_name", origin.routine);
        out.text("file_name", origin.file);
        out.bare("file_line_num", origin.line);
    }
    if let Some(name) = source.client.as_ref().map(|client| client.application_name()).filter(|name| !name.is_empty()) {
        out.text("application_name", &name);
    }
    out.text("backend_type", source.kind);
    out.bare("query_id", entry.query_id);
    out.0.push_str("}\n");
    out.0.into_bytes()
}

struct Object(String);

impl Object {
    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    fn bare(&mut self, key: &str, value: impl std::fmt::Display) {
        self.key(key);
        self.0.push_str(&value.to_string());
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        self.0.push('"');
        for c in value.chars() {
            match c {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '\r' => self.0.push_str("\\r"),
                '\t' => self.0.push_str("\\t"),
                '\u{8}' => self.0.push_str("\\b"),
                '\u{c}' => self.0.push_str("\\f"),
                c if c < ' ' => self.0.push_str(&format!("\\u{:04x}", c as u32)),
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }
}
