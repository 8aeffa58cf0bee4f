//! Payloads as programs write them: odd characters, wide integers, and what is too large.

use std::time::Duration;

use mainstay::{Builder, Ctx, Engine, Error, ErrorKind, Invocation};
use mainstay_env::block_on;
use mainstay_pgkit::Proxy;
use mainstay_pgkit::proxy::Kind;

use super::support::{self, launch};

/// Texts that some column, driver or parser makes another one of, or refuses.
const ODD: &[&str] = &["\0", "a\0b", "\\u0000", "\u{1}\u{7f}\u{feff}", "'\"\\;--$1$$", "\u{2028}\r\n\t", "𝄞 né", ""];

/// Waits for the result of a workflow with one argument.
async fn result<T>(engine: &Engine, name: &str, arg: &T) -> mainstay::Result<T>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
{
    let call = Invocation::named(name).arg(arg).returning::<T>();
    engine.start(call).await.expect("a start").result().await
}

/// A body that gives its argument back by way of a step.
fn echo<T>(builder: Builder, name: &str) -> Builder
where
    T: serde::Serialize + serde::de::DeserializeOwned + Clone + Send + Sync + 'static,
{
    builder.function(name, |ctx: Ctx, value: T| async move { ctx.step("echo", || async { Ok(value.clone()) }).await })
}

/// A body that writes an integer which JavaScript rounds, in the place that it is given.
async fn place(ctx: Ctx, place: String) -> mainstay::Result<u64> {
    let over = 1_u64 << 53;
    let fails = |place: &str| match place {
        "data" => Err(Error::named("Odd", "no").with_data([over])),
        _ => Err(Error::named("Odd", "no").with_code(over)),
    };
    let child = Invocation::named("u64").returning::<u64>();
    match place.as_str() {
        "child" => ctx.start(child.arg(over)).await?.result().await,
        "child attributes" => {
            ctx.start(child.arg(1)).attributes(&serde_json::json!({ "n": over })).await?.result().await
        }
        place => match place.strip_prefix("step ") {
            Some(place) => ctx.step("one", || async { fails(place) }).await,
            None => fails(place),
        },
    }
}

