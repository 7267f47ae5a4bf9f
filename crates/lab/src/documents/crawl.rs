//! Generated documents: near-copies as crawlers, documentation tools and services write them. Content that all share (titles, descriptions,
//! templates), content that is unique to one (its name, its values), and content that changes from one copy to the next are separate.

use std::fmt::Write as _;

use crate::random::{Random, hash};

/// Documents of a row.
pub const DOCUMENTS: usize = 5;
/// Rows that show the same station, a week apart, are at least this many rows apart.
const STATIONS_MIN: u64 = 10;
/// Instruments of each of a station's documents, and measures of an instrument.
const INSTRUMENTS: u64 = 10;
const MEASURES: u64 = 33;

const WORDS: [&str; 64] = [
    "air", "altitude", "amber", "anchor", "autumn", "basin", "bay", "bright", "calm", "canal", "cedar", "clear", "cliff",
    "cloud", "coast", "cold", "creek", "dawn", "delta", "depth", "drift", "dust", "east", "ebb", "ember", "field", "flow", "fog",
    "forest", "frost", "gale", "glacier", "granite", "gulf", "hail", "harbour", "haze", "hill", "inlet", "island", "lake",
    "level", "lowland", "marsh", "meadow", "mist", "moor", "north", "ocean", "peak", "plain", "pressure", "rain", "ridge",
    "river", "sand", "shore", "slope", "snow", "south", "spring", "storm", "summit", "tide",
];
const UNITS: [&str; 6] = ["kelvin", "pascal", "metres per second", "millimetres", "percent", "watts per square metre"];
const SECTIONS: [&str; DOCUMENTS] = ["surface", "upper-air", "marine", "soil", "radiation"];

/// A kind of generated documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// A station's records, crawled every week: JSON, about 570 kB a row
    Crawl,
    /// Pages of a programming interface: HTML, about 30 kB each
    Pages,
    /// Records of services: JSON, about 580 bytes each
    Events,
}

/// Documents of a shape.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    pub shape: Shape,
    pub seed: u64,
    pub rows: u64,
}

impl Generator {
    pub fn row(&self, row: u64) -> Vec<Vec<u8>> {
        let each = |at: usize| match self.shape {
            Shape::Crawl => self.station(row, at as u64),
            Shape::Pages => self.page(row * DOCUMENTS as u64 + at as u64),
            Shape::Events => self.event(row * DOCUMENTS as u64 + at as u64),
        };
        (0..DOCUMENTS).map(|at| each(at).into_bytes()).collect()
    }

    /// A part of a station's content in a week.
    fn station(&self, row: u64, section: u64) -> String {
        let stations = (self.rows / 10).max(STATIONS_MIN);
        let week = row / stations;
        let station = (hash(&[self.seed, week]) % stations + row) % stations;
        let mut own = Random::new(&[self.seed, 1, station]);
        let mut now = Random::new(&[self.seed, 2, row, section]);
        let mut out = format!(
            "{{\"schema\":7,\"section\":\"{}\",\"station\":{{\"id\":\"{:016x}\",\"name\":\"{}\",\"height\":{}}},\"retrieved\":{},\"request\":\"{:016x}\",\"instruments\":[",
            SECTIONS[section as usize],
            own.number(),
            own.text(&WORDS, 3),
            own.below(3000),
            1_700_000_000 + week * 604_800 + now.below(86_400),
            now.number()
        );
        for instrument in 0..INSTRUMENTS {
            if instrument > 0 {
                out.push(',');
            }
            self.instrument(station, week, section * INSTRUMENTS + instrument, &mut out);
        }
        out.push_str("],\"log\":[");
        for entry in 0..12u64 {
            // A window of entries that moves by two a week.
            let mut at = Random::new(&[self.seed, 3, station, section, week * 2 + entry]);
            let comma = if entry > 0 { "," } else { "" };
            let _ = write!(
                out,
                "{comma}{{\"entry\":\"{:016x}\",\"observer\":{},\"text\":\"{}\",\"value\":{}}}",
                at.number(),
                at.below(400),
                at.text(&WORDS, 6),
                at.below(100_000)
            );
        }
        out.push_str("]}");
        out
    }

