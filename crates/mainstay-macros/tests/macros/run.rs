//! What was expanded runs: on an engine over a store in memory, through the facade.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use mainstay::{Attempt, Builder, Ctx, Engine, Error, ErrorKind, Result, Workflow, step, workflow};

use crate::forms::{self, Order};

async fn launched(register: impl FnOnce(Builder) -> Builder) -> Engine {
    let builder = Engine::builder(mainstay::memory()).app("shop");
    register(builder).launch().await.expect("an engine over memory launches")
}

async fn stop(engine: Engine) {
    engine.shutdown(Duration::from_secs(5)).await.expect("it stops");
}

#[tokio::test]
async fn workflows_of_no_and_of_eight_arguments_run() {
    let engine = launched(|builder| builder.register(forms::nothing).register(forms::eight)).await;
    engine.start(forms::nothing()).await.unwrap().result().await.unwrap();
    let eight = forms::eight(1, 2, 3, 4, -5, true, 'g', "h".into());
    assert_eq!(engine.start(eight).await.unwrap().result().await.unwrap(), "1234-5truegh");
    stop(engine).await;
}

#[tokio::test]
async fn arguments_may_have_any_name() {
    let engine = launched(|builder| builder.register(forms::run)).await;
    let lists = BTreeMap::from([("a".to_owned(), vec![Some(1), None])]);
    let run = forms::run((1, [2, 3]), lists, "text".into(), Cow::Borrowed("kind"), 0.5);
    let result = engine.start(run).await.unwrap().result().await.unwrap();
    assert_eq!(result, ("text".to_owned(), Cow::Borrowed("kind")));
    stop(engine).await;
}

/// What the options of a workflow became: its name, its parameters, its class and its attempts.
type Facts = (&'static str, &'static [&'static str], Option<&'static str>, u32);

const fn facts<W: Workflow>(_: &mainstay::Invocation<W>) -> Facts {
    (W::NAME, W::PARAMS, W::CLASS, W::MAX_ATTEMPTS)
}

#[test]
fn options_and_parameter_names_become_the_constants_of_the_workflow() {
    assert_eq!(facts(&forms::every_option(1)), ("other", &["count"][..], Some("Shop"), 5));
    assert_eq!(facts(&forms::nothing()), ("nothing", &[][..], None, 100));
    let run = forms::run((1, [2, 3]), BTreeMap::new(), String::new(), Cow::Borrowed(""), 0.5);
    assert_eq!(facts(&run), ("run", &["args", "arguments", "ctx", "type", "invoke"][..], None, 7));
}

#[tokio::test]
async fn a_renamed_workflow_is_stored_under_its_other_name() {
    let engine = launched(|builder| builder.register(forms::every_option)).await;
    let handle = engine.start(forms::every_option(6)).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 7);
    assert_eq!(handle.row().await.unwrap().name.as_str(), "other");
    stop(engine).await;
}

#[tokio::test]
async fn a_workflow_may_call_itself_and_its_name_may_be_shadowed() {
    use forms::countdown;

    let engine = launched(|builder| builder.register(countdown)).await;
    let same = engine.handle(countdown, "three");
    let countdown = engine.start(countdown(3)).id("three").await.unwrap();
    assert_eq!(countdown.result().await.unwrap(), 0);
    assert_eq!(same.result().await.unwrap(), 0);
    stop(engine).await;
}

#[tokio::test]
async fn an_argument_that_is_named_like_its_workflow_and_type_arrives() {
    let engine = launched(|builder| builder.register(forms::order)).await;
    let order = engine.start(forms::order(Order { id: "o".into() })).await.unwrap();
    assert_eq!(order.result().await.unwrap().id, "o");
    stop(engine).await;
}

#[tokio::test]
async fn steps_in_every_form_give_their_values() {
    let engine = launched(|builder| builder.register(forms::steps)).await;
    let steps = engine.start(forms::steps(Order { id: "o".into() }, 5)).await.unwrap();
    let expected =
        "42425 | 7 | (1, [7, 8, 4]) | Some(\"4242\")[\"4242\", \"b\"]4242 | 4242 | o[1] | 1a12 | {\"4242\": 4}";
    assert_eq!(steps.result().await.unwrap(), expected);
    stop(engine).await;
}

#[step]
async fn place(ctx: &Ctx, attempt: Attempt, what: &str) -> Result<String> {
    Ok(format!("{what} {}", attempt.key.rsplit('-').next().unwrap_or_default()))
}

#[workflow]
async fn joined(ctx: Ctx, what: String) -> Result<(String, String)> {
    let (first, second) = (place(&ctx, &what), place(&ctx, &what));
    let (second, first) = tokio::join!(second.into_future(), first.into_future());
    Ok((first?, second?))
}

#[tokio::test]
async fn a_step_takes_its_position_when_it_is_called_and_may_borrow_in_a_join() {
    let engine = launched(|builder| builder.register(joined)).await;
    let (first, second) = engine.start(joined("at".into())).await.unwrap().result().await.unwrap();
    assert_eq!((first.as_str(), second.as_str()), ("at 0", "at 1"));
    stop(engine).await;
}

/// What the attempts of a step saw, by the id of the workflow: tests share the process.
static SEEN: Mutex<BTreeMap<String, Vec<String>>> = Mutex::new(BTreeMap::new());

fn note(ctx: &Ctx, line: String) -> usize {
    let mut seen = SEEN.lock().expect("no test panics under the lock");
    let lines = seen.entry(ctx.workflow_id().to_string()).or_default();
    lines.push(line);
    lines.len()
}

