//! A session's data about its statement for the server log.

/// A session's data about its statement for the log.
#[derive(Debug, Default)]
pub struct Logging {
    /// When the message arrived that is being processed, in microseconds since 2000; 0: it is not needed.
    pub(super) began: i64,
    /// log_statement has written the text already.
    pub(super) has_text: bool,
    /// log_transaction_sample_rate has chosen the transaction.
    pub(super) is_sampled: bool,
    /// A statement whose commit waits for the disk: its duration is not over.
    pub(super) pending: Option<PendingDuration>,
    /// The tag of the command that runs.
    pub command: Option<&'static str>,
}

/// A statement whose duration is not over.
#[derive(Debug)]
pub struct PendingDuration {
    pub(super) began: i64,
    pub(super) message: String,
    pub(super) detail: Option<String>,
}