    /// An instrument's measures: their titles are everyone's; a station uses some of its instruments, and a few values change in a week.
    fn instrument(&self, station: u64, week: u64, number: u64, out: &mut String) {
        let mut shared = Random::new(&[self.seed, 4, number]);
        let used = hash(&[self.seed, 5, station, number]).is_multiple_of(3);
        let _ =
            write!(out, "{{\"instrument\":{number},\"title\":\"{}\",\"active\":{used},\"measures\":[", shared.text(&WORDS, 2));
        for measure in 0..MEASURES {
            let (title, unit) = (shared.text(&WORDS, 2), shared.one_of(&UNITS));
            let group = shared.one_of(&WORDS);
            // The week in which the value changed last.
            let since = (0..=week)
                .rev()
                .find(|week| hash(&[self.seed, 6, station, number, measure, *week]).is_multiple_of(12))
                .unwrap_or(0);
            let mut value = Random::new(&[self.seed, 7, station, number, measure, since]);
            let latest = if used { value.below(100_000) } else { 0 };
            let rank = if used { (value.below(1000) as f64 / 10.0).to_string() } else { "null".to_owned() };
            let comma = if measure > 0 { "," } else { "" };
            let _ = write!(
                out,
                "{comma}{{\"measure\":\"{title}\",\"group\":\"{group}\",\"title\":\"Measured {title} of the {group}\",\"unit\":\"{unit}\",\
                 \"flags\":{{\"visible\":true,\"ranked\":{},\"calibrated\":true}},\"rank\":null,\"percentile\":{rank},\
                 \"description\":\"The {title} as the {group} had it, in {unit}\",\"latest\":{latest},\"shown\":\"{latest} {unit}\"}}",
                measure % 5 != 0
            );
        }
        out.push_str("]}");
    }

    /// A page of a programming interface: a class of one of forty packages, whose pages share their navigation.
    fn page(&self, number: u64) -> String {
        let package = number / 25 % 40;
        let (mut own, mut kin) = (Random::new(&[self.seed, 10, number]), Random::new(&[self.seed, 11, package]));
        let (class, parent) = (camel(&mut own, 2), camel(&mut kin, 2));
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<title>{class}</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <link rel=\"stylesheet\" type=\"text/css\" href=\"../../stylesheet.css\" title=\"Style\">\n</head>\n<body class=\"class-declaration-page\">\n<nav role=\"navigation\">\n<ul class=\"nav-list\">\n"
        );
        for link in 0..60u64 {
            let mut shared = Random::new(&[self.seed, 12, package, link]);
            let name = camel(&mut shared, 2);
            let _ = writeln!(
                out,
                "<li class=\"nav-item\"><a href=\"{name}.html\" title=\"class in package{package}\">{name}</a></li>"
            );
        }
        let _ =
            writeln!(out, "</ul>\n</nav>\n<main role=\"main\">\n<h1 title=\"Class {class}\" class=\"title\">Class {class}</h1>");
        let _ = writeln!(
            out,
            "<div class=\"block\">{}.</div>\n<dl class=\"notes\">\n<dt>Extends:</dt><dd>{parent}</dd></dl>",
            own.text(&WORDS, 60)
        );
        for method in 0..20 + own.below(15) {
            // Two methods in three are inherited: their text is the package's.
            let mut described = match own.below(3) {
                0 => Random::new(&[self.seed, 13, number, method]),
                _ => Random::new(&[self.seed, 14, package, own.below(40)]),
            };
            let (name, result) = (camel(&mut described, 2), camel(&mut described, 1));
            let (parameter, words) = (described.one_of(&WORDS), 15 + described.below(50));
            let _ = writeln!(
                out,
                "<li>\n<section class=\"detail\" id=\"{name}({result})\">\n<h3>{name}</h3>\n<div class=\"member-signature\"><span class=\"modifiers\">public</span>&nbsp;\
                 <span class=\"return-type\">{result}</span>&nbsp;<span class=\"element-name\">{name}</span><wbr>\
                 <span class=\"parameters\">({result}&nbsp;{parameter})</span></div>\n<div class=\"block\">{}.</div>\n<dl class=\"notes\">\n<dt>Parameters:</dt>\n\
                 <dd><code>{parameter}</code> - {}</dd>\n<dt>Returns:</dt>\n<dd>{}</dd>\n</dl>\n</section>\n</li>",
                described.text(&WORDS, words),
                described.text(&WORDS, 5),
                described.text(&WORDS, 8)
            );
        }
        out.push_str("</main>\n</body>\n</html>\n");
        out
    }

    /// A record of a service.
    fn event(&self, number: u64) -> String {
        let mut own = Random::new(&[self.seed, 20, number]);
        let kind = own.below(8) * own.below(8) / 8;
        let (mut kin, host) = (Random::new(&[self.seed, 21, kind]), own.below(60));
        format!(
            "{{\"time\":{},\"level\":\"{}\",\"service\":\"{}\",\"host\":\"{}-{host}\",\"event\":\"{}\",\"message\":\"{}\",\"trace\":\"{:016x}{:016x}\",\
             \"span\":\"{:016x}\",\"user\":{{\"id\":{},\"plan\":\"{}\",\"region\":\"{}\"}},\"request\":{{\"path\":\"/api/v2/{}/{}\",\"milliseconds\":{},\"bytes\":{},\"status\":{}}},\
             \"tags\":[\"{}\",\"{}\"],\"agent\":\"client/{}.{} (linux; {})\",\"note\":\"{}\"}}",
            1_700_000_000_000 + number * 37 + own.below(30),
            own.one_of(&["info", "info", "info", "warning", "error"]),
            kin.text(&WORDS, 1),
            kin.text(&WORDS, 1),
            kin.text(&WORDS, 2),
            kin.text(&WORDS, 24),
            own.number(),
            own.number(),
            own.number(),
            own.below(50_000),
            own.one_of(&["free", "team", "business"]),
            own.one_of(&WORDS[..12]),
            kin.one_of(&WORDS),
            own.below(1_000_000),
            own.below(900),
            own.below(60_000),
            own.one_of(&["200", "200", "200", "404", "500"]),
            own.one_of(&WORDS),
            own.one_of(&WORDS),
            1 + own.below(4),
            own.below(20),
            own.one_of(&WORDS[..8]),
            own.text(&WORDS, 6)
        )
    }
}