fn seen(id: &str) -> Vec<String> {
    SEEN.lock().expect("no test panics under the lock").remove(id).unwrap_or_default()
}

#[step(retries = 3, backoff = "1ms", retry_if = |error| error.message() != "enough")]
async fn stubborn(ctx: &Ctx, attempt: Attempt, mut words: Vec<String>, fails: usize, with: &str) -> Result<String> {
    words.push(format!("{} of {}", attempt.number, attempt.most));
    if note(ctx, words.join(" ")) <= fails {
        return Err(Error::new(with));
    }
    Ok(words.join(" "))
}

#[workflow]
async fn persistent(ctx: Ctx, fails: usize, with: String) -> Result<String> {
    stubborn(&ctx, vec!["try".into()], fails, &with).await
}

#[tokio::test]
async fn every_attempt_has_its_own_clone_of_an_owned_argument() {
    let engine = launched(|builder| builder.register(persistent)).await;
    let result = engine.start(persistent(2, "again".into())).id("twice").await.unwrap().result().await;
    assert_eq!(result.unwrap(), "try 3 of 4");
    assert_eq!(seen("twice"), ["try 1 of 4", "try 2 of 4", "try 3 of 4"]);

    let error = engine.start(persistent(9, "again".into())).id("always").await.unwrap().result().await.unwrap_err();
    assert_eq!(error.message(), "again");
    assert_eq!(seen("always").len(), 4, "a try and three retries");

    engine.start(persistent(9, "enough".into())).id("enough").await.unwrap().result().await.unwrap_err();
    assert_eq!(seen("enough"), ["try 1 of 4"], "the predicate declined");
    stop(engine).await;
}

#[step]
async fn taken(ctx: &Ctx, order: Order, words: Vec<String>) -> Result<String> {
    let tries = note(ctx, format!("{} {words:?}", order.id));
    if tries == 1 { Err(Error::new("at first")) } else { Ok(words.concat()) }
}

#[step]
async fn cloned(ctx: &Ctx, words: Vec<String>) -> Result<String> {
    let tries = note(ctx, words.concat());
    if tries == 1 { Err(Error::new("at first")) } else { Ok(words.concat()) }
}

#[workflow]
async fn retried_at_the_call(ctx: Ctx, with_order: bool) -> Result<String> {
    let words = vec!["a".to_owned(), "b".to_owned()];
    let call = if with_order { taken(&ctx, Order { id: "o".into() }, words) } else { cloned(&ctx, words) };
    call.retries(1).backoff(Duration::from_millis(1)).await
}

#[tokio::test]
async fn retries_that_the_call_asks_for_clone_what_can_be_cloned() {
    let engine = launched(|builder| builder.register(retried_at_the_call)).await;
    let result = engine.start(retried_at_the_call(false)).id("cloned").await.unwrap().result().await;
    assert_eq!(result.unwrap(), "ab");
    assert_eq!(seen("cloned"), ["ab", "ab"]);
    stop(engine).await;
}

#[tokio::test]
async fn a_second_attempt_says_which_argument_the_first_one_took() {
    let engine = launched(|builder| builder.register(retried_at_the_call)).await;
    let error = engine.start(retried_at_the_call(true)).id("taken").await.unwrap().result().await.unwrap_err();
    assert!(error.message().contains("step \"taken\"") && error.message().contains("argument `order`"), "{error:?}");
    assert_eq!(seen("taken").len(), 1);
    stop(engine).await;
}

#[step(timeout = "20ms")]
async fn endless(_: &Ctx) -> Result<()> {
    std::future::pending().await
}

#[workflow]
async fn impatient(ctx: Ctx) -> Result<()> {
    endless(&ctx).await
}

#[tokio::test]
async fn the_time_limit_of_an_attempt_is_kept() {
    let engine = launched(|builder| builder.register(impatient)).await;
    let error = engine.start(impatient()).await.unwrap().result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    stop(engine).await;
}

struct Shop;

impl Shop {
    /// Associated functions without `self` are functions like others.
    #[workflow]
    async fn double(ctx: Ctx, number: u32) -> Result<u32> {
        Shop::doubled(&ctx, number).await
    }

    #[step]
    async fn doubled(ctx: &Ctx, number: u32) -> Result<u32> {
        Ok(number * 2)
    }
}

/// Another path to the crate, as a program has it that re-exports it.
mod vendor {
    pub(super) use mainstay as durable;
}

macro_rules! triple {
    ($name:ident, $step:ident, $retries:expr, $number:ty) => {
        #[step(retries = $retries, crate = vendor::durable)]
        async fn $step(ctx: &Ctx, number: &$number) -> Result<$number> {
            Ok(number * 3)
        }

        #[workflow(crate = crate::run::vendor::durable)]
        async fn $name(ctx: Ctx, number: $number) -> Result<$number> {
            $step(&ctx, &number).await
        }
    };
}

triple!(triple, tripled, 2, u32);

#[tokio::test]
async fn functions_in_an_impl_and_from_a_macro_expand_too() {
    let engine = launched(|builder| builder.register(Shop::double).register(triple)).await;
    assert_eq!(engine.start(Shop::double(4)).await.unwrap().result().await.unwrap(), 8);
    assert_eq!(engine.start(triple(4)).await.unwrap().result().await.unwrap(), 12);
    stop(engine).await;
}
