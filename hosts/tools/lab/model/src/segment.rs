//! The time of Unisono's collectives through a shared segment, by LogGP between processes of one machine.
//!
//! A line that one process writes and another reads is a message: M = o_s + L + o_r, f_r = max{o_r, g} between two
//! lines that one process reads. Copying a byte into or out of the segment takes G = t, folding one F. m: bytes, p:
//! processes, φ = min(m, f) the first fragment of f bytes, which travels before anything overlaps.
//!
//! | algorithm | time |
//! |---|---|
//! | barrier `posted` | M + (p − 2)·f_r |
//! | barrier `dissemination`, `doubling`, `central`, `combining-N` | [`crate::barrier`] |
//! | bcast `posted` | M |
//! | bcast `groups` | 2M |
//! | bcast `queue` | M + φt + mt + (⌈m/f⌉ − 1)·f_r |
//! | bcast `cico-TREE` | [`crate::queue`], t_WO = t_A = M, t_W = M on each level of the tree, or M + (p − 2)·f_s where it is flat |
//! | allreduce `posted` | M + (p − 2)·f_r + (p − 1)·mF |
//! | allreduce, scan and exscan `exchange` | X + mt + (p − 1)·mF |
//! | allreduce `slices` | 2X + mt + (p − 1)/p·mF + mt |
//! | scan and exscan `groups` | mt + ⌈log2 p⌉·(M + mt + mF) |
//! | reduce `exchange` | X + mt + (p − 1)·mF |
//! | reduce `slices`, `groups` | 2X + mt + mF + mt |
//! | reduce_scatter | X + mt + (p − 1)/p·mF |
//! | gather, scatter, allgather | X + mt + (p − 1)·mt |
//! | alltoall | X + 2(p − 1)·mt |
//! | `cico` of these | the same and ⌈m/f⌉·M, f the papers' |
//!
//! X = M + (p − 2)·f_r opens an exchange. A message that fits a line is not copied separately. A scan's time is that of
//! its last rank.
//!
//! With more processes than cores, copies and folds of the processes of a core follow one another, and each wait for a
//! line costs every process of the core a turn: M is at least ⌈p/cores⌉ turns.

use crate::ModelError;
use crate::barrier::{Barrier, Logs, depth};
use crate::logp::LogP;
use crate::queue::{Queue, Times};
use unisono_kernel::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
    ReduceScatterAlgorithm, ScanAlgorithm,
};
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::Cico;
use unisono_kernel::shm;
use unisono_kernel::table::{Choice, Collective};

/// A machine, and the segment on it. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    logp: LogP,
    fold: f64,
    turn: f64,
    cores: u32,
    fragment: u64,
    papers: Cico,
}

impl Machine {
    /// `logp` of lines, with G for copies; F per byte folded; the turn of a process that yields; cores; the queue's
    /// fragment and the papers' queues.
    ///
    /// # Errors
    /// A time is negative or absurd; no cores, no bytes in a fragment.
    pub fn new(logp: LogP, fold: f64, turn: f64, cores: u32, fragment: u64, papers: Cico) -> Result<Self, ModelError> {
        ModelError::time("time per byte folded (F)", fold)?;
        ModelError::time("turn of a process", turn)?;
        ModelError::count("cores", cores.into(), 1)?;
        ModelError::count("fragment (f)", fragment, 1)?;
        ModelError::count("fragment (f)", papers.fragment, 1)?;
        Ok(Self { logp, fold, turn, cores, fragment, papers })
    }

    /// A present-day server with so many cores, where nothing was measured: 70 ns for one way of a line, 10 GB/s copied
    /// and folded, a microsecond for the turn of a process; a segment with the default parameters.
    pub const fn typical(cores: u32) -> Self {
        let (logp, cores) = (LogP::TYPICAL, if cores == 0 { 1 } else { cores });
        let papers = Cico::of_bytes(512 << 10);
        Self { logp, fold: 0.1, turn: 1000.0, cores, fragment: 32 << 10, papers }
    }

