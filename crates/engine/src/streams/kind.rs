//! A kind of stream as the host runs it: its machine, its effects, and what it has beside the loop.
//!
//! A kind has to say how a stream boots, how its effects are performed, and what is reported of a job that was lost. Every
//! other method is a place where a kind may add rules of its own to the loop; a kind without such rules leaves it out.

use std::future::{Future, pending};
use std::sync::Arc;

use abide_kernel::id::Seq;
use abide_kernel::time::Time;

use crate::core::Outputs;
use crate::machine::Machine;
use crate::streams::{Actor, PendingRequest, Streams};

pub type IdOf<K> = <<K as StreamKind>::Machine as Machine>::Id;
pub type InputOf<K> = <<K as StreamKind>::Machine as Machine>::Input;
pub type FactOf<K> = <<K as StreamKind>::Machine as Machine>::Fact;
pub type EffectOf<K> = <<K as StreamKind>::Machine as Machine>::Effect;
pub type BootOf<K> = <<K as StreamKind>::Machine as Machine>::Boot;

pub trait StreamKind: Sized + Send + Sync + 'static {
    type Machine: Machine;
    /// Data of an actor of this kind beside its state.
    type Local: Send + 'static;
    /// A condition of an input besides the stream itself; see `defer`.
    type Condition: Default + Send + 'static;
    /// Names a job: to end it, and to report it lost.
    type Job: Send + 'static;

    /// Reasons in the wake index for which a new process loads a stream, although it is not due yet.
    const LOADED_AT_START: &'static [&'static str] = &[];

    /// Made before the stream is loaded.
    fn local(&self) -> Self::Local;

    /// The rest of a stream in the world, and the settings.
    fn boot(&self, id: &IdOf<Self>) -> BootOf<Self>;

    /// Does what an effect asks for: starts a job, ends some, or reports at once. What led to it is durable.
    fn perform(actor: &mut Actor<Self>, effect: EffectOf<Self>);

    /// The report of a job that crashed or had nothing to report.
    fn lost(job: Self::Job, why: &str) -> Vec<InputOf<Self>>;

    /// The report of a job that was ended on purpose.
    fn aborted(&self, _: &IdOf<Self>, _: Self::Job) -> Vec<InputOf<Self>> {
        Vec::new()
    }

    /// The stream was loaded, and nothing was admitted yet.
    fn loaded(_: &mut Actor<Self>) {}

    /// Gives back an input that may be admitted now; keeps one whose condition does not allow it yet.
    fn defer(_: &mut Actor<Self>, pending: PendingRequest<Self>) -> Option<PendingRequest<Self>> {
        Some(pending)
    }

    /// Called before the time of a step is read.
    fn before_step(_: &mut Actor<Self>) {}

    /// Called after the time of a step was read. If it says false, nothing is decided until `gate_changed` returns.
    fn may_step(_: &mut Actor<Self>) -> bool {
        true
    }

    /// Returns when `may_step` has to be asked again.
    fn gate_changed(_: &mut Self::Local) -> impl Future<Output = ()> + Send {
        pending()
    }

    /// Whether there is nothing left that `may_step` has to release.
    fn may_rest(_: &Actor<Self>) -> bool {
        true
    }

    /// These outputs are durable, and nobody was told of them yet.
    fn released(_: &mut Actor<Self>, _: &Outputs<Self::Machine>) {}

    /// These facts are durable: told in order, before anybody is answered and anything is performed.
    fn recorded(_: &Streams<Self>, _: &IdOf<Self>, _: Vec<(Seq, Time, FactOf<Self>)>) {}

    /// A commit was refused, and nothing of it happened.
    fn refused(_: &mut Self::Local) {}

    fn hibernated(&self, _: &IdOf<Self>) {}

    /// A stream that could not be loaded is tried again.
    fn retried(&self, _: &IdOf<Self>) {}

    /// The stream can't be loaded, or crashes whenever it is.
    fn failed(&self, _: &IdOf<Self>) {}

    /// Called after `failed` where the records are damaged.
    fn damaged(_: &Arc<Streams<Self>>, _: &IdOf<Self>) {}

    /// A guard that is held while a quarantine is being recorded.
    fn quarantine_guard(&self, _: &IdOf<Self>) -> impl Send + 'static {}

    /// The quarantine of the stream is durable. It has no actor that could perform these effects.
    fn quarantined(_: &Arc<Streams<Self>>, _: &Self::Machine, _: Vec<EffectOf<Self>>) {}
}
