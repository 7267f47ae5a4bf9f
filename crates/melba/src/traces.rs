//! The collector of traces, if traces_endpoint is set.

use std::sync::Arc;

use melba_serverlog::{Level, ServerLog};
use melba_settings::Settings;
use melba_traces::{Collector, Exporter, Resource, Tracer};

/// The largest size of the file with headers.
const HEADERS_BYTES_MAX: u64 = 16384;

/// # Errors
/// In words: the endpoint, or the file with headers, is none.
pub fn start(settings: &Settings, log: &Arc<ServerLog>) -> Result<Option<(Exporter, Arc<Tracer>)>, String> {
    let text = |name: &str| settings.get(name).as_text().to_owned();
    let endpoint = text("traces_endpoint");
    if endpoint.is_empty() {
        return Ok(None);
    }
    let file = text("traces_headers_file");
    let headers = if file.is_empty() { String::new() } else { read_headers(&file)? };
    let cluster = text("cluster_name");
    let service = if cluster.is_empty() { "melba".to_owned() } else { cluster };
    let resource = Resource { service, version: env!("CARGO_PKG_VERSION").to_owned() };
    let warned = Arc::clone(log);
    let warn = Box::new(move |text: String| warned.server(Level::Warning, text));
    let collector = Collector { endpoint, headers };
    let started = Exporter::start(&collector, resource, warn)?;
    log.server(Level::Log, "statements are traced");
    Ok(Some(started))
}

fn read_headers(file: &str) -> Result<String, String> {
    use std::io::Read as _;
    let mut text = String::new();
    let opened = std::fs::File::open(file).and_then(|file| file.take(HEADERS_BYTES_MAX).read_to_string(&mut text));
    opened.map(|_| text).map_err(|e| format!("could not read the file of traces_headers_file, \"{file}\": {e}"))
}