    /// The machine with measured times: one way of a line, a byte copied, the turn of a process that yields. The parts
    /// of a line's way keep their proportions, and the time of folds changes in proportion to that of copies.
    ///
    /// # Errors
    /// A time is negative or absurd; the time of a line or of a byte is 0.
    pub fn with(self, line: Option<f64>, byte: Option<f64>, turn: Option<f64>) -> Result<Self, ModelError> {
        let (now, t) = (self.logp, self.logp.byte_gap());
        let line = ModelError::positive("a line's way", line.unwrap_or(now.message()))? / now.message();
        let byte = ModelError::positive("time per byte (t)", byte.unwrap_or(t))?;
        let turn = ModelError::time("turn of a process", turn.unwrap_or(self.turn))?;
        let logp = LogP::new(line * now.latency(), line * now.send(), line * now.receive(), line * now.gap())?;
        Ok(Self { logp: logp.with_byte_gap(byte)?, fold: self.fold * (byte / t), turn, ..self })
    }

    /// Predicted nanoseconds; nothing for plans over messages.
    ///
    /// # Errors
    /// The number of processes is 0; an arity is absurd.
    pub fn time(
        &self,
        collective: Collective,
        plan: Choice,
        ranks: u32,
        bytes: u64,
    ) -> Result<Option<f64>, ModelError> {
        ModelError::count("ranks (p)", ranks.into(), 1)?;
        if ranks == 1 {
            return Ok(Some(bytes as f64 * self.copy(1)));
        }
        let logp = self.crowded(ranks)?;
        let (message, next) = (logp.message(), logp.receive_interval());
        let (m, others) = (bytes as f64, f64::from(ranks - 1));
        let (t, fold) = (self.copy(ranks), self.fold * self.sharing(ranks));
        let all = message + (others - 1.0) * next;
        let fragments = bytes.div_ceil(self.papers.fragment) as f64;
        // A message that fits a line is not copied separately.
        let copied = if bytes <= shm::bcast::posted::MOST { 0.0 } else { m };
        Ok(Some(match plan {
            Choice::Messages(_) | Choice::Levels(_) | Choice::Mpi => return Ok(None),
            Choice::Barrier(algorithm) => match algorithm {
                BarrierAlgorithm::Posted => all,
                BarrierAlgorithm::Central => Barrier::Central.time(&logp, ranks, Logs::Rounds)?,
                BarrierAlgorithm::Combining(children) => {
                    Barrier::Combining { children }.time(&logp, ranks, Logs::Rounds)?
                }
                BarrierAlgorithm::Doubling => Barrier::Butterfly.time(&logp, ranks, Logs::Rounds)?,
                _ => Barrier::Dissemination.time(&logp, ranks, Logs::Rounds)?,
            },
            Choice::Bcast(BcastAlgorithm::Posted) => message,
            Choice::Bcast(BcastAlgorithm::Groups) => 2.0 * message,
            Choice::Bcast(BcastAlgorithm::Cico(tree)) => self.papers(&logp, t, tree, ranks, bytes)?,
            Choice::Bcast(_) => {
                let more = bytes.div_ceil(self.fragment).saturating_sub(1) as f64;
                message + bytes.min(self.fragment) as f64 * t + m * t + more * next
            }
            Choice::Allreduce(AllreduceAlgorithm::Posted) => all + others * m * fold,
            Choice::Allreduce(AllreduceAlgorithm::Doubling) => {
                let each = m * fold + 2.0 * copied * t;
                Barrier::Butterfly.time(&logp, ranks, Logs::Rounds)? + f64::from(ranks.ilog2()) * each
            }
            Choice::Allreduce(AllreduceAlgorithm::Slices | AllreduceAlgorithm::Groups) => {
                2.0 * all + 2.0 * m * t + others / f64::from(ranks) * m * fold
            }
            Choice::Allreduce(_) => all + copied * t + others * m * fold,
            Choice::Alltoall(AlltoallAlgorithm::Groups) => {
                2.0 * (all / others.max(1.0) * 8.0_f64.min(others) + others * (copied + m) * t)
            }
            Choice::Alltoall(_) => all + (others * copied + others * m) * t,
            Choice::Reduce(ReduceAlgorithm::Tree) => {
                f64::from(ranks.next_power_of_two().ilog2()) * (message + m * fold)
            }
            Choice::Reduce(ReduceAlgorithm::Slices | ReduceAlgorithm::Groups) => 2.0 * all + 2.0 * m * t + m * fold,
            Choice::Reduce(_) => all + copied * t + others * m * fold,
            Choice::Move(MoveAlgorithm::Groups) => {
                2.0 * (all / others.max(1.0) * 8.0_f64.min(others)) + copied * t + 2.0 * others * m * t
            }
            Choice::Move(algorithm) => {
                let more = if algorithm == MoveAlgorithm::Cico { fragments * message } else { 0.0 };
                all + copied * t + others * m * t + more
            }
            Choice::ReduceScatter(ReduceScatterAlgorithm::Groups) => {
                2.0 * (all / others.max(1.0) * 8.0_f64.min(others)) + copied * t + others / f64::from(ranks) * m * fold
            }
            Choice::ReduceScatter(_) => all + copied * t + others / f64::from(ranks) * m * fold,
            Choice::Scan(ScanAlgorithm::Doubling) => {
                Barrier::Butterfly.time(&logp, ranks, Logs::Rounds)? + 2.0 * f64::from(ranks.ilog2()) * m * fold
            }
            Choice::Scan(ScanAlgorithm::Groups) => {
                copied * t + f64::from(ranks.next_power_of_two().ilog2()) * (message + m * t + m * fold)
            }
            Choice::Scan(_) => all + copied * t + others * m * fold,
            Choice::Exchange => match collective {
                Collective::Alltoallv => all + (others * copied + others * m) * t,
                _ => all + copied * t + others * m * fold,
            },
        }))
    }

