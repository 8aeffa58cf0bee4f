//! Tests of sessions on a server.

use mainstay_env::{Env, block_on};
use mainstay_store::ErrorKind;

use super::*;
use crate::Config;
use crate::connect::Connector;
use crate::identifier::Schema;
use crate::layout::Layout;
use crate::pool::drive;

static MAKE: Text = Text::new("test_make", "CREATE TABLE made (n int)");
static WRONG: Text = Text::new("test_wrong", "-- params: n int\nSELECT $1");

async fn session(env: &Env, url: &str, pooler: bool) -> Session {
    let connected = Connector::new(&Config::new(url), env).expect("a place").connect().await.expect("a connection");
    let driver = drive(env.tasks(), connected.messages, |_| {});
    let layout = Layout { number: 125, split: true, owner: true, consumed_by: true, inline: true };
    let texts = Texts::new(Schema::new("schema", "dbos").expect("a name"), layout, true);
    Session::new(connected.client, driver, Arc::new(texts), pooler, Duration::from_secs(30))
}

#[test]
fn a_statement_that_cannot_be_sent_undoes_those_before_it() {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    block_on(async {
        let env = Env::system("session").expect("a thread");
        for pooler in [false, true] {
            let (place, url) = (env.clone(), database.url());
            let connecting = env.tasks().spawn("connecting", async move { session(&place, &url, pooler).await });
            let mut session = connecting.await.expect("a session");
            let asks = [Ask::new(&MAKE, &[]), Ask::new(&WRONG, &[&"no number"])];
            let fault = session.transaction(&asks).await.expect_err("a text is no number");
            assert_eq!(fault.of("test").kind(), ErrorKind::Bug);
            assert_eq!(database.client().value("SELECT to_regclass('made') IS NULL"), "t", "pooler: {pooler}");
            assert!(!session.is_broken());
            session.transaction(&[Ask::new(&MAKE, &[])]).await.expect("the connection is as it was");
            database.client().run("DROP TABLE made");
        }
    });
}

#[test]
fn lower_limits_of_the_role_stay_and_higher_ones_do_not() {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    for (own, found) in [("200ms", "200ms"), ("1min", "5s"), ("0", "5s")] {
        let mut client = database.client();
        for name in [IDLE, STATEMENT] {
            client.run(&format!("SET {name} = '{own}'"));
        }
        client.run(&limits(Duration::from_secs(5), false));
        for name in [IDLE, STATEMENT] {
            assert_eq!(client.value(&format!("SHOW {name}")), found, "{name} of {own}");
        }
    }
}
