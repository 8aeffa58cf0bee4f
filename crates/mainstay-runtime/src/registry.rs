//! The functions that a process can run, by name, class and instance.

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use mainstay_env::BoxFuture;
use mainstay_store::{Bounds, ClassName, CodecName, ConfigName, Payload, Registered, WorkflowName, WorkflowRow, wire};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::args::Args;
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::invocation::Invocation;
use crate::workflow::Workflow;

/// An input as it is stored: its text and its codec.
pub(crate) type StoredInput = (Option<Payload>, Option<CodecName>);

/// What identifies a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) name: WorkflowName,
    pub(crate) class: Option<ClassName>,
    pub(crate) instance: Option<ConfigName>,
}

impl Key {
    pub(crate) fn of(row: &WorkflowRow) -> Self {
        Self { name: row.name.clone(), class: row.class.clone(), instance: row.config.clone() }
    }

    /// Whether a row can carry it. Errors: `Refused`.
    pub(crate) fn check(&self) -> Result<()> {
        let bounds = Bounds::default();
        let names = bounds
            .name("workflow.name", self.name.as_str())
            .and_then(|()| bounds.name_if("workflow.class", self.class.as_ref()))
            .and_then(|()| bounds.name_if("workflow.instance", self.instance.as_ref()));
        names.map_err(|error| Error::refused(error.to_string()))?;
        if self.name.as_str().starts_with(wire::RESERVED_PREFIX) {
            let prefix = wire::RESERVED_PREFIX;
            return Err(Error::refused(format!(
                "workflow {self}: names that begin with {prefix} are the engine's own"
            )));
        }
        Ok(())
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(class) = &self.class {
            write!(f, " of class {class}")?;
        }
        match &self.instance {
            Some(instance) => write!(f, " ({instance})"),
            None => Ok(()),
        }
    }
}

/// A body whose types are forgotten: encoded arguments to a value in portable JSON.
pub(crate) type Erased = Arc<dyn Fn(Ctx, StoredInput) -> BoxFuture<'static, Result<Payload>> + Send + Sync>;

/// A workflow to be registered: the function or value, and how its rows are treated.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// # use mainstay::Registration;
/// # #[workflow]
/// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
/// #     Ok(2 * number)
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let engine = Engine::builder(mainstay::memory())
///     .app("shop")
///     .register(Registration::new(double).max_attempts(5))
///     .launch()
///     .await?;
/// assert_eq!(engine.start(double(4)).await?.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub struct Registration {
    pub(crate) key: Key,
    pub(crate) max_attempts: u32,
    pub(crate) body: Erased,
}

impl Registration {
    /// Registers a `#[workflow]` function or a value that implements [`Workflow`].
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # use mainstay::Registration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let engine = Engine::builder(mainstay::memory())
    ///     .app("shop")
    ///     .register(Registration::new(double))
    ///     .launch()
    ///     .await?;
    /// assert_eq!(engine.start(double(4)).await?.result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn new<M>(workflow: impl IntoRegistration<M>) -> Self {
        workflow.registration()
    }

    /// Registers a closure of a context and up to eight arguments under a name.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # use mainstay::Registration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let triple = Registration::function("triple", |_ctx: Ctx, number: u64| async move { Ok(3 * number) });
    /// let engine = Engine::builder(mainstay::memory()).app("shop").register(triple).launch().await?;
    /// assert_eq!(engine.start(Invocation::named("triple").arg(&4)).await?.result().await?, 12);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn function<M>(name: impl Into<WorkflowName>, body: impl WorkflowClosure<M>) -> Self {
        body.registration(name.into())
    }

    /// Sets the name under which rows find it.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # use mainstay::Registration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let old = Registration::new(double).name("twice");
    /// let engine = Engine::builder(mainstay::memory()).app("shop").register(double).register(old).launch().await?;
    /// assert_eq!(engine.start(Invocation::named("twice").arg(&4)).await?.result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn name(mut self, name: impl Into<WorkflowName>) -> Self {
        self.key.name = name.into();
        self
    }

    /// Sets the most executions of one row between two resumes; a row that has had them is set aside by the claim.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # use mainstay::Registration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let none = Registration::new(double).max_attempts(0);
    /// let launch = Engine::builder(mainstay::memory()).app("shop").register(none).launch().await;
    /// assert_eq!(launch.unwrap_err().kind(), ErrorKind::Refused);
    /// let few = Registration::new(double).max_attempts(3);
    /// let engine = Engine::builder(mainstay::memory()).app("shop").register(few).launch().await?;
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn max_attempts(mut self, most: u32) -> Self {
        self.max_attempts = most;
        self
    }

    pub(crate) fn of<W: Workflow>(workflow: W) -> Self {
        let instance = workflow.instance().map(ConfigName::from);
        let key = Key { name: W::NAME.into(), class: W::CLASS.map(ClassName::from), instance };
        let workflow = Arc::new(workflow);
        let body: Erased = Arc::new(move |ctx, input| {
            let workflow = workflow.clone();
            Box::pin(async move {
                let shared = ctx.shared().clone();
                let (input, codec) = shared.input(input)?;
                let args = W::Args::decode(W::PARAMS, input.as_ref(), codec.as_ref())?;
                let value = workflow.run(ctx, args).await?;
                shared.round_trip(|| "the result of the workflow".to_owned(), &value).map(|(payload, _)| payload)
            })
        });
        Self { key, max_attempts: W::MAX_ATTEMPTS, body }
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration")
            .field("key", &self.key)
            .field("max_attempts", &self.max_attempts)
            .finish_non_exhaustive()
    }
}

