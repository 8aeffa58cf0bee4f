//! One connection: what the client sends goes through the script, what the server answers through the counts.

use super::frame::{Frames, Prepared, first_kind, length};
use super::line::{Control, Mode, Shared, lock};
use super::message::{Kind, Message};
use super::script::{End, Notice, Verdict};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;

type Watched = watch::Receiver<Control>;

/// Carries one connection to its end and tells the client of it in the way that was asked for.
pub(crate) async fn carry(mut client: TcpStream, shared: Arc<Shared>, mut control: Watched) {
    let cuts = control.borrow().cuts;
    let mut watched = control.clone();
    let _ = client.set_nodelay(true);
    let end = tokio::select! {
        ended = session(&mut client, &shared, &control) => ended.unwrap_or(End::Close),
        cut = watched.wait_for(|control| control.cuts > cuts) => cut.map_or(End::Close, |control| control.end),
    };
    match end {
        End::Close => {}
        End::Reset => reset(&client),
        End::Silent => {
            let heals = control.borrow().heals;
            let _ = control.wait_for(|control| control.heals > heals).await;
            reset(&client);
        }
    }
}

fn reset(client: &TcpStream) {
    // Without it the client sees an ordinary end, which a test would notice.
    let _ = client.set_zero_linger();
}

async fn session(client: &mut TcpStream, shared: &Shared, control: &Watched) -> io::Result<End> {
    let number = shared.number();
    gate(control).await;
    let (mut server, _open) = shared.connect().await?;
    let session = Session { number, shared, state: Mutex::default() };
    match session.greet(client, &mut server, control).await? {
        Greeting::Ended(end) => return Ok(end),
        Greeting::Encrypted => {
            tokio::io::copy_bidirectional(client, &mut server).await?;
            return Ok(End::Close);
        }
        Greeting::Plain => {}
    }
    let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
    tokio::select! {
        ended = session.up(from_client, to_server, control) => ended,
        ended = session.down(from_server, to_client, control) => ended,
    }
}

/// Waits while nothing passes, then for as long as the line is slow.
async fn gate(control: &Watched) {
    let mut control = control.clone();
    let _ = control.wait_for(|control| control.mode != Mode::Blackhole).await;
    let delay = control.borrow().delay;
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

enum Greeting {
    Plain,
    Encrypted,
    Ended(End),
}

struct Session<'a> {
    number: u64,
    shared: &'a Shared,
    state: Mutex<State>,
}

/// What both directions know of a session.
#[derive(Default)]
struct State {
    /// How many of the client's messages await a ReadyForQuery in all, and how many of these came.
    awaited: u64,
    ready: u64,
    doom: Option<Doom>,
}

/// The session ends when the server has answered the message that was to be the last.
struct Doom {
    end: End,
    notice: Notice,
    /// The number of the ReadyForQuery that proves it, once the message that asks for it was sent.
    at: Option<u64>,
}