/// A name as classes have them.
fn camel(random: &mut Random, words: u64) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    (0..words).map(|_| capital(random.one_of(&WORDS))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(row: &[Vec<u8>]) -> usize {
        row.iter().map(Vec::len).sum()
    }

    #[test]
    fn documents_have_their_shape_and_repeat() {
        for (shape, least, most) in
            [(Shape::Crawl, 500_000, 650_000), (Shape::Pages, 100_000, 200_000), (Shape::Events, 2_400, 3_400)]
        {
            let generator = Generator { shape, seed: 1, rows: 100 };
            let row = generator.row(17);
            assert_eq!(row.len(), DOCUMENTS);
            assert!((least..most).contains(&bytes(&row)), "{shape:?}: {}", bytes(&row));
            assert_eq!(row, generator.row(17), "the same row");
            assert_ne!(row, generator.row(18), "another row");
            assert_ne!(row, Generator { seed: 2, ..generator }.row(17), "another seed");
            if shape != Shape::Pages {
                for document in &row {
                    serde_json::from_slice::<serde_json::Value>(document).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_station_changes_little_in_a_week() {
        let generator = Generator { shape: Shape::Crawl, seed: 1, rows: 100 };
        let id = |row: &[Vec<u8>]| serde_json::from_slice::<serde_json::Value>(&row[0]).unwrap()["station"]["id"].to_string();
        let rows: Vec<_> = (0..30).map(|row| generator.row(row)).collect();
        let again = (10..20).find(|row| id(&rows[*row]) == id(&rows[3])).expect("crawled again a week later");
        let items =
            |row: &[Vec<u8>]| String::from_utf8(row[1].clone()).unwrap().split("},{").map(str::to_owned).collect::<Vec<_>>();
        let (before, after) = (items(&rows[3]), items(&rows[again]));
        let same = after.iter().filter(|item| before.contains(item)).count();
        assert!(same * 10 > after.len() * 8 && same < after.len(), "{same} of {}", after.len());
    }
}
