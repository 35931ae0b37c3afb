//! Calls that wait for their turn: those that were started run one after the other, in the order in which all ranks make them,
//! whenever somebody moves them.

use super::folds::ReduceScatter;
use super::{Called, Communicator, Waiting, ended};
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use unisono_c::error::Failure;
use unisono_kernel::error::{Cause, Error};
use unisono_kernel::hier::Call;
use unisono_kernel::region::{Counter, Word};

/// What a function in C asks for. Buffers and lists stay valid until it has ended.
pub(super) enum Task {
    Call(Call<'static>),
    ReduceScatter(ReduceScatter),
    /// This rank's call has failed already.
    Failed(Failure),
}

impl Task {
    /// # Safety
    /// As [`Communicator::run`], or [`Communicator::start`].
    async unsafe fn run(self, communicator: &mut Communicator, waits: bool) -> Called {
        match self {
            // SAFETY: the caller's promise.
            Self::Call(call) => ended(unsafe { run(communicator, call, waits) }.await),
            // SAFETY: the caller's promise.
            Self::ReduceScatter(call) => unsafe { call.run(communicator, waits) }.await,
            Self::Failed(failure) => Err(failure),
        }
    }
}

/// # Safety
/// As [`Communicator::run`], or [`Communicator::start`].
pub(super) async unsafe fn run(communicator: &mut Communicator, call: Call<'_>, waits: bool) -> Result<(), Error> {
    match waits {
        // SAFETY: the caller's promise.
        true => unsafe { communicator.run(call) },
        // SAFETY: the caller's promise.
        false => unsafe { communicator.start(call) }.await,
    }
}

/// Runs a task; all ranks are told why it fails, if it was never asked of the communicator.
///
/// # Safety
/// As [`Communicator::run`], or [`Communicator::start`].
async unsafe fn perform(communicator: &mut Communicator, over_switches: &Word, task: Task, waits: bool) -> Called {
    let before = communicator.over_levels();
    // SAFETY: the caller's promise.
    let result = unsafe { task.run(communicator, waits) }.await;
    if communicator.over_levels() > before {
        over_switches.fetch_add(1);
    }
    match &result {
        Err(Failure::Refused(refusal)) => {
            communicator.refuse(*refusal);
        }
        // The others must not wait for this rank.
        Err(Failure::Memory) if communicator.failure().is_none() => communicator.poison(Cause::Died),
        _ => {}
    }
    result
}

/// How a call has ended; `None`: it has not, or that was told.
type End = Arc<Mutex<Option<Called>>>;

type Running = Pin<Box<dyn Future<Output = (Box<Communicator>, Called)>>>;

/// The communicator, and the calls that were started on it.
pub(super) struct Calls {
    /// `None`: the call that runs has it.
    communicator: Option<Box<Communicator>>,
    running: Option<(Running, End)>,
    waiting: VecDeque<(Task, End)>,
    over_switches: Arc<Word>,
    reported: bool,
}

// SAFETY: one thread at a time uses it. The buffers of a call may be used by any thread that makes or moves it, as MPI's callers promise.
unsafe impl Send for Calls {}

impl Calls {
    pub(super) fn new(communicator: Communicator, over_switches: Arc<Word>) -> Self {
        Self {
            communicator: Some(Box::new(communicator)),
            running: None,
            waiting: VecDeque::new(),
            over_switches,
            reported: false,
        }
    }

    /// Puts a call behind those that were started.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn start(&mut self, task: Task) -> Result<End, Failure> {
        self.waiting.try_reserve(1).map_err(|_| Failure::Memory)?;
        let end = End::default();
        self.waiting.push_back((task, Arc::clone(&end)));
        Ok(end)
    }

    /// Tells all ranks, when those that were started have ended, that this one can't take part any more.
    pub(super) fn report(&mut self) {
        if !self.reported {
            self.reported = self.start(Task::Failed(Failure::Memory)).is_ok();
        }
        self.advance();
    }

    /// Moves those that were started as far as they go. Have all ended?
    pub(super) fn advance(&mut self) -> bool {
        loop {
            if let Some((running, end)) = &mut self.running {
                let Poll::Ready((communicator, result)) = poll(running.as_mut()) else { return false };
                set(end, result);
                (self.communicator, self.running) = (Some(communicator), None);
            }
            let Some((task, end)) = self.waiting.pop_front() else { return true };
            let Some(mut communicator) = self.communicator.take() else { return false };
            let over_switches = Arc::clone(&self.over_switches);
            let running = async move {
                // SAFETY: who made the task has promised it; what was begun is polled until it is ready, or kept.
                let result = unsafe { perform(&mut communicator, &over_switches, task, false) }.await;
                (communicator, result)
            };
            self.running = Some((Box::pin(running), end));
        }
    }

    /// Runs a call, after those that were started.
    ///
    /// # Safety
    /// As [`Communicator::run`].
    pub(super) unsafe fn run(&mut self, task: Task, waiting: &Waiting) -> Called {
        while !self.advance() {
            waiting.pause();
        }
        let Self { communicator, over_switches, .. } = self;
        let communicator = communicator.as_deref_mut().ok_or(Failure::Busy)?;
        // SAFETY: the caller's promise.
        let mut running = pin!(unsafe { perform(communicator, over_switches, task, true) });
        loop {
            // What waits inside is never pending.
            if let Poll::Ready(result) = poll(running.as_mut()) {
                return result;
            }
        }
    }

    /// The communicator, unless a call has it: then that is kept for ever, since messages may use its memory.
    pub(super) fn into_communicator(self) -> Option<Box<Communicator>> {
        let Self { communicator, running, .. } = self;
        core::mem::forget(running);
        communicator
    }

    #[cfg(test)]
    pub(super) fn communicator(&mut self) -> &mut Communicator {
        assert!(self.advance(), "a call has it");
        self.communicator.as_deref_mut().unwrap()
    }
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn set(end: &End, result: Called) {
    *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
}

/// How a call has ended, told once.
pub(super) fn take(end: &End) -> Option<Called> {
    end.lock().unwrap_or_else(PoisonError::into_inner).take()
}
