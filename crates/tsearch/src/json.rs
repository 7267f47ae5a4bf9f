//! Documents and headlines of json and jsonb: of their strings, numbers, booleans and keys.

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::json::{JsonKind, JsonNode, parse, unescape, write_string};
use melba_types::jsonb::{Json, JsonbValue, View};
use melba_types::{Datum, Oid, Result, bail, err, limits};

use crate::config::current;
use crate::conversion::config;
use crate::document::Document;
use crate::headline::Headline;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("json_string_to_tsvector", |c, a| of_json(c, current(c.session)?, &a[0], STRINGS)),
    ("json_string_to_tsvector_byid", |c, a| of_json(c, Oid(a[0].as_oid()), &a[1], STRINGS)),
    ("json_to_tsvector", |c, a| of_json(c, current(c.session)?, &a[0], parts(&a[1])?)),
    ("json_to_tsvector_byid", |c, a| of_json(c, Oid(a[0].as_oid()), &a[1], parts(&a[2])?)),
    ("jsonb_string_to_tsvector", |c, a| of_jsonb(c, current(c.session)?, &a[0], STRINGS)),
    ("jsonb_string_to_tsvector_byid", |c, a| of_jsonb(c, Oid(a[0].as_oid()), &a[1], STRINGS)),
    ("jsonb_to_tsvector", |c, a| of_jsonb(c, current(c.session)?, &a[0], parts(&a[1])?)),
    ("jsonb_to_tsvector_byid", |c, a| of_jsonb(c, Oid(a[0].as_oid()), &a[1], parts(&a[2])?)),
    ("ts_headline_json", |c, a| json_headline(c, current(c.session)?, a)),
    ("ts_headline_json_opt", |c, a| json_headline(c, current(c.session)?, a)),
    ("ts_headline_json_byid", |c, a| json_headline(c, Oid(a[0].as_oid()), &a[1..])),
    ("ts_headline_json_byid_opt", |c, a| json_headline(c, Oid(a[0].as_oid()), &a[1..])),
    ("ts_headline_jsonb", |c, a| jsonb_headline(c, current(c.session)?, a)),
    ("ts_headline_jsonb_opt", |c, a| jsonb_headline(c, current(c.session)?, a)),
    ("ts_headline_jsonb_byid", |c, a| jsonb_headline(c, Oid(a[0].as_oid()), &a[1..])),
    ("ts_headline_jsonb_byid_opt", |c, a| jsonb_headline(c, Oid(a[0].as_oid()), &a[1..])),
];

/// The parts of a value that are documents.
#[derive(Clone, Copy, Default)]
struct Parts {
    strings: bool,
    numbers: bool,
    booleans: bool,
    keys: bool,
}

const STRINGS: Parts = Parts { strings: true, numbers: false, booleans: false, keys: false };
const HINT: &str = "Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\".";

/// The parts that a jsonb names.
fn parts(flags: &Datum) -> Result<Parts> {
    let flags = Json::root(flags.as_bytes());
    let mut parts = Parts::default();
    match flags.view() {
        View::Object(_) => bail!(INVALID_PARAMETER_VALUE, "wrong flag type, only arrays and scalars are allowed"),
        View::Array(array) => array.iter().try_for_each(|flag| parts.note(flag))?,
        _ => parts.note(flags)?,
    }
    Ok(parts)
}

impl Parts {
    fn note(&mut self, flag: Json<'_>) -> Result<()> {
        let View::String(name) = flag.view() else {
            return Err(err!(INVALID_PARAMETER_VALUE, "flag array element is not a string").hint(HINT));
        };
        match &*name.to_ascii_lowercase() {
            "all" => *self = Parts { strings: true, numbers: true, booleans: true, keys: true },
            "key" => self.keys = true,
            "string" => self.strings = true,
            "numeric" => self.numbers = true,
            "boolean" => self.booleans = true,
            _ => return Err(err!(INVALID_PARAMETER_VALUE, "wrong flag in flag array: \"{name}\"").hint(HINT)),
        }
        Ok(())
    }
}

/// Appends a part; no phrase goes on from one part to the next.
type Add<'a> = &'a mut dyn FnMut(&str) -> Result<()>;

