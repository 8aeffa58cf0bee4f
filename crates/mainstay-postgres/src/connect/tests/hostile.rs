//! A server that is none: whatever it answers, connecting ends in time with an error.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use mainstay_env::Env;
use mainstay_store::ErrorKind;

use super::{env, value};

/// What is answered to the first message, after which the connection stays open until the client goes.
type Answer = fn(&mut TcpStream) -> std::io::Result<()>;

fn read(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut buffer = [0; 4096];
    let length = stream.read(&mut buffer)?;
    Ok(buffer[..length].to_vec())
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// Asks for SCRAM with an iteration count that would keep a processor busy for hours.
fn endless_scram(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"))?;
    let first = String::from_utf8_lossy(&read(stream)?).into_owned();
    let nonce = first.split("r=").nth(1).expect("a nonce");
    let challenge = format!("r={nonce}x,s=c2FsdA==,i=4000000000");
    stream.write_all(&message(b'R', &[b"\0\0\0\x0b", challenge.as_bytes()].concat()))
}

fn serve(env: &Env, answer: Answer) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let body = move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let answered = read(&mut stream).and_then(|_| answer(&mut stream));
        while answered.is_ok() && read(&mut stream).is_ok_and(|bytes| !bytes.is_empty()) {}
    };
    drop(env.tasks().thread("hostile", body).expect("a thread"));
    port
}

#[test]
fn whatever_a_server_answers_connecting_ends_in_time_with_an_error() {
    let env = env();
    let cases: [(&str, &str, Answer); 8] = [
        ("noise", "disable", |stream| stream.write_all(&[0xff; 3000])),
        ("an endless message", "disable", |stream| stream.write_all(b"R\x7f\xff\xff\xff")),
        ("a negative length", "disable", |stream| stream.write_all(b"R\xff\xff\xff\xff....")),
        ("an impossible length", "disable", |stream| stream.write_all(b"R\0\0\0\x03")),
        ("an error without fields", "disable", |stream| stream.write_all(&message(b'E', b"\0"))),
        ("rows nobody asked for", "disable", |stream| stream.write_all(&message(b'D', b"\x7f\xff"))),
        ("noise for TLS", "require", |stream| stream.write_all(&[&b"S"[..], &[0x16; 500]].concat())),
        ("endless SCRAM", "disable", endless_scram),
    ];
    for (what, mode, answer) in cases {
        let port = serve(&env, answer);
        let began = env.monotonic();
        let url = format!("postgres://u:p@127.0.0.1:{port}/d?connect_timeout=2&sslmode={mode}");
        let error = value(&env, &url, "SELECT 1").expect_err(what);
        let took = env.monotonic().0.saturating_sub(began.0);
        assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Denied), "{what}: {error}");
        assert!(took < Duration::from_secs(4), "{what}: {took:?}");
    }
}
