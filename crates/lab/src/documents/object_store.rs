//! Documents as objects of a store that speaks HTTP as S3 does, without authentication: PUT, GET and DELETE of a path.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files::allocated_bytes;
use super::form::{Form, Row, timed};
use crate::Result;

const ANSWER_WITHIN: Duration = Duration::from_secs(30);

pub struct ObjectStore {
    /// HOST:PORT.
    address: String,
    /// The bucket's path, with a slash before it and none behind.
    bucket: String,
    /// Where the store keeps its files, and those that existed before.
    data: PathBuf,
    bytes_before: u64,
    connection: Option<BufReader<TcpStream>>,
    /// Documents of a row, once there is one.
    documents: usize,
    rows: Vec<u64>,
}

impl ObjectStore {
    pub fn new(url: &str, data: &Path) -> Result<ObjectStore> {
        let rest = url.strip_prefix("http://").ok_or("expected http://HOST:PORT/BUCKET")?;
        let (address, bucket) = rest.split_once('/').ok_or("expected http://HOST:PORT/BUCKET")?;
        let (address, bucket) = (address.to_owned(), format!("/{}", bucket.trim_end_matches('/')));
        let bytes_before = allocated_bytes(data);
        Ok(ObjectStore { address, bucket, data: data.to_owned(), bytes_before, connection: None, documents: 0, rows: Vec::new() })
    }

    fn path(&self, id: u64, document: usize) -> String {
        format!("{}/melba-lab/{id:09}/{document}", self.bucket)
    }

    /// Sends a request and reads its answer; the body is empty when there is no such object.
    fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Option<Vec<u8>>> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.address);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let stream = TcpStream::connect(&self.address).map_err(failed)?;
                stream.set_read_timeout(Some(ANSWER_WITHIN)).and_then(|()| stream.set_nodelay(true)).map_err(failed)?;
                BufReader::new(stream)
            }
        };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n", self.address, body.len());
        let stream = connection.get_mut();
        stream.write_all(&[head.as_bytes(), body].concat()).map_err(failed)?;
        let mut line = String::new();
        connection.read_line(&mut line).map_err(failed)?;
        let status: u32 = line.split_whitespace().nth(1).and_then(|s| s.parse().ok()).ok_or("the store's answer is not HTTP")?;
        let (mut length, mut closes) = (0, line.starts_with("HTTP/1.0"));
        loop {
            let mut line = String::new();
            connection.read_line(&mut line).map_err(failed)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().map_err(|_| "a length that is no number")?,
                "connection" => closes |= value.trim().eq_ignore_ascii_case("close"),
                "transfer-encoding" => return Err("the store answers in chunks, which is not supported".to_owned()),
                _ => {}
            }
        }
        let mut content = vec![0; length];
        connection.read_exact(&mut content).map_err(failed)?;
        self.connection = Some(connection).filter(|_| !closes);
        match status {
            200..300 => Ok(Some(content)),
            404 => Ok(None),
            other => Err(format!("{method} {path}: HTTP status {other}")),
        }
    }
}

impl Form for ObjectStore {
    fn insert(&mut self, rows: &[Row]) -> Result<Duration> {
        self.rows.extend(rows.iter().map(|row| row.id));
        self.update(rows)
    }

    fn update(&mut self, rows: &[Row]) -> Result<Duration> {
        let put = |row: &Row| {
            self.documents = row.documents.len();
            let mut each = row.documents.iter().enumerate();
            each.try_for_each(|(at, document)| self.ask("PUT", &self.path(row.id, at), document).map(drop))
        };
        timed(|| rows.iter().try_for_each(put)).map(|(_, took)| took)
    }

    fn delete(&mut self, ids: &[u64]) -> Result<Duration> {
        let documents = self.documents;
        let mut objects = ids.iter().flat_map(|id| (0..documents).map(|at| (*id, at)));
        timed(|| objects.try_for_each(|(id, at)| self.ask("DELETE", &self.path(id, at), &[]).map(drop))).map(|(_, took)| took)
    }

    fn maintain(&mut self) -> Result<Duration> {
        Ok(Duration::ZERO)
    }

    fn read(&mut self, id: u64) -> Result<(Option<Vec<Vec<u8>>>, Duration)> {
        timed(|| (0..self.documents).map(|at| self.ask("GET", &self.path(id, at), &[])).collect())
    }

    fn bytes(&mut self) -> Result<u64> {
        Ok(allocated_bytes(&self.data).saturating_sub(self.bytes_before))
    }

    fn remove(&mut self) -> Result<()> {
        let ids = std::mem::take(&mut self.rows);
        self.delete(&ids).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A store that keeps each object in a file; every second connection is closed after one answer.
    fn serve(listener: &TcpListener, folder: &Path) {
        for (number, stream) in listener.incoming().enumerate() {
            let mut reader = BufReader::new(stream.unwrap());
            loop {
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if reader.read_line(&mut head).unwrap_or(0) == 0 {
                        break;
                    }
                }
                let mut words = head.split_whitespace();
                let (Some(method), Some(path)) = (words.next(), words.next()) else { break };
                let length = head.split_once("Content-Length: ").unwrap().1.split("\r\n").next().unwrap().parse().unwrap();
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let file = folder.join(path.replace('/', "_"));
                let (status, answer) = match method {
                    "PUT" => ("200 OK", std::fs::write(file, body).map(|()| Vec::new()).unwrap()),
                    "GET" if file.exists() => ("200 OK", std::fs::read(file).unwrap()),
                    "DELETE" => ("204 No Content", std::fs::remove_file(file).map(|()| Vec::new()).unwrap()),
                    _ => ("404 Not Found", Vec::new()),
                };
                let close = if number % 2 == 0 { "Connection: close\r\n" } else { "" };
                let head = format!("HTTP/1.1 {status}\r\n{close}content-length: {}\r\n\r\n", answer.len());
                reader.get_mut().write_all(&[head.as_bytes(), &answer].concat()).unwrap();
                if number % 2 == 0 {
                    break;
                }
            }
        }
    }

    #[test]
    fn objects_are_put_read_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/bucket", listener.local_addr().unwrap());
        let path = folder.path().to_owned();
        std::thread::spawn(move || serve(&listener, &path));
        let mut store = ObjectStore::new(&url, folder.path()).unwrap();
        let row = |id: u64, text: &str| Row { id, documents: vec![text.repeat(3000).into_bytes(), b"two".to_vec()] };
        store.insert(&[row(1, "one"), row(2, "two")]).unwrap();
        let full = store.bytes().unwrap();
        store.update(&[row(2, "new")]).unwrap();
        store.delete(&[1]).unwrap();
        assert_eq!(store.read(1).unwrap().0, None);
        assert_eq!(store.read(2).unwrap().0, Some(row(2, "new").documents));
        assert!(store.bytes().unwrap() < full);
        assert!(ObjectStore::new("ftp://x", folder.path()).is_err());
    }
}
