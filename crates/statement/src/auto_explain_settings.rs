//! The settings of auto_explain, as a session has them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use melba_plan::explain::ExplainOptions;
use melba_plan::explain_document::Format;
use melba_serverlog::Level;
use melba_settings::Settings;
use melba_types::Severity;
use parking_lot::Mutex;

/// The settings of a session, once a plan may be logged.
#[derive(Clone, Debug)]
pub struct PlanLogging {
    pub least: Duration,
    /// Of top-level statements, by which it is decided for those within.
    pub sample_rate: f64,
    pub nested: bool,
    pub analyze: bool,
    pub options: ExplainOptions,
    pub settings: bool,
    pub format: Option<Format>,
    pub level: Level,
    pub parameter_max: Option<usize>,
}

/// A session's auto_explain.
#[derive(Debug, Default)]
pub struct AutoExplain {
    is_on: AtomicBool,
    wanted: Mutex<Option<Arc<PlanLogging>>>,
    /// The statement that runs, at the top level, is in the sample.
    is_sampled: AtomicBool,
}

impl AutoExplain {
    /// Follows the settings.
    pub fn configure(&self, settings: &Settings) {
        let wanted = wanted(settings).map(Arc::new);
        self.is_on.store(wanted.is_some(), Ordering::Relaxed);
        *self.wanted.lock() = wanted;
    }

    /// The settings; `None`: no plan is logged.
    pub fn wanted(&self) -> Option<Arc<PlanLogging>> {
        self.wanted.lock().clone()
    }

    pub fn is_sampled(&self) -> bool {
        self.is_sampled.load(Ordering::Relaxed)
    }

    pub(super) fn set_sampled(&self, is_sampled: bool) {
        self.is_sampled.store(is_sampled, Ordering::Relaxed);
    }

    /// Whether plans may be logged with all of their texts.
    pub fn is_verbose(&self) -> bool {
        self.is_on() && self.wanted().is_some_and(|wanted| wanted.options.verbose)
    }

    /// Whether plans may be logged, and so need their texts.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }
}

fn wanted(settings: &Settings) -> Option<PlanLogging> {
    let least = u64::try_from(settings.get("auto_explain.log_min_duration").as_integer()).ok()?;
    let on = |name: &str| settings.get(name).as_bool();
    let analyze = on("auto_explain.log_analyze");
    Some(PlanLogging {
        least: Duration::from_millis(least),
        sample_rate: settings.get("auto_explain.sample_rate").as_real(),
        nested: on("auto_explain.log_nested_statements"),
        analyze,
        options: ExplainOptions {
            costs: true,
            analyze,
            timing: on("auto_explain.log_timing"),
            buffers: analyze && on("auto_explain.log_buffers"),
            wal: analyze && on("auto_explain.log_wal"),
            io_timing: on("track_io_timing"),
            verbose: on("auto_explain.log_verbose"),
        },
        settings: on("auto_explain.log_settings"),
        format: match settings.get("auto_explain.log_format").as_text() {
            "json" => Some(Format::Json),
            "xml" => Some(Format::Xml),
            "yaml" => Some(Format::Yaml),
            _ => None,
        },
        level: Level::by_name(settings.get("auto_explain.log_level").as_text()).unwrap_or(Level::Log),
        parameter_max: usize::try_from(settings.get("auto_explain.log_parameter_max_length").as_integer()).ok(),
    })
}

/// The severity by which clients know a level.
pub fn severity(level: Level) -> Severity {
    match level {
        Level::Debug5 | Level::Debug4 | Level::Debug3 | Level::Debug2 | Level::Debug1 => Severity::Debug,
        Level::Info => Severity::Info,
        Level::Notice => Severity::Notice,
        Level::Warning => Severity::Warning,
        _ => Severity::Log,
    }
}
