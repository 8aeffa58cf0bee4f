//! Calls of workflows: which function, with which arguments.

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
pub trait Target: 'static {
    /// What the workflow returns.
    type Output: DeserializeOwned + Send + 'static;
}

impl<W: Workflow> Target for W {
    type Output = W::Output;
}

/// A workflow that this program knows by name alone; `T` is what it returns.
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
pub struct Invocation<W: Target> {
    pub(crate) name: WorkflowName,
    pub(crate) class: Option<ClassName>,
    pub(crate) instance: Option<ConfigName>,
    args: Result<Vec<Box<RawValue>>>,
    target: PhantomData<fn() -> W>,
}

impl<W: Workflow> Invocation<W> {
    /// A call of `W`. Arguments that cannot be encoded are reported when it is started.
    #[must_use]
    pub fn of(args: W::Args) -> Self {
        Self {
            name: W::NAME.into(),
            class: W::CLASS.map(ClassName::from),
            instance: None,
            args: args.encode(W::PARAMS),
            target: PhantomData,
        }
    }
}

impl Invocation<Named> {
    /// A call of a workflow by its name, for one that this program does not know; its result is a JSON value.
    #[must_use]
    pub fn named(name: impl Into<WorkflowName>) -> Self {
        Self { name: name.into(), class: None, instance: None, args: Ok(Vec::new()), target: PhantomData }
    }
}

impl<T: DeserializeOwned + Send + 'static> Invocation<Named<T>> {
    /// Adds the next argument.
    #[must_use]
    pub fn arg<A: Serialize + ?Sized>(mut self, value: &A) -> Self {
        if let Ok(args) = &mut self.args {
            match codec::encode_raw(value) {
                Ok(raw) => args.push(raw),
                Err(error) => self.args = Err(Error::bad_input(format!("argument {}: {error}", args.len()))),
            }
        }
        self
    }

    /// Says what the workflow returns.
    #[must_use]
    pub fn returning<U: DeserializeOwned + Send + 'static>(self) -> Invocation<Named<U>> {
        let Self { name, class, instance, args, .. } = self;
        Invocation { name, class, instance, args, target: PhantomData }
    }

    /// Names the class under which the workflow is registered.
    #[must_use]
    pub fn class(mut self, class: impl Into<ClassName>) -> Self {
        self.class = Some(class.into());
        self
    }
}

impl<W: Target> Invocation<W> {
    /// Calls a configured instance of the class.
    #[must_use]
    pub fn instance(mut self, instance: impl Into<ConfigName>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Name of the workflow.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The stored form of the arguments: one object of positional and named ones.
    pub(crate) fn input(self) -> Result<Payload> {
        codec::envelope(&self.args?)
    }
}

impl<W: Target> fmt::Debug for Invocation<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation").field("name", &self.name).finish_non_exhaustive()
    }
}
