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

/// Names of columns by the keys of objects: a key that needs no quotes is its own, others take the name that needs none unless another has it.
/// `column_of_key` finds them again.
pub fn keys(titles: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for title in titles {
        let plain = name(title);
        let is_taken = plain != *title && (titles.contains(&plain.as_str()) || names.contains(&plain));
        names.push(if plain.is_empty() || is_taken { (*title).to_owned() } else { plain });
    }
    names
}

/// The column of an object's key: the one of its name, or of the name that needs no quotes.
pub fn column_of_key<'n>(key: &str, mut columns: impl Iterator<Item = &'n str> + Clone) -> Option<usize> {
    let plain = name(key);
    columns.clone().position(|column| column == key).or_else(|| columns.position(|column| column == plain))
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
        let titles = ["Order ID", "order-id", "id", "ID", "_"];
        let named = keys(&titles);
        assert_eq!(named, ["order_id", "order-id", "id", "ID", "_"]);
        let places = titles.map(|key| column_of_key(key, named.iter().map(String::as_str)));
        assert_eq!(places, [0, 1, 2, 3, 4].map(Some));
        let long = "ä".repeat(60);
        assert!(of(&[&long, &long]).iter().all(|name| name.len() <= BYTES_MAX));
    }
}
