//! A client that speaks PostgreSQL's protocol message by message.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::melba::Address;

/// The transport of a connection's bytes.
enum Socket {
    Plain(TcpStream),
    /// `openssl s_client` at the other end of a pair of sockets encrypts them; killed when dropped.
    Encrypted(UnixStream, Child),
}

/// A connection.
pub struct Wire {
    socket: BufReader<Socket>,
    address: Address,
    patience: Duration,
    /// The key that a cancel request must name.
    key: Vec<u8>,
    /// Messages to be sent.
    pub out: Vec<u8>,
    /// The longest wait for a message of the server.
    pub longest: Duration,
    /// Messages received.
    pub received: u64,
}

impl Socket {
    fn connect(address: &Address, patience: Duration, encrypt: bool) -> Result<Socket, String> {
        let failed = |e: std::io::Error| format!("socket: {e}");
        if !encrypt {
            let socket = TcpStream::connect((address.host.as_str(), port(address)?)).map_err(|e| format!("connect: {e}"))?;
            socket.set_nodelay(true).map_err(failed)?;
            socket.set_read_timeout(Some(patience)).map_err(failed)?;
            return Ok(Socket::Plain(socket));
        }
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_read_timeout(Some(patience)).map_err(failed)?;
        let also = theirs.try_clone().map_err(failed)?;
        let mut command = Command::new("openssl");
        command.args(["s_client", "-quiet", "-nocommands", "-starttls", "postgres", "-connect"]);
        command.arg(format!("{}:{}", address.host, address.port));
        command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(also)).stderr(Stdio::null());
        Ok(Socket::Encrypted(ours, command.spawn().map_err(|e| format!("openssl: {e}"))?))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Socket::Encrypted(_, child) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Socket::Plain(socket) => socket.read(buffer),
            Socket::Encrypted(socket, _) => socket.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Socket::Plain(socket) => socket.write(bytes),
            Socket::Encrypted(socket, _) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Wire {
    /// Logs in. A message that does not come within `patience` is an error from then on.
    pub fn connect(address: &Address, patience: Duration) -> Result<Wire, String> {
        Wire::log_in(address, patience, false)
    }

    /// The same over TLS.
    pub fn connect_encrypted(address: &Address, patience: Duration) -> Result<Wire, String> {
        Wire::log_in(address, patience, true)
    }

    fn log_in(address: &Address, patience: Duration, encrypt: bool) -> Result<Wire, String> {
        let socket = BufReader::new(Socket::connect(address, patience, encrypt)?);
        let address = address.clone();
        let mut wire = Wire { socket, address, patience, key: Vec::new(), out: Vec::new(), longest: Duration::ZERO, received: 0 };
        let parameters = format!("user\0postgres\0database\0{}\0\0", wire.address.database);
        wire.out.extend_from_slice(&(parameters.len() as u32 + 8).to_be_bytes());
        wire.out.extend_from_slice(&0x0003_0000u32.to_be_bytes());
        wire.out.extend_from_slice(parameters.as_bytes());
        wire.send()?;
        loop {
            match wire.message()? {
                (b'K', body) => wire.key = body,
                (b'Z', _) => return Ok(wire),
                (b'E', body) => return Err(format!("login: {}", sqlstate(&body))),
                _ => {}
            }
        }
    }

    /// Appends a message; `fields` are its body.
    pub fn put(&mut self, tag: u8, fields: &[&[u8]]) {
        let length = fields.iter().map(|f| f.len()).sum::<usize>() as u32 + 4;
        self.out.push(tag);
        self.out.extend_from_slice(&length.to_be_bytes());
        fields.iter().for_each(|f| self.out.extend_from_slice(f));
    }

    pub fn query(&mut self, text: &str) {
        self.put(b'Q', &[text.as_bytes(), b"\0"]);
    }

    pub fn parse(&mut self, name: &str, text: &str) {
        self.put(b'P', &[name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"]);
    }

    /// Text parameters to the unnamed portal.
    pub fn bind(&mut self, statement: &str, parameters: &[&str]) {
        let mut values = (parameters.len() as u16).to_be_bytes().to_vec();
        for parameter in parameters {
            values.extend_from_slice(&(parameter.len() as u32).to_be_bytes());
            values.extend_from_slice(parameter.as_bytes());
        }
        self.put(b'B', &[b"\0", statement.as_bytes(), b"\0\0\0", &values, b"\0\0"]);
    }

    pub fn execute(&mut self) {
        self.put(b'E', &[b"\0\0\0\0\0"]);
    }

    pub fn sync(&mut self) {
        self.put(b'S', &[]);
    }

    pub fn send(&mut self) -> Result<(), String> {
        let out = std::mem::take(&mut self.out);
        self.socket.get_mut().write_all(&out).map_err(|e| format!("send: {e}"))
    }

    pub fn message(&mut self) -> Result<(u8, Vec<u8>), String> {
        let began = Instant::now();
        let mut header = [0; 5];
        self.read(&mut header)?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let mut body = vec![0; length.saturating_sub(4)];
        self.read(&mut body)?;
        self.longest = self.longest.max(began.elapsed());
        self.received += 1;
        Ok((header[0], body))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), String> {
        let patience = self.patience;
        self.socket.read_exact(buffer).map_err(|e| match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("no answer within {patience:?}"),
            _ => format!("receive: {e}"),
        })
    }

    /// The types of the messages up to one of type `last`, of rows and of copied data one; an error with its SQLSTATE in brackets.
    pub fn until(&mut self, last: u8) -> Result<String, String> {
        let mut tags = String::new();
        loop {
            let (tag, body) = self.message()?;
            match tag {
                b'D' | b'd' if tags.ends_with(tag as char) => {}
                b'E' => tags.push_str(&format!("E[{}]", sqlstate(&body))),
                _ => tags.push(tag as char),
            }
            if tag == last {
                return Ok(tags);
            }
        }
    }

    /// Returns a function that asks another thread of the server to cancel the running statement, and returns when that was done.
    pub fn canceller(&self) -> Result<impl FnOnce() -> Result<(), String> + Send + use<>, String> {
        let port = port(&self.address)?;
        let (host, key, patience) = (self.address.host.clone(), self.key.clone(), self.patience);
        Ok(move || {
            let failed = |e: std::io::Error| format!("cancel request: {e}");
            let mut socket = TcpStream::connect((host.as_str(), port)).map_err(failed)?;
            socket.set_read_timeout(Some(patience)).map_err(failed)?;
            let mut packet = (key.len() as u32 + 8).to_be_bytes().to_vec();
            packet.extend_from_slice(&80_877_102u32.to_be_bytes());
            packet.extend_from_slice(&key);
            socket.write_all(&packet).map_err(failed)?;
            socket.read(&mut [0]).map(drop).map_err(failed)
        })
    }
}

fn port(address: &Address) -> Result<u16, String> {
    address.port.parse().map_err(|_| format!("{}: no port", address.port))
}

fn sqlstate(body: &[u8]) -> String {
    let field = body.split(|b| *b == 0).find(|f| f.first() == Some(&b'C'));
    String::from_utf8_lossy(field.map_or(&b""[..], |f| &f[1..])).into_owned()
}
