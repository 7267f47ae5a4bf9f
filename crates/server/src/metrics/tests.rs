use std::io::{Read, Write};
use std::time::{Duration, Instant};

use melba_engine::{Engine, EngineOptions};
use melba_settings::Settings;
use melba_transaction::cluster::Cluster;
use melba_vfs::{ManualClock, MemoryDirectory, SeededRandom};

use super::*;

fn instance() -> Arc<Instance> {
    let clock: Arc<ManualClock> = Arc::default();
    let engine = Engine::open(EngineOptions::default(), MemoryDirectory::new(), clock.clone()).expect("an empty directory opens");
    let cluster = Cluster::open(engine, clock, Arc::new(SeededRandom::new(1))).expect("an empty engine has a catalog");
    Arc::new(Instance::new(Settings::server(&[]).expect("no setting is wrong"), cluster))
}

fn listening(token: &str) -> Metrics {
    Metrics::listen("127.0.0.1:0", token, Arc::default()).expect("a port is free")
}

/// The response to some bytes.
fn ask(metrics: &Metrics, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(metrics.address()).expect("it listens");
    stream.write_all(request).expect("it reads");
    let mut answer = Vec::new();
    // A response that is cut off still has its first part.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(metrics: &Metrics, path: &str, headers: &str) -> String {
    ask(metrics, format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").as_bytes())
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn a_server_is_ready_once_it_serves() {
    let metrics = listening("");
    assert_eq!(status(&get(&metrics, "/health", "")), "200");
    assert_eq!(status(&get(&metrics, "/ready", "")), "503");
    assert!(get(&metrics, "/metrics", "").contains("\npg_up 0\n"));
    metrics.set_ready(instance());
    assert_eq!(status(&get(&metrics, "/ready", "")), "200");
    assert_eq!(status(&get(&metrics, "/nothing", "")), "404");
    assert_eq!(status(&ask(&metrics, b"DELETE /metrics HTTP/1.1\r\n\r\n")), "405");
    metrics.set_stopping();
    assert_eq!(status(&get(&metrics, "/ready", "")), "503");
}

/// Each line is a comment about the metric that follows, or a sample of the one before.
#[test]
fn metrics_are_prometheus_text() {
    let metrics = listening("");
    metrics.set_ready(instance());
    let answer = get(&metrics, "/metrics", "");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    let mut metric = "";
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            metric = rest.split(' ').next().unwrap_or_default();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(matches!(rest.split_once(' '), Some((name, "counter" | "gauge")) if name == metric), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap_or_default();
            let is_named =
                name == metric || name.strip_prefix(metric).is_some_and(|rest| rest.starts_with('{') && rest.ends_with('}'));
            assert!(is_named && value.parse::<f64>().is_ok(), "{line}");
        }
    }
    for expected in [
        "pg_up 1",
        "pg_exporter_last_scrape_error 0",
        "pg_stat_database_xact_commit{datid=\"5\",datname=\"postgres\"} 0",
        "pg_stat_database_blks_hit{datid=\"5\",datname=\"postgres\"} 0",
        "pg_locks_count{datname=\"postgres\",mode=\"accesssharelock\"}",
        "pg_settings_max_connections 100",
        "pg_settings_statement_timeout_seconds 0",
        "pg_stat_bgwriter_buffers_alloc_total 0",
        "melba_flushes_total 0",
        "melba_query_memory_limit_bytes ",
        "process_resident_memory_bytes ",
    ] {
        assert!(body.lines().any(|line| line.starts_with(expected)), "{expected} in {body}");
    }
}

#[test]
fn a_token_is_asked_for_where_there_is_one() {
    let file = tempfile::NamedTempFile::new().expect("there is room");
    std::fs::write(file.path(), "secret\n").expect("there is room");
    let metrics = listening(&file.path().display().to_string());
    metrics.set_ready(instance());
    assert_eq!(status(&get(&metrics, "/metrics", "")), "401");
    assert_eq!(status(&get(&metrics, "/metrics", "Authorization: Bearer secret2\r\n")), "401");
    assert_eq!(status(&get(&metrics, "/metrics", "Authorization: Basic secret\r\n")), "401");
    assert_eq!(status(&get(&metrics, "/metrics", "Authorization: Bearer secret\r\n")), "200");
    assert_eq!(status(&get(&metrics, "/ready", "")), "200");
    let beyond = Metrics::listen("0.0.0.0:0", "", Arc::default());
    assert!(beyond.is_err(), "others need a token");
}

#[test]
fn no_client_holds_up_another() {
    let metrics = listening("");
    // They say nothing, or never end.
    let silent: Vec<TcpStream> =
        (0..CLIENTS_MAX - 1).map(|_| TcpStream::connect(metrics.address()).expect("it listens")).collect();
    for mut stream in &silent[..4] {
        stream.write_all(b"GET /health HTTP/1.1\r\nX: ").expect("it reads");
    }
    let began = Instant::now();
    assert_eq!(status(&get(&metrics, "/health", "")), "200");
    assert!(began.elapsed() < Duration::from_secs(3));
    drop(silent);
    let long = [b"GET /".as_slice(), &vec![b'a'; 100_000]].concat();
    let answer = ask(&metrics, &long);
    assert!(matches!(status(&answer), "431" | "none"), "{answer}");
    assert_eq!(status(&ask(&metrics, b"\x00\x01\x02\r\n\r\n")), "400");
    assert_eq!(status(&get(&metrics, "/health", "")), "200");
}

#[test]
fn the_catalog_of_published_tables_answers_in_its_error_model() {
    let metrics = listening("");
    assert_eq!(status(&get(&metrics, "/iceberg/v1/config", "")), "503");
    metrics.set_ready(instance());
    for (path, kind) in [
        ("/iceberg/v1/config", "NoSuchWarehouseException"),
        ("/iceberg/v1/5.16384/namespaces", "NoSuchWarehouseException"),
        ("/iceberg/v2", "NoSuchEndpointException"),
    ] {
        let answer = get(&metrics, path, "");
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        assert!(status(&answer) == "404" && body.contains(&format!("\"type\":\"{kind}\"")), "{path}: {answer}");
    }
    assert_eq!(status(&ask(&metrics, b"POST /iceberg/v1/x/namespaces HTTP/1.1\r\nHost: x\r\n\r\n")), "405");
}
