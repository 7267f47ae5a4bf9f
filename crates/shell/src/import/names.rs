//! Names for tables and columns that need no quotes in SQL.

const BYTES_MAX: usize = 63;

/// Lower case, with `_` for characters that are neither letters nor digits.
pub fn name(title: &str) -> String {
    let mut name = String::new();
    for c in title.trim().chars() {
        match c {
            c if c.is_alphanumeric() => name.extend(c.to_lowercase()),
            _ if name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    let name = name.trim_end_matches('_');
    let name = if name.starts_with(|c: char| c.is_numeric()) { format!("_{name}") } else { name.to_owned() };
    cut(&name, BYTES_MAX).to_owned()
}

/// A table's name of a file's.
pub fn table(path: &std::path::Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    match name(&stem) {
        name if name.is_empty() => "imported".to_owned(),
        name => name,
    }
}

/// Names of columns, each once.
pub fn columns<'a>(titles: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, title) in titles.enumerate() {
        let wanted = match name(title) {
            name if name.is_empty() => format!("column{}", at + 1),
            name => name,
        };
        let numbered = |number: usize| {
            let end = if number == 1 { String::new() } else { format!("_{number}") };
            format!("{}{end}", cut(&wanted, BYTES_MAX - end.len()))
        };
        let free = (1..).map(numbered).find(|name| !names.contains(name)).expect("there are more numbers than names");
        names.push(free);
    }
    names
}

fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quotes_and_differ() {
        let of = |titles: &[&str]| columns(titles.iter().copied());
        assert_eq!(
            of(&["Order ID", "order-id", "Größe (cm)", "", "2024", "order_id_2"]),
            ["order_id", "order_id_2", "größe_cm", "column4", "_2024", "order_id_2_2"]
        );
        assert_eq!(table(std::path::Path::new("/tmp/Sales 2024.v1.csv")), "sales_2024_v1");
        assert_eq!(table(std::path::Path::new("-.csv")), "imported");
        let long = "ä".repeat(60);
        assert!(of(&[&long, &long]).iter().all(|name| name.len() <= BYTES_MAX));
    }
}
