//! The paths under `/api/`: what the page asks for, in JSON.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use melba_client::target::Target;
use melba_client::{Failure, Report};
use melba_http::{Pieces, Request, RequestBody, Response};
use serde::{Deserialize, Serialize};

use crate::assets::guarded;
use crate::gate::{self, TOKEN_HEADER};
use crate::listener::Console;
use crate::query::{Answer, Message, Room};
use crate::reports;
use crate::sessions::{Download, Export, Session, Unavailable, Use};
use crate::transfer::Begun;

/// Of a request in JSON; uploads may be of any size.
const BODY_BYTES_MAX: u64 = 4 << 20;
const LOGIN_BYTES_MAX: u64 = 4096;
/// How long a refused login waits for its answer.
const REFUSAL_DELAY: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
struct Login {
    user: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    database: String,
}

#[derive(Serialize)]
struct LoggedIn<'a> {
    token: &'a str,
    place: String,
    user: &'a str,
    database: &'a str,
    /// There is a folder of reports.
    reports: bool,
}

#[derive(Deserialize)]
struct Query {
    connection: Use,
    sql: String,
    #[serde(default)]
    parameters: Vec<Option<String>>,
    #[serde(flatten)]
    room: Room,
}

#[derive(Deserialize)]
struct Fetch {
    connection: Use,
    #[serde(flatten)]
    room: Room,
}

#[derive(Deserialize)]
struct Cancel {
    connection: Use,
}

/// `Err`: also an answer, for the `?` of those that end early.
type Answered = Result<Response, Response>;

fn json(status: u16, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).unwrap_or_default();
    Response::new(status, "application/json", body)
}

fn refusal(status: u16, message: &str) -> Response {
    json(status, &Answer::failed(message.to_owned()))
}

fn read<T: for<'a> Deserialize<'a>>(request: &mut Request, stream: &TcpStream, bytes_max: u64) -> Result<T, Response> {
    let body = RequestBody::new(request, stream).whole(bytes_max)?;
    serde_json::from_slice(&body).map_err(|e| refusal(400, &format!("the request is malformed: {e}")))
}

impl Console {
    /// Answers a request; a download is answered as it goes, and has no response.
    pub(crate) fn answer(&self, request: &mut Request, stream: &TcpStream) -> Option<Response> {
        if !self.names.is_addressed(request) {
            return Some(Response::text(421, "the console is not known by this name\n"));
        }
        let answered = match (request.method.as_str(), request.path.as_str()) {
            ("GET", path) if path.starts_with("/api/download/") => return self.download(request, stream).err(),
            ("GET", path) if path.starts_with("/reports/") => {
                // With headers of its own, which sandbox it.
                melba_http::write(stream, &self.report(request));
                return None;
            }
            ("GET", path) if !path.starts_with("/api/") => request
                .refused_body()
                .or_else(|| crate::assets::find(path))
                .ok_or_else(|| Response::text(404, "there is no such page\n")),
            ("POST", path) if path.starts_with("/api/") => self.posted(request, stream),
            ("GET" | "POST", _) => Err(Response::text(404, "there is no such page\n")),
            _ => Err(Response::text(405, "only GET and POST are known here\n").with_header("Allow", "GET, POST")),
        };
        Some(answered.unwrap_or_else(|response| response))
    }

    fn posted(&self, request: &mut Request, stream: &TcpStream) -> Answered {
        if !self.names.is_of_own_page(request) {
            return Err(refusal(403, "the request comes from another page"));
        }
        if request.path == "/api/login" {
            return self.login(request, stream);
        }
        let session = self.session(request)?;
        // The page is told apart from the person before it.
        let is_token = request.header(TOKEN_HEADER).is_some_and(|token| is_equal(token, &session.token));
        if !is_token {
            return Err(refusal(403, "the request has not the session's token"));
        }
        match request.path.as_str() {
            "/api/logout" => {
                self.sessions.remove(gate::cookie(request, &self.cookie).unwrap_or_default());
                let cookie = format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", self.cookie);
                Ok(json(200, &()).with_header("Set-Cookie", cookie))
            }
            "/api/query" => {
                let query: Query = read(request, stream, BODY_BYTES_MAX)?;
                note_use(&session, query.connection);
                on(&session, query.connection, |open| open.query(&query.sql, &query.parameters, query.room))
            }
            "/api/fetch" => {
                let fetch: Fetch = read(request, stream, BODY_BYTES_MAX)?;
                note_use(&session, fetch.connection);
                on(&session, fetch.connection, |open| open.fetch(fetch.room))
            }
            "/api/cancel" => {
                let cancel: Cancel = read(request, stream, BODY_BYTES_MAX)?;
                session.cancel(cancel.connection).map_err(|e| refusal(502, &e))?;
                Ok(json(200, &()))
            }
            "/api/export" => {
                let export: Export = read(request, stream, BODY_BYTES_MAX)?;
                note_use(&session, export.connection);
                let ticket = session.note_export(export).map_err(|e| refusal(503, &e))?;
                Ok(json(200, &ticket))
            }
            "/api/reports" => {
                let listed = self.reports.as_ref().map_or(Ok(Vec::new()), |folder| reports::list(folder));
                listed.map(|listed| json(200, &listed)).map_err(|e| refusal(500, &e))
            }
            "/api/import" => {
                let sql = decoded(&request.query).ok_or_else(|| refusal(400, "the statement is malformed"))?;
                let mut body = RequestBody::new(request, stream);
                on(&session, Use::Page, |open| open.import(&sql, &mut body))
            }
            _ => Err(refusal(404, "there is no such request")),
        }
    }

