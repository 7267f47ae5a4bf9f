//! A session for tests: the default settings, a stopped clock, random numbers that repeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use melba_catalog::Catalog;
use melba_types::{Datum, DbError, Oid, Result};

use crate::{CallInfo, DateOrder, DateStyle, FormatSettings, IntervalStyle, Session, io};

/// See the module.
pub struct FixedSession {
    pub catalog: Arc<Catalog>,
    pub format: FormatSettings,
    random: AtomicU64,
}

impl Default for FixedSession {
    fn default() -> Self {
        FixedSession {
            catalog: Arc::new(Catalog::default()),
            format: FormatSettings {
                date_style: DateStyle::Iso,
                date_order: DateOrder::Mdy,
                interval_style: IntervalStyle::Postgres,
                time_zone: "UTC".into(),
                extra_float_digits: 1,
                bytea_hex: true,
                xml_document: false,
                client_encoding: melba_encoding::UTF8,
            },
            random: AtomicU64::new(1),
        }
    }
}

impl FixedSession {
    pub fn call<'a>(&'a self, arg_types: &'a [Oid], return_type: Oid) -> CallInfo<'a> {
        CallInfo {
            session: self,
            arg_types,
            return_type,
            collation: Oid(100),
            variadic: false,
            columns: None,
            view: CallInfo::NO_VIEW,
        }
    }

    /// Calls a function with arguments and result as text; an error as SQLSTATE and message.
    pub fn call_text(&self, source: &str, args: &[(Oid, &str)], result: Oid) -> std::result::Result<String, String> {
        let types: Vec<Oid> = args.iter().map(|a| a.0).collect();
        let run = || {
            let datums: Vec<Datum> = args.iter().map(|(ty, text)| io::text_in(self, *ty, -1, text)).collect::<Result<_>>()?;
            let function = crate::registry::scalar(source).expect("registered");
            match function(&self.call(&types, result), &datums)? {
                Datum::Null => Ok("NULL".to_string()),
                value => io::text_of(self, result, &value),
            }
        };
        run().map_err(|e: DbError| format!("{} {}", e.sqlstate(), e.message()))
    }
}

impl Session for FixedSession {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn format(&self) -> &FormatSettings {
        &self.format
    }

    fn setting(&self, _name: &str) -> Option<String> {
        None
    }

    fn transaction_timestamp(&self) -> i64 {
        0
    }

    fn statement_timestamp(&self) -> i64 {
        0
    }

    fn clock_timestamp(&self) -> i64 {
        0
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn random_u64(&self) -> u64 {
        // SplitMix64.
        let mut z = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<()> {
        bytes.fill_with(|| self.random_u64() as u8);
        Ok(())
    }

    fn notice(&self, _notice: DbError) {}

    fn system_function(&self, source: &str, _call: &CallInfo<'_>, _args: &[Datum]) -> Result<Datum> {
        Err(DbError::unsupported(source))
    }

    fn check_interrupt(&self) -> Result<()> {
        Ok(())
    }
}