    /// Processes of a core, at least one.
    fn sharing(&self, ranks: u32) -> f64 {
        f64::from(ranks.div_ceil(self.cores))
    }

    /// t, where processes of a core copy one after the other.
    fn copy(&self, ranks: u32) -> f64 {
        self.logp.byte_gap() * self.sharing(ranks)
    }

    /// The machine's LogP, where every wait costs turns.
    fn crowded(&self, ranks: u32) -> Result<LogP, ModelError> {
        let (logp, sharing) = (self.logp, self.sharing(ranks));
        if sharing < 2.0 {
            return Ok(logp);
        }
        let latency = logp.latency().max(sharing * self.turn - logp.send() - logp.receive());
        LogP::new(latency, logp.send(), logp.receive(), logp.gap())
    }

    /// Paper P1's broadcast, by its model.
    fn papers(&self, logp: &LogP, t: f64, tree: Tree, ranks: u32, bytes: u64) -> Result<f64, ModelError> {
        let message = logp.message();
        let notice = match tree {
            Tree::Flat => message + f64::from(ranks - 2) * logp.send_interval(),
            Tree::Chain => f64::from(ranks - 1) * message,
            Tree::Kary(k) => f64::from(depth(ranks, k)) * message,
            Tree::Knomial(k) => f64::from(crate::barrier::rounds(ranks, k)) * message,
        };
        let Cico { slots, fragment, sets } = self.papers;
        let times = Times::new(t.max(f64::MIN_POSITIVE), message, message, notice.max(f64::MIN_POSITIVE))?;
        Ok(times.sets(Queue { message: bytes.max(1), fragment, slots: slots.into(), sets: sets.into() })?.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::table::{Ask, BUILT_IN, Over, Site};

    /// M = 5 + 80 + 15 = 100, f_r = max{15, 20} = 20, f_s = 20, t = 0.1, F = 0.2, a turn 1000, 8 cores, f = 1000,
    /// papers: 8 slots of 100 bytes in 2 sets.
    fn machine() -> Machine {
        let logp = LogP::new(80.0, 5.0, 15.0, 20.0).unwrap().with_byte_gap(0.1).unwrap();
        Machine::new(logp, 0.2, 1000.0, 8, 1000, Cico { slots: 8, fragment: 100, sets: 2 }).unwrap()
    }

    fn of(collective: Collective, name: &str, ranks: u32, bytes: u64) -> f64 {
        let plan = Choice::from_name(Over::Segment, collective, name).unwrap();
        machine().time(collective, plan, ranks, bytes).unwrap().unwrap()
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs(), "{a} instead of {b}");
    }

    #[test]
    fn by_hand() {
        close(of(Collective::Barrier, "posted", 4, 0), 140.0); // 100 + 2 · 20
        close(of(Collective::Barrier, "dissemination", 8, 0), 300.0); // 3 · 100
        close(of(Collective::Barrier, "central", 4, 0), 280.0); // 2 · 100 + 2 · (20 + 20)
        close(of(Collective::Bcast, "posted", 8, 100), 100.0);
        close(of(Collective::Bcast, "queue", 4, 3500), 610.0); // 100 + 100 + 350 + 3 · 20
        close(of(Collective::Bcast, "queue", 4, 500), 200.0); // 100 + 50 + 50 + 0
        close(of(Collective::Allreduce, "posted", 4, 40), 164.0); // 140 + 3 · 40 · 0.2
        close(of(Collective::Allreduce, "exchange", 4, 1000), 840.0); // 140 + 100 + 3 · 200
        close(of(Collective::Allreduce, "slices", 4, 1000), 630.0); // 280 + 200 + 3/4 · 200
        close(of(Collective::Reduce, "exchange", 4, 1000), 840.0);
        close(of(Collective::Reduce, "slices", 4, 1000), 680.0); // 280 + 200 + 200
        close(of(Collective::Gather, "exchange", 4, 1000), 540.0); // 140 + 100 + 300
        close(of(Collective::Gather, "cico", 4, 1000), 1540.0); // and 10 · 100
        close(of(Collective::Alltoall, "exchange", 4, 1000), 740.0); // 140 + 300 + 300
        close(of(Collective::ReduceScatter, "exchange", 4, 1000), 390.0); // 140 + 100 + 150
        close(of(Collective::Scan, "exchange", 4, 1000), 840.0);
    }

    /// b/q = 400: 3 uses of a set of 1000 bytes: 3 · (100 + 100) + 100 · 0.1 + 10 · t_W + 100.
    #[test]
    fn the_papers_queue_by_hand() {
        close(of(Collective::Bcast, "cico-flat", 4, 1000), 710.0 + 10.0 * 140.0);
        close(of(Collective::Bcast, "cico-chain", 4, 1000), 710.0 + 10.0 * 300.0);
        close(of(Collective::Bcast, "cico-binary", 4, 1000), 710.0 + 10.0 * 200.0);
        close(of(Collective::Bcast, "cico-binomial", 4, 1000), 710.0 + 10.0 * 200.0);
    }

    /// 16 processes on 8 cores: M = 2 turns, two copies follow one another.
    #[test]
    fn crowded_by_hand() {
        close(of(Collective::Bcast, "posted", 16, 8), 2000.0);
        close(of(Collective::Bcast, "queue", 16, 500), 2000.0 + 100.0 + 100.0);
    }

    #[test]
    fn measured_speeds_by_hand() {
        let fast = machine().with(Some(50.0), Some(0.05), Some(10.0)).unwrap();
        let of = |name, ranks, bytes| {
            let plan = Choice::from_name(Over::Segment, Collective::Allreduce, name).unwrap();
            fast.time(Collective::Allreduce, plan, ranks, bytes).unwrap().unwrap()
        };
        close(of("exchange", 4, 1000), 420.0); // half of 840
        close(of("posted", 16, 0), 50.0 + 14.0 * 10.0); // two turns are less than a line
        assert_eq!(machine().with(None, None, None), Ok(machine()));
        let absurd = machine().with(Some(0.0), None, None).unwrap_err();
        assert_eq!(absurd.to_string(), "a line's way is 0, must be above 0");
    }

    #[test]
    fn every_plan_over_a_segment_has_a_time_and_absurd_machines_are_named() {
        for rule in BUILT_IN {
            let site = Site { papers: true, stages: true, ..Site::flat(5) };
            let ask = Ask { over: rule.plan.over(), collective: rule.collective, bytes: 40, commutative: true, site };
            let time = machine().time(rule.collective, rule.plan, 5, ask.bytes).unwrap();
            assert_eq!(time.is_some_and(|time| time > 0.0), rule.plan.over() == Over::Segment, "{}", rule.plan);
        }
        let papers = Cico { slots: 8, fragment: 100, sets: 2 };
        let of = |fold, turn, cores| Machine::new(LogP::PAPER, fold, turn, cores, 64, papers).unwrap_err().to_string();
        assert_eq!(of(-1.0, 0.0, 1), "time per byte folded (F) is -1, must be at least 0");
        assert_eq!(of(0.0, f64::NAN, 1), "turn of a process is NaN, must be at least 0");
        assert_eq!(of(0.0, 0.0, 0), "cores is 0, must be at least 1");
        let none = machine().time(Collective::Barrier, Choice::Barrier(BarrierAlgorithm::Posted), 0, 0);
        assert_eq!(none.unwrap_err().to_string(), "ranks (p) is 0, must be at least 1");
    }
}