fn vector_of(call: &CallInfo<'_>, of: Oid, each: impl FnOnce(Add<'_>) -> Result<()>) -> Result<Datum> {
    let config = config(call.session, of)?;
    let mut document = Document::default();
    each(&mut |text| {
        let before = document.len();
        document.add(call.session, &config, text)?;
        if document.len() > before {
            document.skip_place();
        }
        Ok(())
    })?;
    document.into_vector()
}

fn of_json(call: &CallInfo<'_>, of: Oid, value: &Datum, parts: Parts) -> Result<Datum> {
    let root = parse(value.as_str(), true)?;
    vector_of(call, of, |add| each_of_json(&root, parts, add))
}

fn each_of_json(node: &JsonNode<'_>, parts: Parts, add: Add<'_>) -> Result<()> {
    limits::check_stack()?;
    match &node.kind {
        JsonKind::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            if parts.keys {
                add(&unescape(key)?)?;
            }
            each_of_json(value, parts, add)
        }),
        JsonKind::Array(elements) => elements.iter().try_for_each(|element| each_of_json(element, parts, add)),
        JsonKind::String if parts.strings => add(&unescape(node.raw)?),
        JsonKind::Number if parts.numbers => add(node.raw),
        JsonKind::Bool(_) if parts.booleans => add(node.raw),
        _ => Ok(()),
    }
}

fn of_jsonb(call: &CallInfo<'_>, of: Oid, value: &Datum, parts: Parts) -> Result<Datum> {
    vector_of(call, of, |add| each_of_jsonb(Json::root(value.as_bytes()), parts, add))
}

fn each_of_jsonb(json: Json<'_>, parts: Parts, add: Add<'_>) -> Result<()> {
    limits::check_stack()?;
    match json.view() {
        View::Object(object) => object.iter().try_for_each(|(key, value)| {
            if parts.keys {
                add(key)?;
            }
            each_of_jsonb(value, parts, add)
        }),
        View::Array(array) => array.iter().try_for_each(|element| each_of_jsonb(element, parts, add)),
        View::String(text) if parts.strings => add(text),
        View::Number(number) if parts.numbers => add(&number.to_string()),
        View::Bool(value) if parts.booleans => add(if value { "true" } else { "false" }),
        _ => Ok(()),
    }
}

/// `args`: the value, a query, and maybe options.
fn json_headline(call: &CallInfo<'_>, of: Oid, args: &[Datum]) -> Result<Datum> {
    let headline = Headline::new(call.session, of, &args[1], args.get(2))?;
    let mut out = Vec::new();
    put_json(&headline, &parse(args[0].as_str(), true)?, &mut out)?;
    melba_fmgr::io::into_string(out).map(Datum::text)
}

/// Appends a value, whose strings become headlines, without blanks.
fn put_json(headline: &Headline<'_>, node: &JsonNode<'_>, out: &mut Vec<u8>) -> Result<()> {
    limits::check_stack()?;
    match &node.kind {
        JsonKind::Object(fields) => {
            for (at, (key, value)) in fields.iter().enumerate() {
                out.push(if at == 0 { b'{' } else { b',' });
                write_string(&unescape(key)?, out)?;
                out.push(b':');
                put_json(headline, value, out)?;
            }
            out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
        }
        JsonKind::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                out.push(if at == 0 { b'[' } else { b',' });
                put_json(headline, element, out)?;
            }
            out.extend_from_slice(if elements.is_empty() { b"[]" } else { b"]" });
        }
        JsonKind::String => write_string(&headline.of(&unescape(node.raw)?)?, out)?,
        _ => out.extend_from_slice(node.raw.as_bytes()),
    }
    Ok(())
}

fn jsonb_headline(call: &CallInfo<'_>, of: Oid, args: &[Datum]) -> Result<Datum> {
    let headline = Headline::new(call.session, of, &args[1], args.get(2))?;
    let mut value = JsonbValue::from_json(Json::root(args[0].as_bytes()));
    transform(&headline, &mut value)?;
    value.to_bytes().map(Datum::bytes)
}

fn transform(headline: &Headline<'_>, value: &mut JsonbValue) -> Result<()> {
    limits::check_stack()?;
    match value {
        JsonbValue::Object(fields) => fields.iter_mut().try_for_each(|(_, value)| transform(headline, value)),
        JsonbValue::Array(elements) => elements.iter_mut().try_for_each(|element| transform(headline, element)),
        JsonbValue::String(text) => {
            *text = headline.of(text)?;
            Ok(())
        }
        _ => Ok(()),
    }
}
