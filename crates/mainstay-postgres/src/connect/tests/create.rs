//! A database that is missing, created or not.

use mainstay_pgkit::{Options, Server};
use mainstay_store::{ErrorKind, StoreError};

use super::{ask, block, connector, env, start};
use crate::config::Config;

fn open(
    server: &Server,
    user: &str,
    database: &str,
    change: impl FnOnce(Config) -> Config,
) -> Result<String, StoreError> {
    let env = env();
    let url = format!("postgres://{user}@127.0.0.1:{}/{database}", server.port());
    let connector = connector(&env, &change(Config::new(url)), &[])?;
    block(&env, async move { Ok(ask(connector.connect_or_create().await?, "SELECT current_database()").await) })
}

#[test]
fn case_o49_a_database_whose_name_needs_encoding_is_created() {
    let Some(server) = start(Options::new()) else { return };
    assert_eq!(
        open(&server, "postgres", "My%20%22db%22%2Fx%27%C3%A9", |config| config).expect("created"),
        "My \"db\"/x'é"
    );
    assert_eq!(
        open(&server, "postgres", "My%20%22db%22%2Fx%27%C3%A9", |config| config).expect("there"),
        "My \"db\"/x'é"
    );
}

#[test]
fn a_created_database_holds_every_text_whatever_the_template_holds() {
    let Some(server) = start(Options::new()) else { return };
    for encoding in ["LATIN1", "SQL_ASCII", "UTF8"] {
        let other = format!("TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'");
        let mut client = server.client();
        client.run("UPDATE pg_database SET datistemplate = false WHERE datname = 'template1'");
        client.run("DROP DATABASE template1");
        client.run(&format!("CREATE DATABASE template1 {other}"));
        let name = format!("from_{}", encoding.to_lowercase());
        assert_eq!(open(&server, "postgres", &name, |config| config).expect("created"), name);
        let held = format!("SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = '{name}'");
        assert_eq!(client.value(&held), "UTF8", "{encoding}");
    }
}

#[test]
fn a_database_is_not_created_where_that_was_not_allowed() {
    let Some(server) = start(Options::new()) else { return };
    for change in [|config: Config| config.create_database(false), |config: Config| config.verify_only()] {
        let error = open(&server, "postgres", "nowhere", change).expect_err("missing");
        assert_eq!(error.to_string(), "open: not found: 3D000: database \"***\" does not exist");
    }
    assert_eq!(server.client().value("SELECT count(*) FROM pg_database WHERE datname = 'nowhere'"), "0");
}

#[test]
fn eight_processes_that_start_at_once_create_one_database() {
    let Some(server) = start(Options::new()) else { return };
    let envs: Vec<_> = (0..8).map(|_| env()).collect();
    let url = format!("postgres://postgres@127.0.0.1:{}/together", server.port());
    let (sender, receiver) = std::sync::mpsc::channel();
    for env in &envs {
        let connector = connector(env, &Config::new(&*url), &[]).expect("read");
        let sender = sender.clone();
        let opened = async move { sender.send(connector.connect_or_create().await.map(drop)) };
        drop(env.tasks().spawn("open", opened));
    }
    drop(sender);
    let results: Vec<_> = receiver.iter().collect();
    assert!(results.len() == 8 && results.iter().all(Result::is_ok), "{results:?}");
}

#[test]
fn case_o48_a_role_that_may_not_create_is_told_what_it_lacks() {
    let Some(server) = start(Options::new()) else { return };
    server.client().run(
        "CREATE ROLE poor LOGIN; CREATE ROLE maker LOGIN CREATEDB; REVOKE CONNECT ON DATABASE postgres FROM PUBLIC",
    );
    assert_eq!(open(&server, "maker", "made", |config| config).expect("made from template1"), "made");
    let error = open(&server, "poor", "missing", |config| config).expect_err("may not");
    assert!(error.kind() == ErrorKind::Denied && error.to_string().contains("CREATEDB"), "{error}");
    server.client().run("REVOKE CONNECT ON DATABASE template1 FROM PUBLIC");
    let error = open(&server, "maker", "missing", |config| config).expect_err("no way in");
    assert!(
        error.kind() == ErrorKind::Denied && error.to_string().contains("grant it CONNECT on one of them"),
        "{error}"
    );
    assert!(!error.to_string().contains("maker"), "{error}");
}