    /// For those who have logged in.
    fn report(&self, request: &Request) -> Response {
        match self.session(request) {
            Ok(_) => reports::show(self.reports.as_ref(), request.path.trim_start_matches("/reports/")),
            Err(refusal) => guarded(refusal),
        }
    }

    fn session(&self, request: &Request) -> Result<Arc<Session>, Response> {
        let found = gate::cookie(request, &self.cookie).and_then(|id| self.sessions.find(id, Instant::now()));
        found.ok_or_else(|| refusal(401, "the session is over"))
    }

    fn login(&self, request: &mut Request, stream: &TcpStream) -> Answered {
        let login: Login = read(request, stream, LOGIN_BYTES_MAX)?;
        if [&login.user, &login.password, &login.database].iter().any(|text| text.contains('\0')) {
            return Err(refusal(400, "a name has no zero bytes"));
        }
        let database = if login.database.is_empty() { &self.target.database } else { &login.database };
        let target = Target {
            user: login.user.clone(),
            database: database.clone(),
            password: Some(login.password),
            application_name: "melba console".to_owned(),
            ..self.target.clone()
        };
        let session = Session::open(target, (self.is_own_account)(stream), Instant::now()).map_err(|failure| {
            std::thread::sleep(REFUSAL_DELAY);
            json(403, &Answer::refused(failed(failure)))
        })?;
        let token = session.token.clone();
        let id = self.sessions.add(session).map_err(|e| refusal(503, &e))?;
        let cookie = format!("{}={id}; Path=/; HttpOnly; SameSite=Strict", self.cookie);
        let place = self.target.place();
        let answer = LoggedIn { token: &token, place, user: &login.user, database, reports: self.reports.is_some() };
        Ok(json(200, &answer).with_header("Set-Cookie", cookie))
    }

    /// A link that the page got for its token, and that serves once.
    fn download(&self, request: &Request, stream: &TcpStream) -> Result<(), Response> {
        let session = self.session(request)?;
        let ticket = request.path.trim_start_matches("/api/download/");
        let export = session.take_export(ticket).ok_or_else(|| Response::text(404, "the link has been used\n"))?;
        let ended = session.with(export.connection, |open| match open.begin_export(&export) {
            Ok(Begun::Rows(columns)) => {
                let begun = Pieces::begin(stream, &guarded(download_head(&export)));
                let Ok(mut out) = begun else {
                    open.connection.is_lost = true;
                    return Ok(());
                };
                // Without its end the browser reports the failure.
                if open.export_rows(&columns, export.format, &mut out).is_ok() {
                    let _ = out.finish();
                }
                Ok(())
            }
            Ok(Begun::Failed(reason)) => Err(Response::text(400, &reason)),
            Err(reason) => {
                open.connection.is_lost = true;
                Err(Response::text(502, &reason))
            }
        });
        ended.unwrap_or_else(|unavailable| Err(unavailable_answer(unavailable)))
    }
}

fn download_head(export: &Export) -> Response {
    let (kind, ending) = match export.format {
        Download::Csv => ("text/csv; charset=utf-8", "csv"),
        Download::Json => ("application/json", "json"),
    };
    let name: String = export.name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).take(60).collect();
    let name = if name.is_empty() { "result" } else { &name };
    let disposition = format!("attachment; filename=\"{name}.{ending}\"");
    Response::new(200, kind, Vec::new()).with_header("Content-Disposition", disposition)
}

fn on(session: &Session, connection: Use, run: impl FnOnce(&mut crate::query::Open) -> Answer) -> Answered {
    session.with(connection, run).map(|answer| json(200, &answer)).map_err(unavailable_answer)
}

fn unavailable_answer(unavailable: Unavailable) -> Response {
    match unavailable {
        Unavailable::Busy => refusal(409, "another statement is running; cancel it, or wait for its end"),
        Unavailable::Failed(failure) => json(502, &Answer::refused(failed(failure))),
    }
}

fn failed(failure: Failure) -> Message {
    match failure {
        Failure::Refused(report) => Message::from(Report::clone(&report)),
        Failure::Other(reason) => Message::own(reason),
    }
}

/// What the page asks by itself does not keep a session alive.
fn note_use(session: &Session, connection: Use) {
    if connection != Use::Monitor {
        session.use_at(Instant::now());
    }
}

/// In a time that tells nothing of where they differ.
fn is_equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// The text behind percent signs.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        out.push(match byte {
            b'%' => u8::try_from(digit(bytes.next())? << 4 | digit(bytes.next())?).ok()?,
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_decoded() {
        assert_eq!(decoded("COPY%20%22%C3%BC%22").as_deref(), Some("COPY \"ü\""));
        assert_eq!((decoded("%2"), decoded("%zz"), decoded("%ff")), (None, None, None));
    }

    #[test]
    fn a_file_name_cannot_leave_its_header() {
        let export = Export {
            connection: Use::Editor,
            sql: String::new(),
            parameters: Vec::new(),
            format: Download::Csv,
            name: "a\"\r\nSet-Cookie: x=1".to_owned(),
        };
        assert!(format!("{:?}", download_head(&export)).contains("filename=\\\"aSet-Cookiex1.csv"));
    }
}
