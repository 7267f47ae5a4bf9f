//! `melba sql` at a pseudo-terminal: lines are edited, Ctrl-C ends a statement and not the shell.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::FromRawFd as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::{melba, path};

struct Terminal {
    child: Child,
    keys: File,
    shown: Receiver<Vec<u8>>,
    screen: String,
}

impl Terminal {
    fn start(arguments: &[&str], home: &str) -> Terminal {
        let (mut control, mut own) = (0, 0);
        let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: both numbers are ours to be written, and the size is read; there is no name and no mode.
        let opened = unsafe { libc::openpty(&mut control, &mut own, std::ptr::null_mut(), std::ptr::null(), &size) };
        assert_eq!(opened, 0);
        // SAFETY: they are open, and nobody else has them.
        let (control, own) = unsafe { (File::from_raw_fd(control), File::from_raw_fd(own)) };
        let side = || Stdio::from(own.try_clone().expect("a descriptor"));
        let mut command = melba(arguments);
        command.env("HOME", home).env("TERM", "xterm").env_remove("MELBA_HISTORY").env_remove("XDG_STATE_HOME");
        command.stdin(side()).stdout(side()).stderr(side());
        // SAFETY: only functions that may be called between fork and exec are, with descriptors that are open.
        unsafe {
            std::os::unix::process::CommandExt::pre_exec(&mut command, || {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            })
        };
        let child = command.spawn().expect("it runs");
        drop((command, own));
        let (sender, shown) = channel();
        let mut reader = control.try_clone().expect("a descriptor");
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut piece) {
                // The test may be over.
                let _ = sender.send(piece[..read].to_vec());
            }
        });
        Terminal { child, keys: control, shown, screen: String::new() }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Waits until this has been shown since the last time.
    fn see(&mut self, text: &str) {
        let until = Instant::now() + Duration::from_secs(30);
        while !self.screen.contains(text) {
            match self.shown.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(piece) => self.screen.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => panic!("{text:?} is not among {:?}", self.screen),
            }
        }
        let end = self.screen.find(text).map_or(0, |at| at + text.len());
        self.screen.drain(..end);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_person_types_cancels_completes_and_quits() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    let mut terminal = Terminal::start(&["sql", "--data", path(&data)], path(folder.path()));
    terminal.see("postgres=# ");
    terminal.press("select 40 +\r2 as\rsum;\r");
    terminal.see("42");
    terminal.see("postgres=# ");
    terminal.press("create table longish_name (a int);\r");
    terminal.see("CREATE TABLE");
    terminal.see("postgres=# ");
    terminal.press("select count(*) from longi\t;\r");
    terminal.see("(1 row)");
    terminal.see("postgres=# ");
    terminal.press("select pg_sleep(60);\r");
    terminal.see("(Ctrl-C cancels)");
    terminal.press("\x03");
    terminal.see("canceling statement due to user request");
    terminal.see("postgres=# ");
    terminal.press("select 'half\x03");
    terminal.see("postgres=# ");
    terminal.press("\\timing\r");
    terminal.see("Timing is on.");
    terminal.see("postgres=# ");
    terminal.press("\\q\r");
    assert_eq!(terminal.child.wait().expect("it ends").code(), Some(0));
    let history = std::fs::read_to_string(folder.path().join(".local/state/melba/history")).expect("a history");
    assert!(history.contains("longish_name"), "{history}");
}
