//! The settings for counting statements.

use melba_settings::Settings;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Tracking {
    /// Statements have identifiers (compute_query_id).
    pub is_identified: bool,
    pub is_on: bool,
    pub utility: bool,
    pub planning: bool,
    /// How many statements may be known.
    pub max: usize,
}

impl Tracking {
    pub fn of(settings: &Settings) -> Tracking {
        let on = |name: &str| settings.get(name).as_bool();
        let is_identified = settings.get("compute_query_id").as_text() != "off";
        Tracking {
            is_identified,
            is_on: is_identified && settings.get("pg_stat_statements.track").as_text() != "none",
            utility: on("pg_stat_statements.track_utility"),
            planning: on("pg_stat_statements.track_planning"),
            max: settings.get("pg_stat_statements.max").as_integer().max(100) as usize,
        }
    }
}
