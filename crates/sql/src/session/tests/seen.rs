//! The session as others see it, and what it tells its client beside answers.

use std::sync::Arc;

use melba_protocol::Frontend;
use melba_statement::backends::{Backend, Limits, Wake};

use super::Harness;

/// Sessions here never wait for a client.
#[derive(Debug)]
struct NoWait;

impl Wake for NoWait {
    fn wake(&self) {}
}

impl Harness {
    /// Lets others see the session, as a server does.
    pub(in super::super) fn register(&self) {
        let state = &self.session.state;
        let backend = Backend {
            pid: state.pid,
            role: state.user_oid,
            database: state.database_oid,
            secret: Vec::new(),
            interrupt: state.interrupt.clone(),
            wake: Box::new(NoWait),
            activity: state.activity.clone(),
        };
        let limits = Limits { server: 1, of_role: None, of_database: None };
        state.instance.backends.add(Arc::new(backend), &limits).expect("the only session");
    }

    /// Runs a statement: the messages of its notices.
    pub(in super::super) fn notices(&mut self, text: &str) -> Vec<String> {
        self.send(Frontend::Query(text));
        let (mut rest, mut notices) = (self.peer.0.bytes(), Vec::new());
        while let [tag, body @ ..] = rest {
            let (length, _) = body.split_first_chunk().expect("a message has its length");
            let (message, next) = body.split_at(u32::from_be_bytes(*length) as usize);
            if *tag == b'N' {
                let field = message[4..].split(|b| *b == 0).find_map(|f| f.strip_prefix(b"M"));
                notices.push(String::from_utf8_lossy(field.unwrap_or_default()).into_owned());
            }
            rest = next;
        }
        self.peer.0.clear();
        notices
    }
}
