//! Calls of workflows: which function, with which arguments.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use mainstay_store::{ClassName, ConfigName, Payload, WorkflowName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::args::Args;
use crate::codec;
use crate::error::{Error, Result};
use crate::workflow::Workflow;

/// What an invocation calls: a workflow type of this program, or a name.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// # #[workflow]
/// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
/// #     Ok(2 * number)
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
/// async fn result_of<W: mainstay::Target>(engine: &Engine, call: Invocation<W>) -> Result<W::Output> {
///     engine.start(call).await?.result().await
/// }
/// assert_eq!(result_of(&engine, double(4)).await?, 8);
/// assert_eq!(result_of(&engine, Invocation::named("double").arg(&5)).await?, 10);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub trait Target: 'static {
    /// What the workflow returns.
    type Output: DeserializeOwned + Send + 'static;
}

impl<W: Workflow> Target for W {
    type Output = W::Output;
}

/// A workflow that this program knows by name alone; `T` is what it returns.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// # use mainstay::Named;
/// # #[workflow]
/// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
/// #     Ok(2 * number)
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
/// let call: Invocation<Named<u64>> = Invocation::named("double").arg(&4).returning();
/// assert_eq!(engine.start(call).await?.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub struct Named<T = serde_json::Value>(PhantomData<fn() -> T>);

impl<T: DeserializeOwned + Send + 'static> Target for Named<T> {
    type Output = T;
}

impl<T> fmt::Debug for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Named")
    }
}

/// A call of a workflow with its arguments, encoded; started by `engine.start`, `ctx.start` or `ctx.run`.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// # #[workflow]
/// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
/// #     Ok(2 * number)
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
/// let call = double(4);
/// assert_eq!(call.name(), "double");
/// assert_eq!(engine.start(call).await?.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub struct Invocation<W: Target> {
    pub(crate) name: WorkflowName,
    pub(crate) class: Option<ClassName>,
    pub(crate) instance: Option<ConfigName>,
    args: Result<Arguments>,
    target: PhantomData<fn() -> W>,
}

/// What a call passes.
#[derive(Default)]
struct Arguments {
    positional: Vec<Box<RawValue>>,
    named: BTreeMap<String, Box<RawValue>>,
}

impl<W: Workflow> Invocation<W> {
    /// A call of `W`. Arguments that cannot be encoded are reported when it is started.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # struct Double;
    /// # impl Workflow for Double {
    /// #     type Args = (u64,);
    /// #     type Output = u64;
    /// #     const NAME: &'static str = "double";
    /// #     const PARAMS: &'static [&'static str] = &["number"];
    /// #     async fn run(&self, _ctx: Ctx, (number,): (u64,)) -> Result<u64> {
    /// #         Ok(2 * number)
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(Double).launch().await?;
    /// let call = Invocation::<Double>::of((4,));
    /// assert_eq!(engine.start(call).await?.result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn of(args: W::Args) -> Self {
        Self {
            name: W::NAME.into(),
            class: W::CLASS.map(ClassName::from),
            instance: None,
            args: args.encode(W::PARAMS).map(|positional| Arguments { positional, ..Arguments::default() }),
            target: PhantomData,
        }
    }
}

impl Invocation<Named> {
    /// A call of a workflow by its name, for one that this program does not know; its result is a JSON value.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// let handle = engine.start(Invocation::named("double").arg(&4)).await?;
    /// assert_eq!(handle.result().await?, serde_json::json!(8));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn named(name: impl Into<WorkflowName>) -> Self {
        Self { name: name.into(), class: None, instance: None, args: Ok(Arguments::default()), target: PhantomData }
    }
}

impl<T: DeserializeOwned + Send + 'static> Invocation<Named<T>> {
    /// Adds the next argument.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn join(_ctx: Ctx, text: String, number: u64) -> Result<String> {
    /// #     Ok(format!("{text}{number}"))
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(join).launch().await?;
    /// let call = Invocation::named("join").arg("order-").arg(&42);
    /// assert_eq!(engine.start(call).await?.result().await?, "order-42");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn arg<A: Serialize>(mut self, value: A) -> Self {
        if let Ok(args) = &mut self.args {
            match codec::encode_raw(&value) {
                Ok(raw) => args.positional.push(raw),
                Err(error) => {
                    let number = args.positional.len() + 1;
                    self.args = Err(Error::bad_input(format!("argument {number}: {error}")));
                }
            }
        }
        self
    }

    /// Adds an argument by the name of its parameter; one given twice is reported when it is started.
    ///
    /// Programs of some languages read positional arguments alone.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn join(_ctx: Ctx, text: String, number: u64) -> Result<String> {
    /// #     Ok(format!("{text}{number}"))
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(join).launch().await?;
    /// let call = Invocation::named("join").arg("order-").named_arg("number", &42);
    /// assert_eq!(engine.start(call).await?.result().await?, "order-42");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn named_arg<A: Serialize>(mut self, name: impl Into<String>, value: A) -> Self {
        let name = name.into();
        if let Ok(args) = &mut self.args {
            match codec::encode_raw(&value) {
                Err(error) => self.args = Err(Error::bad_input(format!("argument `{name}`: {error}"))),
                Ok(_) if args.named.contains_key(&name) => {
                    self.args = Err(Error::bad_input(format!("argument `{name}` is given twice")));
                }
                Ok(raw) => drop(args.named.insert(name, raw)),
            }
        }
        self
    }

    /// Says what the workflow returns.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// let call = Invocation::named("double").arg(&4).returning::<u64>();
    /// assert_eq!(engine.start(call).await?.result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn returning<U: DeserializeOwned + Send + 'static>(self) -> Invocation<Named<U>> {
        let Self { name, class, instance, args, .. } = self;
        Invocation { name, class, instance, args, target: PhantomData }
    }

    /// Names the class under which the workflow is registered.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").launch().await?;
    /// let call = Invocation::named("monthly").class("Reports");
    /// let row = engine.start(call).queue("reports").await?.row().await?;
    /// assert_eq!(row.class.unwrap(), "Reports");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn class(mut self, class: impl Into<ClassName>) -> Self {
        self.class = Some(class.into());
        self
    }
}

impl<W: Target> Invocation<W> {
    /// Calls a configured instance of the class.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").launch().await?;
    /// let call = Invocation::named("monthly").class("Reports").instance("sales");
    /// let row = engine.start(call).queue("reports").await?.row().await?;
    /// assert_eq!(row.config.unwrap(), "sales");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn instance(mut self, instance: impl Into<ConfigName>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Name of the workflow.
    ///
    /// ```
    /// use mainstay::Invocation;
    /// assert_eq!(Invocation::named("double").arg(&4).name(), "double");
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The stored form of the arguments: one object of positional and named ones.
    pub(crate) fn input(self) -> Result<Payload> {
        let Arguments { positional, named } = self.args?;
        codec::envelope(&positional, &named)
    }
}

impl<W: Target> fmt::Debug for Invocation<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation").field("name", &self.name).finish_non_exhaustive()
    }
}