#[test]
fn case_o33_a_nul_in_json_comes_back_as_it_went_and_attributes_refuse_it_at_once() {
    let Some(database) = support::fresh_database() else { return };
    block_on(async {
        let store = support::open(&database.url(), |config| config).await;
        let builder = echo::<String>(Engine::builder(store).app("shop"), "echo");
        let failing = |_: Ctx, text: String| async move { Err::<(), _>(Error::named("Odd", text)) };
        let engine = launch(builder.function("fails", failing)).await;
        for text in ODD {
            assert_eq!(result(&engine, "echo", &(*text).to_owned()).await.expect("a result"), *text);
            let call = Invocation::named("fails").arg(text).returning::<()>();
            let error = engine.start(call).await.expect("a start").result().await.expect_err("it fails");
            assert_eq!((error.name(), error.message()), ("Odd", *text));
        }
        for attributes in [serde_json::json!({ "k": "a\0" }), serde_json::json!({ "a\0": 1 })] {
            let start = engine.start(Invocation::named("echo").arg("x")).id("odd").attributes(&attributes);
            let error = start.await.expect_err("no column holds it");
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(error.message().contains("attributes") && error.message().contains("NUL"), "{}", error.message());
        }
        let mut client = database.client();
        assert_eq!(support::count(&mut client, "workflow_uuid = 'odd' OR status NOT IN ('SUCCESS', 'ERROR')"), 0);
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}

#[test]
fn case_o34_integers_are_exact_in_every_place_and_what_javascript_rounds_is_refused_on_request() {
    let Some(database) = support::fresh_database() else { return };
    block_on(async {
        let builder = Engine::builder(support::open(&database.url(), |config| config).await).app("shop");
        let builder = echo::<i64>(echo::<u64>(echo::<u128>(builder, "u128"), "u64"), "i64");
        let engine = launch(builder).await;
        for number in [i64::MIN, -1, 0, (1 << 53) + 1, i64::MAX] {
            assert_eq!(result(&engine, "i64", &number).await.expect("a result"), number);
        }
        for number in [0, (1 << 53) + 1, u64::MAX] {
            assert_eq!(result(&engine, "u64", &number).await.expect("a result"), number);
        }
        for number in [u128::from(u64::MAX) + 1, u128::MAX] {
            assert_eq!(result(&engine, "u128", &number).await.expect("a result"), number);
        }
        let mut client = database.client();
        let stored = client.value("SELECT output FROM dbos.workflow_output ORDER BY length(output) DESC LIMIT 1");
        assert_eq!(stored, u128::MAX.to_string(), "digits, and no floating point");
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");

        let builder = Engine::builder(support::open(&database.url(), |config| config).await).app("strict");
        let builder = echo::<u64>(builder.strict_portable(), "u64").function("place", place);
        let strict = launch(builder).await;
        assert_eq!(result(&strict, "u64", &((1_u64 << 53) - 1)).await.expect("a result"), (1 << 53) - 1);
        let error = strict.start(Invocation::named("u64").arg(1_u64 << 53)).await.expect_err("rounded elsewhere");
        assert_eq!(error.kind(), ErrorKind::Refused);
        let start = strict.start(Invocation::named("u64").arg(1)).attributes(&serde_json::json!({ "n": 1_u64 << 53 }));
        let error = start.await.expect_err("rounded elsewhere");
        assert!(error.kind() == ErrorKind::Refused && error.message().contains("attributes"), "{}", error.message());
        for (name, refused) in [
            ("data", ErrorKind::BadOutput),
            ("code", ErrorKind::BadOutput),
            ("step data", ErrorKind::BadOutput),
            ("step code", ErrorKind::BadOutput),
            ("child", ErrorKind::Refused),
            ("child attributes", ErrorKind::Refused),
        ] {
            let call = Invocation::named("place").arg(name).returning::<u64>();
            let error = strict.start(call).await.expect("a start").result().await.expect_err("rounded elsewhere");
            assert_eq!(error.kind(), refused, "{name}: {}", error.message());
        }
        let mut rounded = |table: &str| {
            let ours = "SELECT workflow_uuid FROM dbos.workflow_status WHERE application_name = 'strict'";
            let digits = format!("t.workflow_uuid IN ({ours}) AND t::text LIKE '%9007199254740992%'");
            client.value(&format!("SELECT count(*) FROM dbos.{table} t WHERE {digits}"))
        };
        for table in ["workflow_status", "workflow_input", "workflow_output", "operation_outputs"] {
            assert_eq!(rounded(table), "0", "{table}");
        }
        strict.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}

#[test]
fn case_o38_what_is_too_large_is_refused_before_it_is_sent_and_what_is_not_is_kept_whole() {
    let Some(database) = support::fresh_database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    block_on(async {
        let store = support::open(&proxy.url(&database), |config| config.payload_bytes(2 << 20)).await;
        let builder = Engine::builder(store).app("shop").max_payload(2 << 20);
        let long = |_: Ctx, bytes: u64| async move { Ok("x".repeat(usize::try_from(bytes).unwrap_or(0))) };
        let engine = launch(echo::<String>(builder, "echo").function("long", long)).await;
        let fits = "x".repeat((1 << 20) + 7);
        assert_eq!(result(&engine, "echo", &fits).await.expect("a result").len(), fits.len());
        proxy.reset_counts();
        let error = engine.start(Invocation::named("echo").arg("x".repeat(16 << 20))).await.expect_err("too large");
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.message().contains("2097152"), "{}", error.message());
        let sent = proxy.counts();
        assert!(sent.bytes_up < 1 << 20 && sent.of(Kind::Bind) < 50, "{sent:?}");
        let call = Invocation::named("long").arg(3 << 20).returning::<String>();
        let error = engine.start(call).await.expect("a start").result().await.expect_err("too large a result");
        assert_eq!(error.kind(), ErrorKind::BadOutput);
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}
