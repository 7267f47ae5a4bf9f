//! Clients that come while the server starts up.

use std::io::Read;
use std::net::TcpStream;
use std::sync::mpsc::channel;

use melba_server::BoundListeners;
use melba_settings::Settings;

use crate::running::{Peer, startup};

#[test]
fn early_clients_are_refused_and_do_not_delay_startup() {
    let settings = [("unix_socket_directories".to_owned(), String::new())];
    let settings = Settings::server(&settings).expect("settings");
    let bound = BoundListeners::new(Some("127.0.0.1:0"), &settings, 0).expect("a free port");
    let address = bound.local_addr();
    // One that never says anything.
    let silent = TcpStream::connect(address).expect("the server listens");
    let (sender, answers) = channel();
    bound.refuse_while(
        || Some("Half of it is done.".to_owned()),
        || {
            for request_tls in [false, true] {
                let mut peer = Peer(TcpStream::connect(address).expect("the server listens"));
                if request_tls {
                    peer.send(&[0, 0, 0, 8, 4, 210, 22, 47]);
                    let mut answer = [0];
                    peer.0.read_exact(&mut answer).expect("an answer");
                    assert_eq!(answer, *b"N");
                }
                peer.send(&startup(b"user\0postgres\0"));
                let answer = peer.body().expect("an error");
                assert_eq!(peer.body(), None, "the connection is over");
                sender.send(answer).expect("the receiver lives");
            }
        },
    );
    drop((sender, silent));
    let answers: Vec<(u8, Vec<u8>)> = answers.iter().collect();
    assert_eq!(answers.len(), 2);
    for (tag, answer) in answers {
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert_eq!(tag, b'E', "{text}");
        for part in ["SFATAL\0", "C57P03\0", "Mthe database system is starting up\0", "DHalf of it is done.\0"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
