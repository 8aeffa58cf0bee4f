//! Tests of hints, and of the line that they go by.

use futures_util::FutureExt;
use mainstay_env::{BoxFuture, Clock, Monotonic, Timestamp, block_on};
use mainstay_pgkit::proxy::End;
use mainstay_pgkit::{Database, Proxy};

use super::*;
use crate::Config;

fn queue(name: &str) -> Wakeup {
    Wakeup::Queue(name.into())
}

#[test]
fn hints_fit_into_notifications_and_come_out_as_they_went_in() {
    let hints: BTreeSet<Wakeup> = (0..500).map(|n| queue(&format!("{n:060}"))).collect();
    let texts = payloads(&hints);
    assert!(texts.len() > 1 && texts.iter().all(|text| text.len() <= PAYLOAD + 2), "{}", texts.len());
    let read: BTreeSet<Wakeup> =
        texts.iter().flat_map(|text| serde_json::from_str::<Vec<Wakeup>>(text).expect("hints")).collect();
    assert_eq!(read, hints);
}

#[test]
fn a_long_name_is_not_sent() {
    let hints = BTreeSet::from([queue("short"), queue(&"x".repeat(65))]);
    assert_eq!(payloads(&hints), [r#"["All"]"#]);
}

#[test]
fn what_comes_faster_than_it_is_heard_is_one_hint_of_everything() {
    let (heard, hears) = mpsc::channel(2);
    let mut hears = Hears { hears, lost: Arc::default() };
    let hear = hearing(heard, hears.lost.clone());
    let wakeups = Wakeups::new();
    let mut told = wakeups.subscribe();
    for payload in ["a", "b", "c", "d"] {
        hear(payload);
    }
    assert_eq!(hears.next(&wakeups).now_or_never(), Some(Some("a".into())));
    assert_eq!(told.next().now_or_never(), Some(Wakeup::All));
    assert_eq!(hears.next(&wakeups).now_or_never(), Some(Some("b".into())));
    assert_eq!(hears.next(&wakeups).now_or_never(), None);
    assert_eq!(told.next().now_or_never(), None, "told once");
}

/// A clock by which this many of its seconds pass in one of the machine's, or one of its in so many.
#[derive(Debug)]
struct Other {
    clock: Arc<dyn Clock>,
    times: u32,
    slower: u32,
}

impl Clock for Other {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic(self.clock.monotonic().0.saturating_mul(self.times) / self.slower)
    }

    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(Monotonic(at.0.saturating_mul(self.slower) / self.times))
    }
}

fn other(env: &Env, times: u32, slower: u32) -> Env {
    env.with_clock(Arc::new(Other { clock: env.clock().clone(), times, slower }))
}

fn line(env: &Env, url: String) -> Line {
    let connector = Connector::new(&Config::new(url), env).expect("a place");
    Line::new(env, &env.tasks().group("hints"), connector, &Schema::new("schema", "dbos").expect("a name"), false)
}

fn fresh() -> Option<Database> {
    Some(mainstay_pgkit::server()?.database())
}

/// Waits until a hint of one line is heard by the other.
async fn until_heard(env: &Env, hints: &Hints, heard: &Wakeups, hint: &Wakeup) {
    let mut told = heard.subscribe();
    let own = Wakeups::new();
    let end = env.deadline(Duration::from_secs(60));
    loop {
        hints.publish(&own, [hint.clone()]);
        match env.timeout(Duration::from_millis(500), told.next()).await {
            Ok(found) if found == *hint => return,
            _ => assert!(env.monotonic() < end, "nothing is heard"),
        }
    }
}

#[test]
fn a_hint_that_work_waits_for_ends_the_calm_of_others() {
    let Some(database) = fresh() else { return };
    block_on(async {
        let env = Env::system("hints").expect("a thread");
        // By this clock hints of ended workflows wait 4 s for others, and two notifications are 0.8 s apart.
        let slow = other(&env, 1, 400);
        let (sent, heard) = (Wakeups::new(), Wakeups::new());
        let sender = Hints::start(Some(line(&slow, database.url())), &sent);
        drop(Hints::start(Some(line(&env, database.url())), &heard));
        until_heard(&env, &sender, &heard, &Wakeup::Registry).await;
        // What was said meanwhile goes out, though it should have to wait, and the pause behind it ends.
        env.sleep(Duration::from_secs(7)).await;
        let mut told = heard.subscribe();
        let begun = env.monotonic();
        sender.publish(&sent, [Wakeup::Workflow("w".into())]);
        // The line has seen that nothing waits for it.
        env.sleep(Duration::from_millis(500)).await;
        sender.publish(&sent, [queue("q")]);
        while told.next().await != queue("q") {}
        let took = env.monotonic().since(begun);
        assert!(took < Duration::from_secs(3), "heard after {took:?}");
    });
}

#[test]
fn a_line_that_has_gone_dead_is_noticed_and_opened_anew() {
    let Some(database) = fresh() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    block_on(async {
        let env = Env::system("hints").expect("a thread");
        let fast = other(&env, 10, 1);
        let (own, heard) = (Wakeups::new(), Wakeups::new());
        drop(Hints::start(Some(line(&fast, proxy.url(&database))), &heard));
        let direct = Hints::start(Some(line(&env, database.url())), &own);
        until_heard(&env, &direct, &heard, &Wakeup::Registry).await;
        proxy.cut_all(End::Silent);
        until_heard(&env, &direct, &heard, &queue("q")).await;
    });
}
