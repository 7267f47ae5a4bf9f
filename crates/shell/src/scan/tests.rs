use super::*;
use crate::variables::Variables;

fn scanned(text: &str, variables: &Variables) -> (Vec<Item>, Scanner) {
    let mut scanner = Scanner::default();
    let mut items = Vec::new();
    for line in text.split('\n') {
        scanner.push(line);
        items.extend(std::iter::from_fn(|| scanner.next(variables)));
    }
    (items, scanner)
}

fn statements(text: &str) -> Vec<String> {
    let (items, scanner) = scanned(text, &Variables::new());
    assert_eq!(scanner.prompt(), '=', "{text}: {:?}", scanner.pending());
    let text = |item| match item {
        Item::Statement(text) => text,
        Item::Command { name, rest } => format!("\\{name} [{rest}]"),
    };
    items.into_iter().map(text).collect()
}

#[test]
fn semicolons_end_statements_only_where_they_are_bare() {
    assert_eq!(statements("select 1; select 2;;"), ["select 1;", "select 2;"]);
    assert_eq!(
        statements("select ';', \";\", $$;$$, $a$;$$;$a$ /* ; /* ; */ ; */;"),
        ["select ';', \";\", $$;$$, $a$;$$;$a$ /* ; /* ; */ ; */;"]
    );
    assert_eq!(statements("select 'it''s;', E'\\';', 'a\\';"), ["select 'it''s;', E'\\';', 'a\\';"]);
    assert_eq!(statements("-- a; comment\nselect 1 -- ;\n, 2;"), ["select 1 -- ;\n, 2;"]);
    assert_eq!(
        statements("create rule r as on insert to t do (select 1; select 2);"),
        ["create rule r as on insert to t do (select 1; select 2);"]
    );
    let routine = "create or replace function f(a int) returns int begin atomic select case when a then 1 end; select 2; end;";
    assert_eq!(statements(routine), [routine]);
    assert_eq!(
        statements("begin; select case 1 when 1 then 2 end; end;"),
        ["begin;", "select case 1 when 1 then 2 end;", "end;"]
    );
    assert_eq!(statements("select $1, a$b, x.$2;"), ["select $1, a$b, x.$2;"]);
    assert_eq!(statements("\n\n  select 'a\n\nb';"), ["select 'a\n\nb';"]);
}

#[test]
fn what_is_open_is_in_the_prompt() {
    let cases = [
        ("select 'a", '\''),
        ("\"a", '"'),
        ("$x$ $$", '$'),
        ("select /* /* */", '*'),
        ("select (1", '('),
        ("select", '-'),
        ("", '='),
    ];
    for (text, expected) in cases {
        assert_eq!(scanned(text, &Variables::new()).1.prompt(), expected, "{text}");
    }
}

#[test]
fn commands_take_the_rest_of_their_line() {
    assert_eq!(statements("\\d t"), ["\\d [t]"]);
    assert_eq!(
        statements("\\x \\\\ select 1; \\dt+ a.* \\echo 'a\\\\b' \"\\\\\""),
        ["\\x []", "select 1;", "\\dt+ [a.*]", "\\echo ['a\\\\b' \"\\\\\"]"]
    );
    assert_eq!(statements("\\copy t from 'a\\b' \\x"), ["\\copy [t from 'a\\b' \\x]"]);
    assert_eq!(statements("\\! ls | wc \\\\ -l"), ["\\! [ls | wc \\\\ -l]"]);
    let (items, scanner) = scanned("select 1 \\g out.txt", &Variables::new());
    assert_eq!(items, [Item::Command { name: "g".to_owned(), rest: "out.txt".to_owned() }]);
    assert_eq!(scanner.pending(), "select 1 ");
    assert_eq!(statements("select 1 \\; select 2;"), ["select 1 ; select 2;"]);
}

#[test]
fn variables_are_replaced_outside_of_strings() {
    let variables = Variables::from([("a".to_owned(), "it's :a".to_owned()), ("n".to_owned(), "5".to_owned())]);
    let of = |text: &str| match scanned(text, &variables).0.remove(0) {
        Item::Statement(text) => text,
        Item::Command { .. } => unreachable!("there is none"),
    };
    assert_eq!(
        of("select :n, :'a', :\"a\", ':n', x::n, y:=n, :no, a[1:n], :{?n}, :{?no};"),
        "select 5, 'it''s :a', \"it's :a\", ':n', x::n, y:=n, :no, a[15], TRUE, FALSE;"
    );
    let nested = Variables::from([("v".to_owned(), "1; select :v".to_owned())]);
    let (items, _) = scanned("select :v;", &nested);
    assert_eq!(items, ["select 1;", "select :v;"].map(|text| Item::Statement(text.to_owned())));
}
