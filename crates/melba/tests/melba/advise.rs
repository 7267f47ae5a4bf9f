//! `melba advise --verify`: a part of some collections is tried, all of them are loaded, and the prediction was true within a tenth. Any
//! collection is checked in the same way: `melba advise FOLDER --sample 20MB --verify`.

// Another command, tested here because a test program more is linked for a long time.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Numbers by a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn word(&mut self, words: u64) -> String {
        let n = self.below(words).min(self.below(words)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (0..3 + n % 7).map(|at| char::from(b'a' + ((n >> (8 + at * 5)) % 26) as u8)).collect()
    }

    fn text(&mut self, count: u64, words: u64) -> String {
        (0..count).map(|_| self.word(words) + " ").collect()
    }
}

/// Predicts from a sample, with a small server, so that there are several sections, and loads all.
fn verify(source: &Path, sample: &str) -> serde_json::Value {
    let out = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_melba"));
    command.arg("advise").arg(source).args(["--sample", sample, "--memory", "96MB", "--budgets", "0.2", "--verify", "--out"]);
    let output = command.arg(out.path()).output().expect("it runs");
    let text = std::fs::read_to_string(out.path().join("advice.json")).unwrap_or_default();
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
    let advice: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let methods = advice["verdicts"].as_array().expect("verdicts").iter().map(|verdict| verdict["method"].as_str());
    assert_eq!(methods.collect::<Vec<_>>(), ["lz4", "zstd", "dense, 0.2 ms"].map(Some));
    advice
}

#[test]
fn pages_of_several_sites_have_the_predicted_size() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut numbers = Numbers(1);
    let frames: Vec<String> = (0..4).map(|_| numbers.text(900, 20_000)).collect();
    for page in 0..800 {
        // Sites follow one another: a part of the folder knows not all of them.
        let site = &frames[page / 200];
        let own = numbers.text(60, 5000);
        let at = site.len() / 2;
        let text = format!("<html>{}<h1>{page}</h1>{own}{}</html>", &site[..at], &site[at..]);
        std::fs::write(folder.path().join(format!("{page:04}.html")), text).expect("a file");
    }
    let advice = verify(folder.path(), "500kB");
    let melba = advice["melba_bytes"].as_f64().expect("a number");
    assert!(melba * 3.0 < advice["postgres_lz4_bytes"].as_f64().expect("a number"), "{advice}");
}

#[test]
fn a_table_of_short_and_long_values_has_the_predicted_size() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut numbers = Numbers(2);
    let manual = numbers.text(700, 20_000);
    let mut csv = String::from("id,event,note,document,secret\n");
    for id in 0..8000 {
        let (kind, user, trace) = (numbers.word(12), numbers.below(500), numbers.below(1 << 31));
        let note = numbers.text(12, 3000);
        let document = if id % 16 == 0 {
            format!("{}{}{}", &manual[..2000], numbers.text(20, 3000), &manual[2000..])
        } else {
            String::new()
        };
        let secret: String = (0..40).map(|_| char::from(b'!' + numbers.below(90) as u8)).filter(|c| *c != '"').collect();
        let event = format!(
            "{{\"\"kind\"\": \"\"{kind}\"\", \"\"user\"\": {user}, \"\"agent\"\": \"\"Mozilla/5.0 (X11; Linux)\"\", \"\"trace\"\": {trace}}}"
        );
        writeln!(csv, "{id},\"{event}\",{note},\"{document}\",\"{secret}\"").expect("memory");
    }
    let path = folder.path().join("events.csv");
    std::fs::write(&path, csv).expect("a file");
    verify(&path, "500kB");
}
