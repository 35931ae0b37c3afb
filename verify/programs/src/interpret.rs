//! One rank's part of a program, on communicators of any transport.
//!
//! Requests live in scopes, which borrow their communicators: a scope is open from a communicator's first request to its
//! last one, inside those that were opened before it.

use crate::memory::{Memory, View};
use crate::program::{Call as Called, Name, Program, Step, Verb};
use std::time::{Duration, Instant};
use unisono_kernel::call::Call;
use unisono_kernel::call::progress::{Among, Progress};
use unisono_kernel::call::scope::{Persistent, Request, Scope};
use unisono_kernel::comm::{Comm, Communicator};
use unisono_kernel::error::Error;
use unisono_kernel::machine::transport::{Transport, Wait};

/// A communicator as programs use it.
pub trait Member: Sized {
    /// The error that ends a program early.
    type Error: From<Error>;

    /// A blocking call, which progresses `others` meanwhile.
    ///
    /// # Errors
    /// As the call.
    fn run(&mut self, call: &Call<'_>, others: &mut [&mut dyn Progress]) -> Result<(), Error>;

    /// Requests on it: the scope's end completes what is active.
    ///
    /// # Errors
    /// As [`Communicator::scope`].
    fn scope<'buf>(&mut self, body: &mut Body<'_, 'buf>) -> Result<(), Error>;

    /// Makes the communicator of this number, by dup or by split; progresses `others` meanwhile.
    ///
    /// # Errors
    /// The communicator can't be made.
    fn make(
        &mut self,
        comm: usize,
        made: Making,
        others: &mut [&mut dyn Progress],
    ) -> Result<Option<Self>, Self::Error>;
}

/// A function that is called with a scope.
pub type Body<'x, 'buf> = dyn FnMut(&mut dyn Requests<'buf>) -> Result<(), Error> + 'x;

/// How a communicator is made from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// By dup, with the same ranks.
    Dup,
    /// By split, with color and key.
    Split(Option<u32>, i64),
}

/// A scope whose communicator is of any transport.
pub trait Requests<'buf>: Progress {
    /// [`Scope::start`].
    ///
    /// # Errors
    /// As there.
    fn start(&mut self, call: Call<'buf>) -> Result<Request, Error>;
    /// [`Scope::init`].
    ///
    /// # Errors
    /// As there.
    fn init(&mut self, call: Call<'buf>) -> Result<Persistent, Error>;
    /// [`Scope::restart`].
    ///
    /// # Errors
    /// As there.
    fn restart(&mut self, persistent: Persistent) -> Result<Request, Error>;
    /// [`Scope::test`].
    ///
    /// # Errors
    /// As there.
    fn test(&mut self, request: Request) -> Result<bool, Error>;
    /// [`Scope::wait_among`].
    ///
    /// # Errors
    /// As there.
    fn wait_among(&mut self, request: Request, others: &mut [&mut dyn Progress]) -> Result<(), Error>;
    /// [`Scope::free`].
    ///
    /// # Errors
    /// As there.
    fn free(&mut self, persistent: Persistent) -> Result<(), Error>;
}

impl<'buf, T: Transport> Requests<'buf> for Scope<'_, 'buf, T>
where
    T::Wait: Wait<Comm<T::Region>> + for<'x> Wait<Among<'x, Comm<T::Region>>>,
{
    fn start(&mut self, call: Call<'buf>) -> Result<Request, Error> {
        self.start(call)
    }

    fn init(&mut self, call: Call<'buf>) -> Result<Persistent, Error> {
        self.init(call)
    }

    fn restart(&mut self, persistent: Persistent) -> Result<Request, Error> {
        self.restart(persistent)
    }

    fn test(&mut self, request: Request) -> Result<bool, Error> {
        self.test(request)
    }

    fn wait_among(&mut self, request: Request, others: &mut [&mut dyn Progress]) -> Result<(), Error> {
        self.wait_among(request, others)
    }

    fn free(&mut self, persistent: Persistent) -> Result<(), Error> {
        self.free(persistent)
    }
}

/// [`Member::scope`] of a communicator.
///
/// # Errors
/// As [`Communicator::scope`].
pub fn scope<'buf, T: Transport>(c: &mut Communicator<T>, body: &mut Body<'_, 'buf>) -> Result<(), Error>
where
    T::Wait: Wait<Comm<T::Region>> + for<'x> Wait<Among<'x, Comm<T::Region>>>,
{
    c.scope(|scope: &mut Scope<'_, 'buf, T>| body(scope))
}

/// [`Member::run`] of a communicator.
///
/// # Errors
/// As [`Communicator::run`].
pub fn run<T: Transport>(
    c: &mut Communicator<T>,
    call: &Call<'_>,
    others: &mut [&mut dyn Progress],
) -> Result<(), Error>
where
    T::Wait: Wait<Comm<T::Region>> + for<'x> Wait<Among<'x, Comm<T::Region>>>,
{
    // Most calls have nothing else to move.
    if others.is_empty() { c.run(call).map(drop) } else { c.run_among(call, others) }
}

/// The rank's host, apart from its communicators.
pub trait Host {
    /// Kills the rank: returns, if at all, when the program has ended.
    fn kill(&mut self);

    /// Is the time up? A rank that tests again and again asks this.
    fn late(&mut self) -> bool;

    /// Lets other ranks go on, between two looks.
    fn yields(&mut self) {
        std::thread::yield_now();
    }

    /// Pauses as the verb says.
    fn pause(&mut self, verb: Verb, pause: Duration) {
        wait_out(verb, pause);
    }

    /// A step begins.
    fn step(&mut self, _number: usize) {}
}

/// Sleeps, or computes, for so long.
pub fn wait_out(verb: Verb, pause: Duration) {
    if verb == Verb::Sleep {
        return std::thread::sleep(pause);
    }
    let begin = Instant::now();
    while begin.elapsed() < pause {
        std::hint::spin_loop();
    }
}

/// The end of a rank's program.
#[derive(Debug)]
pub enum End<E> {
    /// It made its last step.
    Done,
    /// It was killed.
    Killed,
    /// It tested for so long that it gave up.
    Late,
    /// It did not start: the program does not [fit scopes](Program::fits_scopes).
    Unfit(String),
    /// A call returned an error.
    Failed(E),
}

/// A rank's report of a program.
#[derive(Debug)]
pub struct Told<E> {
    /// The end.
    pub end: End<E>,
    /// The step at which it ended.
    pub at: usize,
    /// The wrong results.
    pub wrong: Vec<String>,
}

/// Runs a rank's part of a legal program, on the communicator of all ranks and those that it makes.
pub fn interpret<M: Member>(program: &Program, rank: u32, world: M, host: &mut dyn Host) -> Told<M::Error> {
    if let Err(why) = program.fits_scopes() {
        return Told { end: End::Unfit(why), at: usize::MAX, wrong: Vec::new() };
    }
    let groups = program.groups();
    let memories = Memory::all(program, &groups, rank);
    let views: Vec<_> = memories.iter().map(|memory| memory.as_ref().map(View::new)).collect();
    let mut comms: Vec<Option<M>> = groups.iter().map(|_| None).collect();
    comms[0] = Some(world);
    let states = program.calls.iter().map(|_| State::default()).collect();
    let steps = program.steps_of(&groups, rank).map(|(at, _)| at).collect();
    let mut walk = Walk {
        program,
        groups: &groups,
        rank,
        views: &views,
        steps,
        at: 0,
        requests: vec![0; comms.len()],
        comms,
        states,
        wrong: Vec::new(),
        host,
    };
    let result = walk.go(&mut []);
    let at = walk.steps.get(walk.at).copied().unwrap_or(program.steps.len());
    let end = match result {
        Ok(()) => End::Done,
        Err(Stop::Killed) => End::Killed,
        Err(Stop::Late) => End::Late,
        Err(Stop::Failed(error)) => End::Failed(error),
    };
    Told { end, at, wrong: walk.wrong }
}

/// Why a rank stops its steps.
enum Stop<E> {
    Killed,
    Late,
    Failed(E),
}

impl<E: From<Error>> From<Error> for Stop<E> {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A call of this rank.
#[derive(Debug, Default)]
struct State {
    /// Starts so far.
    rounds: u32,
    request: Option<Request>,
    persistent: Option<Persistent>,
}

type Open<'x, 'buf> = [(usize, &'x mut dyn Requests<'buf>)];

struct Walk<'x, 'buf, M> {
    program: &'x Program,
    groups: &'x [Vec<u32>],
    rank: u32,
    views: &'buf [Option<View<'buf>>],
    steps: Vec<usize>,
    /// The number of the next step.
    at: usize,
    comms: Vec<Option<M>>,
    /// Requests of each communicator.
    requests: Vec<usize>,
    states: Vec<State>,
    wrong: Vec<String>,
    host: &'x mut dyn Host,
}

impl<'buf, M: Member> Walk<'_, 'buf, M> {
    /// Makes steps until the innermost scope is no longer needed.
    fn go(&mut self, open: &mut Open<'_, 'buf>) -> Result<(), Stop<M::Error>> {
        let innermost = open.last().map(|scope| scope.0);
        let mut used = false;
        while let Some(&number) = self.steps.get(self.at) {
            if let Some(comm) = innermost
                && std::mem::replace(&mut used, true)
                && self.requests[comm] == 0
            {
                return Ok(());
            }
            let step = &self.program.steps[number];
            self.host.step(number);
            if matches!(step.verb, Verb::Start | Verb::Init) {
                let comm = self.program.calls[step.numbers[0] as usize].comm;
                if !open.iter().any(|scope| scope.0 == comm) {
                    self.open(open, comm)?;
                    continue;
                }
            }
            self.step(open, step)?;
            self.at += 1;
        }
        Ok(())
    }

    /// Goes on with the steps in a scope of one more communicator.
    fn open(&mut self, open: &mut Open<'_, 'buf>, comm: usize) -> Result<(), Stop<M::Error>> {
        let Some(mut communicator) = self.comms[comm].take() else { return Ok(()) };
        let mut result = Ok(());
        let ended = communicator.scope(&mut |scope| {
            let mut inner: Vec<(usize, &mut dyn Requests<'buf>)> =
                open.iter_mut().map(|(comm, scope)| (*comm, &mut **scope as &mut dyn Requests<'buf>)).collect();
            inner.push((comm, scope));
            result = self.go(&mut inner);
            Ok(())
        });
        self.comms[comm] = Some(communicator);
        result?;
        Ok(ended?)
    }

    fn step(&mut self, open: &mut Open<'_, 'buf>, step: &Step) -> Result<(), Stop<M::Error>> {
        let number = step.numbers[0] as usize;
        let pause = Duration::from_micros(step.numbers[0]);
        match step.verb {
            Verb::Run if self.program.calls[number].name.manages() => self.manage(open, number)?,
            Verb::Run => self.run(open, number)?,
            Verb::Start | Verb::Init => self.start(open, number, step.verb)?,
            Verb::Test => {
                self.test(open, number)?;
            }
            Verb::Poll => {
                while !self.test(open, number)? {
                    if self.host.late() {
                        return Err(Stop::Late);
                    }
                    open.iter_mut().for_each(|(_, scope)| scope.progress());
                    self.host.yields();
                }
                self.complete(number);
            }
            Verb::Wait | Verb::WaitAll => {
                for &number in &step.numbers {
                    self.wait(open, number as usize)?;
                }
            }
            Verb::Free => {
                let comm = self.program.calls[number].comm;
                if let (Some(persistent), Some((_, scope))) =
                    (self.states[number].persistent.take(), open.iter_mut().find(|scope| scope.0 == comm))
                {
                    scope.free(persistent)?;
                    self.requests[comm] -= 1;
                }
            }
            Verb::Sleep | Verb::Spin => self.host.pause(step.verb, pause),
            Verb::Kill => {
                self.host.kill();
                return Err(Stop::Killed);
            }
        }
        Ok(())
    }

    fn view(&self, number: usize) -> Option<&'buf View<'buf>> {
        self.views[number].as_ref()
    }

    /// The call of a view, filled for its next round.
    fn next(&mut self, view: &'buf View<'buf>, number: usize) -> Result<Call<'buf>, Error> {
        view.memory().fill(self.states[number].rounds);
        self.states[number].rounds += 1;
        view.call().map_err(Error::Refused)
    }

    fn run(&mut self, open: &mut Open<'_, 'buf>, number: usize) -> Result<(), Stop<M::Error>> {
        let Some(view) = self.view(number) else { return Ok(()) };
        let comm = self.program.calls[number].comm;
        let call = self.next(view, number)?;
        if let Some((_, scope)) = open.iter_mut().find(|scope| scope.0 == comm) {
            self.states[number].request = Some(scope.start(call)?);
            self.requests[comm] += 1;
            return self.wait(open, number);
        }
        if let Some(communicator) = &mut self.comms[comm] {
            let mut others: Vec<&mut dyn Progress> = open.iter_mut().map(|(_, scope)| &mut **scope as _).collect();
            communicator.run(&call, &mut others)?;
        }
        self.look(number);
        Ok(())
    }

    fn start(&mut self, open: &mut Open<'_, 'buf>, number: usize, verb: Verb) -> Result<(), Stop<M::Error>> {
        let Some(view) = self.view(number) else { return Ok(()) };
        let comm = self.program.calls[number].comm;
        let Some((_, scope)) = open.iter_mut().find(|scope| scope.0 == comm) else { return Ok(()) };
        if verb == Verb::Init {
            self.states[number].persistent = Some(scope.init(view.call().map_err(Error::Refused)?)?);
            self.requests[comm] += 1;
        } else if let Some(persistent) = self.states[number].persistent {
            self.next(view, number)?;
            self.states[number].request = Some(scope.restart(persistent)?);
        } else {
            let call = self.next(view, number)?;
            self.states[number].request = Some(scope.start(call)?);
            self.requests[comm] += 1;
        }
        Ok(())
    }

    fn test(&mut self, open: &mut Open<'_, 'buf>, number: usize) -> Result<bool, Error> {
        let comm = self.program.calls[number].comm;
        match (self.states[number].request, open.iter_mut().find(|scope| scope.0 == comm)) {
            (Some(request), Some((_, scope))) => scope.test(request),
            _ => Ok(true),
        }
    }

    /// Waits for a request, and moves those of other communicators.
    fn wait(&mut self, open: &mut Open<'_, 'buf>, number: usize) -> Result<(), Stop<M::Error>> {
        let comm = self.program.calls[number].comm;
        let Some(request) = self.states[number].request else { return Ok(()) };
        let (mut others, mut own) = (Vec::<&mut dyn Progress>::new(), None);
        for (of, scope) in open.iter_mut() {
            if *of == comm {
                own = Some(scope);
            } else {
                others.push(&mut **scope);
            }
        }
        if let Some(scope) = own {
            scope.wait_among(request, &mut others)?;
        }
        self.complete(number);
        Ok(())
    }

    fn complete(&mut self, number: usize) {
        let state = &mut self.states[number];
        if state.request.take().is_some() {
            if state.persistent.is_none() {
                self.requests[self.program.calls[number].comm] -= 1;
            }
            self.look(number);
        }
    }

    fn look(&mut self, number: usize) {
        let (view, round) = (self.view(number), self.states[number].rounds.saturating_sub(1));
        self.wrong.extend(view.and_then(|view| view.memory().wrong(round)));
    }

    fn manage(&mut self, open: &mut Open<'_, 'buf>, number: usize) -> Result<(), Stop<M::Error>> {
        let call: &Called = &self.program.calls[number];
        let place = self.groups[call.comm].iter().position(|&member| member == self.rank).unwrap_or(0);
        if call.name == Name::Free {
            // No scope of it is open.
            self.comms[call.comm] = None;
            return Ok(());
        }
        let (color, making) = match call.name {
            Name::Dup => (call.numbers[0], Making::Dup),
            _ => {
                let (color, key) = (call.numbers[2 * place], call.numbers[2 * place + 1]);
                (color, Making::Split(u32::try_from(color).ok(), key))
            }
        };
        let Some(parent) = &mut self.comms[call.comm] else { return Ok(()) };
        let mut others: Vec<&mut dyn Progress> = open.iter_mut().map(|(_, scope)| &mut **scope as _).collect();
        let comm = usize::try_from(color).unwrap_or(usize::MAX);
        let made = parent.make(comm, making, &mut others).map_err(Stop::Failed)?;
        if let (Ok(color), Some(made)) = (usize::try_from(color), made) {
            self.comms[color] = Some(made);
        }
        Ok(())
    }
}