impl Session<'_> {
    /// The messages before a session's first tag. Whatever encryption is agreed on, the proxy only carries then.
    async fn greet(&self, client: &mut TcpStream, server: &mut TcpStream, control: &Watched) -> io::Result<Greeting> {
        loop {
            let mut head = [0; 4];
            client.read_exact(&mut head).await?;
            let mut first = head.to_vec();
            first.resize(length(&head)?, 0);
            client.read_exact(&mut first[4..]).await?;
            let kind = first_kind(&first);
            if let Some(end) = self.judge(kind, None, first.len()).await {
                return Ok(Greeting::Ended(end));
            }
            gate(control).await;
            server.write_all(&first).await?;
            match kind {
                Kind::Startup => return Ok(Greeting::Plain),
                Kind::CancelRequest => {
                    // The server closes once it has sent the signal.
                    let _ = server.read(&mut head).await;
                    return Ok(Greeting::Ended(End::Close));
                }
                _ => {}
            }
            let answer = server.read_u8().await?;
            gate(control).await;
            client.write_u8(answer).await?;
            if answer != b'N' {
                return Ok(Greeting::Encrypted);
            }
        }
    }

    async fn up(&self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, control: &Watched) -> io::Result<End> {
        let mut frames = Frames::default();
        let mut prepared = Prepared::default();
        loop {
            let read = from.read_buf(frames.room()).await?;
            gate(control).await;
            if read == 0 {
                return Ok(End::Close);
            }
            let mut passed = Vec::new();
            while let Some(frame) = frames.take()? {
                let (kind, sql) = prepared.note(frame);
                let message = Message { connection: self.number, kind, sql };
                match self.shared.judge(&message) {
                    Verdict::Pass => {}
                    // What came before in one write has passed the proxy, and reaches the server all the same.
                    Verdict::Delay(delay, notice) => {
                        to.write_all(&std::mem::take(&mut passed)).await?;
                        tokio::time::sleep(delay).await;
                        notice.tell();
                    }
                    Verdict::Before(end, notice) => {
                        to.write_all(&passed).await?;
                        notice.tell();
                        return Ok(end);
                    }
                    Verdict::After(end, notice) => lock(&self.state).doom = Some(Doom { end, notice, at: None }),
                }
                self.forwarded(&message, frame.len());
                passed.extend_from_slice(frame);
            }
            to.write_all(&passed).await?;
        }
    }

    async fn down(&self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, control: &Watched) -> io::Result<End> {
        let mut frames = Frames::default();
        loop {
            let read = from.read_buf(frames.room()).await?;
            gate(control).await;
            if read == 0 {
                return Ok(End::Close);
            }
            let mut passed = Vec::new();
            while let Some(frame) = frames.take()? {
                match self.answered(frame) {
                    Answer::Pass => passed.extend_from_slice(frame),
                    Answer::Swallow => {}
                    Answer::End(end) => return Ok(end),
                }
            }
            to.write_all(&passed).await?;
        }
    }

    /// Judges a message of the greeting; `Some` when the connection ends before it.
    async fn judge(&self, kind: Kind, sql: Option<Arc<str>>, bytes: usize) -> Option<End> {
        let message = Message { connection: self.number, kind, sql };
        match self.shared.judge(&message) {
            Verdict::Pass => {}
            Verdict::Delay(delay, notice) => {
                tokio::time::sleep(delay).await;
                notice.tell();
            }
            Verdict::Before(end, notice) => {
                notice.tell();
                return Some(end);
            }
            Verdict::After(end, notice) => lock(&self.state).doom = Some(Doom { end, notice, at: None }),
        }
        self.forwarded(&message, bytes);
        None
    }

    /// Notes a message that goes to the server.
    fn forwarded(&self, message: &Message, bytes: usize) {
        let mut record = self.shared.record();
        record.up(message, bytes);
        if !message.kind.awaits_ready() {
            return;
        }
        let mut state = lock(&self.state);
        record.counts.round_trips += u64::from(message.kind != Kind::Startup && state.awaited == state.ready);
        state.awaited += 1;
        let awaited = state.awaited;
        if let Some(doom) = &mut state.doom {
            doom.at.get_or_insert(awaited);
        }
    }

    /// Notes a message of the server and says whether the client sees it.
    fn answered(&self, frame: &[u8]) -> Answer {
        let mut record = self.shared.record();
        let mut state = lock(&self.state);
        record.down(frame, state.ready == 0);
        state.ready += u64::from(frame[0] == b'Z');
        let ready = state.ready;
        match &state.doom {
            None => Answer::Pass,
            Some(Doom { at: Some(at), end, notice }) if ready >= *at => {
                notice.tell();
                Answer::End(*end)
            }
            Some(_) => Answer::Swallow,
        }
    }
}

enum Answer {
    Pass,
    Swallow,
    End(End),
}