/// What can be registered: a `#[workflow]` function, a value that implements [`Workflow`], a [`Registration`].
///
/// `M` tells them apart and is always inferred.
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
/// async fn launch<M>(workflow: impl mainstay::IntoRegistration<M>) -> Result<Engine> {
///     Engine::builder(mainstay::memory()).app("shop").register(workflow).launch().await
/// }
/// let engine = launch(double).await?;
/// assert_eq!(engine.start(double(4)).await?.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub trait IntoRegistration<M> {
    /// The workflow type, for what is known of it without a value.
    type Workflow;

    /// Makes the registration.
    #[doc(hidden)]
    fn registration(self) -> Registration;
}

/// Marks a value that is a workflow itself.
#[derive(Debug)]
pub struct Value(PhantomData<()>);

/// Marks a finished registration.
#[derive(Debug)]
pub struct Finished(PhantomData<()>);

impl<W: Workflow> IntoRegistration<Value> for W {
    type Workflow = W;

    fn registration(self) -> Registration {
        Registration::of(self)
    }
}

impl IntoRegistration<Finished> for Registration {
    type Workflow = ();

    fn registration(self) -> Registration {
        self
    }
}

/// A closure that can be registered as a workflow: of a [`Ctx`] and up to eight arguments.
///
/// `M` is always inferred.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// async fn launch<M>(body: impl mainstay::WorkflowClosure<M>) -> Result<Engine> {
///     Engine::builder(mainstay::memory()).app("shop").function("add", body).launch().await
/// }
/// let engine = launch(|_ctx: Ctx, a: u64, b: u64| async move { Ok(a + b) }).await?;
/// assert_eq!(engine.start(Invocation::named("add").arg(&1).arg(&2)).await?.result().await?, 3);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub trait WorkflowClosure<M> {
    /// Makes the registration.
    #[doc(hidden)]
    fn registration(self, name: WorkflowName) -> Registration;
}

macro_rules! functions {
    ($(($($arg:ident),*))*) => {$(
        impl<F, W, $($arg),*> IntoRegistration<fn($($arg),*) -> W> for F
        where
            F: Fn($($arg),*) -> Invocation<W>,
            W: Workflow + Default,
        {
            type Workflow = W;

            fn registration(self) -> Registration {
                Registration::of(W::default())
            }
        }

        #[allow(non_snake_case, reason = "the names of the type parameters name the arguments")]
        impl<F, Fut, T, $($arg),*> WorkflowClosure<fn($($arg),*) -> T> for F
        where
            F: Fn(Ctx, $($arg),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<T>> + Send + 'static,
            T: Serialize + Send + 'static,
            $($arg: Serialize + DeserializeOwned + Send + 'static,)*
        {
            fn registration(self, name: WorkflowName) -> Registration {
                let body = Arc::new(self);
                let erased: Erased = Arc::new(move |ctx, input| {
                    let body = body.clone();
                    Box::pin(async move {
                        let shared = ctx.shared().clone();
                        let (input, codec) = shared.input(input)?;
                        let ($($arg,)*) = <($($arg,)*) as Args>::decode(
                            UNNAMED.get(..count!($($arg)*)).unwrap_or(UNNAMED),
                            input.as_ref(),
                            codec.as_ref(),
                        )?;
                        let value = body(ctx, $($arg),*).await?;
                        shared.encode(&value)
                    })
                });
                let key = Key { name, class: None, instance: None };
                Registration { key, max_attempts: mainstay_store::wire::MAX_ATTEMPTS, body: erased }
            }
        }
    )*};
}

/// Names of a closure's parameters, which nobody can ask for.
const UNNAMED: &[&str] = &["0", "1", "2", "3", "4", "5", "6", "7"];

macro_rules! count {
    () => { 0 };
    ($first:ident $($rest:ident)*) => { 1 + count!($($rest)*) };
}

functions! {
    ()
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, G)
    (A, B, C, D, E, G, H)
    (A, B, C, D, E, G, H, I)
}

/// All registered functions.
#[derive(Default)]
pub(crate) struct Registry {
    entries: BTreeMap<Key, (u32, Erased)>,
}

impl Registry {
    /// Adds one. Errors: `Refused` for one that is there already, a name that no row can have, or a cap of zero.
    pub(crate) fn add(&mut self, registration: Registration) -> Result<()> {
        let Registration { key, max_attempts, body } = registration;
        key.check()?;
        if max_attempts == 0 {
            return Err(Error::refused(format!("workflow {key}: max_attempts is 0, at least 1 is needed")));
        }
        if self.entries.contains_key(&key) {
            return Err(Error::refused(format!("workflow {key} is registered twice")));
        }
        self.entries.insert(key, (max_attempts, body));
        Ok(())
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Erased> {
        self.entries.get(key).map(|(_, body)| body.clone())
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.entries.contains_key(key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.keys()
    }

    /// The functions as a claim names them.
    pub(crate) fn registered(&self) -> Arc<[Registered]> {
        let registered = |(key, (max_attempts, _)): (&Key, &(u32, Erased))| Registered {
            name: key.name.clone(),
            class: key.class.clone(),
            config: key.instance.clone(),
            max_attempts: *max_attempts,
        };
        self.entries.iter().map(registered).collect()
    }
}
