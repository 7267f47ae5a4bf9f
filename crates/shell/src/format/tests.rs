use super::*;

fn printed(format: Format, change: impl Fn(&mut Style)) -> String {
    let mut style = Style::new(format);
    change(&mut style);
    let column = |name: &str, type_oid| ResultColumn { name: name.to_owned(), type_oid };
    let mut printer = Printer::new(&style, vec![column("id", 23), column("a name", 25), column("ok", 16), column("doc", 3802)]);
    let mut out = Vec::new();
    printer.begin(&mut out).unwrap();
    let rows: [[Option<&[u8]>; 4]; 2] = [
        [Some(b"1"), Some(b"two\nlines, \"q\"|\x1b[1m"), Some(b"t"), Some(b"{\"a\": 1}")],
        [Some(b"22"), None, Some(b"f"), Some(b"")],
    ];
    rows.iter().for_each(|row| printer.row(row, &mut out).unwrap());
    printer.end(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn tables_are_aligned_as_psqls_are() {
    let expected = " id |       a name       | ok |   doc    
----+--------------------+----+----------
  1 | two               +| t  | {\"a\": 1}
    | lines, \"q\"|\\x1B[1m |    | 
 22 |                    | f  | 
(2 rows)

";
    assert_eq!(printed(Format::Table, |_| {}), expected);
    assert!(printed(Format::Table, |style| style.null = "(null)".to_owned()).contains(" 22 | (null)             | f  | \n"));
}

#[test]
fn expanded_tables_have_a_line_for_each_value() {
    let expected = "-[ RECORD 1 ]--------------
id     | 1
a name | two               +
       | lines, \"q\"|\\x1B[1m
ok     | t
doc    | {\"a\": 1}
-[ RECORD 2 ]--------------
id     | 22
a name | 
ok     | f
doc    | 

";
    assert_eq!(printed(Format::Table, |style| style.expanded = Expanded::On), expected);
}

#[test]
fn programs_get_values_as_they_are() {
    let csv = "id,a name,ok,doc\n1,\"two\nlines, \"\"q\"\"|\x1b[1m\",t,\"{\"\"a\"\": 1}\"\n22,,f,\"\"\n";
    assert_eq!(printed(Format::Csv, |_| {}), csv);
    assert!(printed(Format::Csv, |style| style.is_terminal = true).contains("|\\x1B[1m"));
    let unaligned = "id|a name|ok|doc\n1|two\nlines, \"q\"|\x1b[1m|t|{\"a\": 1}\n22||f|\n(2 rows)\n";
    assert_eq!(printed(Format::Unaligned, |_| {}), unaligned);
    let json = "[\n  {\"id\": 1, \"a name\": \"two\\nlines, \\\"q\\\"|\\u001b[1m\", \"ok\": true, \"doc\": {\"a\": 1}},\n  ";
    assert!(printed(Format::Json, |_| {}).starts_with(json));
    let lines = printed(Format::JsonLines, |_| {});
    assert_eq!(lines.lines().nth(1), Some("{\"id\": 22, \"a name\": null, \"ok\": false, \"doc\": }"), "{lines}");
    let markdown =
        "| id | a name | ok | doc |\n| ---: | --- | --- | --- |\n| 1 | two<br>lines, \"q\"\\|\\\\x1B[1m | t | {\"a\": 1} |\n";
    assert!(printed(Format::Markdown, |_| {}).starts_with(markdown));
}

#[test]
fn names_are_once_in_an_object() {
    let style = Style::new(Format::Json);
    let mut printer = Printer::new(&style, vec![ResultColumn { name: "n".to_owned(), type_oid: 1700 }; 2]);
    let mut out = Vec::new();
    printer.begin(&mut out).unwrap();
    printer.row(&[Some(b"1.50"), Some(b"NaN")], &mut out).unwrap();
    printer.end(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "[\n  {\"n\": 1.50, \"n_2\": \"NaN\"}\n]\n");
}
