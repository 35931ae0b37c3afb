//! The text of a program: one line per call, then one line per step. Words and decimal numbers, separated by spaces; `#` begins a
//! comment, empty lines are ignored. Lines come in this order: `ranks`, `seed`, `segment`s, `call`s with
//! their `type`s, steps.
//!
//! ```text
//! ranks N
//! seed N                      0 … 2³² − 1
//! segment LINES SLOTS FRAGMENT PAPERSLOTS PAPERFRAGMENT PAPERSETS OPERATION CLOCK SETS CENTRALS
//! call NUMBER COMM NAME ALGORITHM ROOT INPLACE OP ELEMENT ORDER COUNT...
//! type NUMBER RANK SIDE KIND BLOCK GAP
//! WHO VERB NUMBER...
//! ```
//!
//! **segment** — the parameters of the memory of communicator 0, 1, … (the last line also for all further ones), and
//! the counts at which it begins (`PAPERSLOTS` 0: no queues of the papers). Runners that can't choose it ignore it.
//! Between processes it holds for communicator 0 alone: those that are made have their own memory, whose counts begin
//! at the same values, except for central barriers.
//!
//! **call** — call 0, 1, 2, … in this order, on communicator COMM (0: all ranks). ROOT and, below, RANK are ranks of the communicator.
//! NAME is one of the seventeen collectives as in MPI (`barrier` … `reduce_scatter_block`, `scan`, `exscan`), or `dup`,
//! `split`, `free`. ALGORITHM is `auto`, or one that the program `unisono` knows, for runners that can choose. INPLACE 1:
//! MPI_IN_PLACE is given for the send side (scatter, scatterv: the receive side) — of rooted calls at the root alone. OP is `none`
//! where nothing is folded, `sum8` (u8), `sum64`, `xor64`, `max64` (u64, in the machine's order), all predefined; or a user's: `add`, which adds byte by byte,
//! wrapping, and commutes, or `affine`, which does not: for each pair of bytes of an element, from its start, (l0, l1) ∘ (r0, r1) =
//! (l0·r0, l0·r1 + l1) modulo 256, and a last odd byte is added. ELEMENT is the number of bytes of an element (of a user's operation 1 … 4096, opaque).
//! COUNTs are elements:
//!
//! | name | numbers |
//! |---|---|
//! | barrier, free | none |
//! | bcast, gather, scatter, allgather, alltoall, reduce, allreduce, reduce_scatter_block, scan, exscan | 1: of a block, or of the operand; of reduce_scatter_block, of the result |
//! | gatherv, allgatherv | one for each rank: the elements that it sends |
//! | scatterv, reduce_scatter | one for each rank: the elements that it receives |
//! | alltoallv, alltoallw | size · size, row by row: number i·size + j is the count that rank i sends to rank j |
//! | dup | 1: the number of the communicator that it makes |
//! | split | color and key of each rank of COMM; the color is the number of the communicator that it makes, -1: none |
//!
//! ORDER says where blocks lie that have a length each (gatherv, scatterv, allgatherv, alltoallv, alltoallw): 0: in
//! rank order, one after the other; 1: in reverse rank order, one element's extent between two blocks, also beside
//! empty ones; 2: as 0 on even ranks, as 1 on odd ones. Everything else lies in rank order without gaps.
//!
//! **type** — the element's datatype in the buffer of RANK, SIDE 0 (send) or 1 (receive), of a call that folds nothing; without such a line
//! KIND is 0. A bcast has one buffer, SIDE 0. In place, the only buffer belongs to its own side. In alltoallw it is the
//! type of blocks from and to even ranks; those of odd ones are of KIND 0. E is ELEMENT:
//!
//! | KIND | packed bytes of an element lie | extent |
//! |---|---|---|
//! | 0 | in a row (contiguous) | E |
//! | 1 | in E/BLOCK blocks of BLOCK bytes, GAP bytes between two (vector) | (E/BLOCK − 1)·(BLOCK + GAP) + BLOCK |
//! | 2 | in the same blocks, the first one last: block i at (E/BLOCK − 1 − i)·(BLOCK + GAP) (indexed block) | the same |
//! | 3 | the first BLOCK bytes at E − BLOCK + GAP, the other E − BLOCK at 0 (struct, resized) | E + 2·GAP |
//!
//! **steps** — WHO is a rank of the whole program, or `*`: all ranks of the call's communicator, for `sleep` and `spin` all. Each rank makes its steps in
//! the order of the lines. VERB:
//!
//! | verb | number | |
//! |---|---|---|
//! | run | call | the blocking call |
//! | start | call | starts the nonblocking call; if the call was initialised by `init`, starts it |
//! | init | call | initialises the persistent call |
//! | test | call | tests once; the result is ignored |
//! | poll | call | tests until it is complete |
//! | wait | call | waits for it |
//! | waitall | calls | waits for all of them at once |
//! | free | call | frees the persistent request |
//! | sleep, spin | microseconds | sleeps, or computes |
//! | kill | 0 | this rank is killed (SIGKILL): the others must end, in time, with results that are right or an error |
//!
//! A call that a test found complete is not waited for again: `wait` then does nothing. [`fill`](crate::fill) has the
//! data that each call sends and must receive. A communicator may have requests of its own when others are made from
//! it, and when it is freed, which they outlive; a runner whose requests borrow their communicators refuses that
//! program ([`Program::fits_scopes`]).

use crate::program::{Call, Name, Op, Program, Segment, Shape, Side, Step, Verb};
use std::fmt;

/// The most ranks of a program.
pub const RANKS: u32 = 4096;

/// The error of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The line, from 1; 0: all can be read, but the program is not legal.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "not legal: {}", self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

impl std::error::Error for Wrong {}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ranks {}\nseed {}", self.ranks, self.seed)?;
        for Segment { lines, slots, fragment, papers, base } in &self.segments {
            let (paper_slots, paper_fragment, sets) = papers.unwrap_or_default();
            write!(f, "segment {lines} {slots} {fragment} {paper_slots} {paper_fragment} {sets}")?;
            list(f, base)?;
        }
        for (number, call) in self.calls.iter().enumerate() {
            let Call { comm, name, algorithm, root, in_place, op, element, order, numbers, shapes } = call;
            let (name, op, in_place) = (name.name(), op.name(), u8::from(*in_place));
            write!(f, "call {number} {comm} {name} {algorithm} {root} {in_place} {op} {element} {order}")?;
            list(f, numbers)?;
            for (rank, side, shape) in shapes {
                write!(f, "type {number} {rank} {}", *side as u8)?;
                list(f, &shape.numbers())?;
            }
        }
        for Step { who, verb, numbers } in &self.steps {
            match who {
                Some(who) => write!(f, "{who} {}", verb.name())?,
                None => write!(f, "* {}", verb.name())?,
            }
            list(f, numbers)?;
        }
        Ok(())
    }
}

fn list(f: &mut fmt::Formatter<'_>, numbers: &[impl fmt::Display]) -> fmt::Result {
    numbers.iter().try_for_each(|number| write!(f, " {number}"))?;
    writeln!(f)
}

/// The words of a line.
struct Words<'a>(std::str::SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    fn word(&mut self, what: &str) -> Result<&'a str, String> {
        self.0.next().ok_or_else(|| format!("no {what}"))
    }

    fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<N, String> {
        number(self.word(what)?, what)
    }

    fn numbers<N: std::str::FromStr>(&mut self, what: &str) -> Result<Vec<N>, String> {
        self.0.by_ref().map(|word| number(word, what)).collect()
    }

    fn named<N>(&mut self, what: &str, from: fn(&str) -> Option<N>) -> Result<N, String> {
        let name = self.word(what)?;
        from(name).ok_or_else(|| format!("{what} \"{name}\" does not exist"))
    }
}

fn number<N: std::str::FromStr>(word: &str, what: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("{what} \"{word}\" is not a number that fits"))
}

impl Program {
    /// Reads a program, and checks that it is [legal](Self::check).
    ///
    /// # Errors
    /// The first line that can't be read, or what is not legal.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let mut program = Self::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("");
            let mut words = Words(line.split_ascii_whitespace());
            let Some(first) = words.0.next() else { continue };
            let read = program.line(first, &mut words).and_then(|()| match words.0.next() {
                None => Ok(()),
                Some(word) => Err(format!("\"{word}\" is one word too many")),
            });
            read.map_err(|what| Wrong { line: at + 1, what })?;
        }
        program.check().map_err(|what| Wrong { line: 0, what })?;
        Ok(program)
    }

    fn line(&mut self, first: &str, words: &mut Words<'_>) -> Result<(), String> {
        match first {
            "ranks" => self.ranks = words.number("number of ranks")?,
            "seed" => self.seed = words.number("seed")?,
            "segment" => {
                let (lines, slots) = (words.number("number of lines")?, words.number("number of slots")?);
                let fragment = words.number("fragment")?;
                let papers = (words.number("slots")?, words.number("fragment")?, words.number("sets")?);
                let mut base = [0; 4];
                for count in &mut base {
                    *count = words.number("base")?;
                }
                let papers = (papers.0 > 0).then_some(papers);
                self.segments.push(Segment { lines, slots, fragment, papers, base });
            }
            "call" => {
                let at: usize = words.number("number of the call")?;
                if at != self.calls.len() {
                    return Err(format!("call {at}, must be {}", self.calls.len()));
                }
                let comm = words.number("communicator")?;
                let name = words.named("collective", Name::from_name)?;
                let algorithm = words.word("algorithm")?.to_owned();
                let (root, in_place): (_, u8) = (words.number("root")?, words.number("in place")?);
                let op = words.named("operation", Op::from_name)?;
                let (element, order) = (words.number("element")?, words.number("order")?);
                let (in_place, numbers) = (in_place != 0, words.numbers("count")?);
                let shapes = Vec::new();
                self.calls.push(Call { comm, name, algorithm, root, in_place, op, element, order, numbers, shapes });
            }
            "type" => {
                let at: usize = words.number("number of the call")?;
                let rank = words.number("rank")?;
                let side = match words.number::<u8>("side")? {
                    0 => Side::Send,
                    1 => Side::Receive,
                    side => return Err(format!("side {side}, must be 0 or 1")),
                };
                let numbers = [words.number("kind")?, words.number("block")?, words.number("gap")?];
                let shape =
                    Shape::from_numbers(numbers).ok_or_else(|| format!("kind {}, must be at most 3", numbers[0]))?;
                let call = self.calls.get_mut(at).ok_or_else(|| format!("call {at} does not exist"))?;
                call.shapes.push((rank, side, shape));
            }
            who => {
                let who = if who == "*" { None } else { Some(number(who, "rank")?) };
                let verb = words.named("verb", Verb::from_name)?;
                self.steps.push(Step { who, verb, numbers: words.numbers("number")? });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ranks 3
seed 4294967295
segment 4 2 256 0 0 0 16777215 65535 0 1
segment 8 4 512 8 1024 2 0 0 0 0
call 0 0 split auto 0 0 none 1 0 1 1 -1 0 1 0
call 1 1 alltoallv auto 0 0 none 4 2 0 3 0 5
type 1 0 0 1 2 3
type 1 1 1 3 1 2
call 2 0 bcast cico-binomial 2 0 none 1 0 4097
call 3 0 scan auto 0 1 affine 5 0 7
call 4 1 free auto 0 0 none 1 0
* run 0
2 sleep 100
* start 1
1 init 3
0 wait 1
0 init 3
2 init 3
* start 3
2 poll 1
* waitall 3
* free 3
* run 2
* run 4
";

    /// The second communicator's papers are not the first one's.
    fn text() -> String {
        TEXT.replace("cico-binomial", "queue")
    }

    #[test]
    fn what_is_printed_is_read_again() {
        let program = Program::parse(&text()).unwrap();
        assert_eq!(program.to_string(), text());
        assert_eq!(program.groups(), [vec![0, 1, 2], vec![2, 0]]);
        let commented = text().replace('\n', "  # what a line says\n\n");
        assert_eq!(Program::parse(&commented).unwrap(), program);
    }

    #[test]
    fn errors_name_the_line() {
        let wrong = |from: &str, to: &str| {
            let text = text().replacen(from, to, 1);
            Program::parse(&text).map_err(|wrong| wrong.to_string()).unwrap_err()
        };
        assert_eq!(wrong("call 1 1", "call 2 1"), "line 6: call 2, must be 1");
        assert_eq!(wrong("alltoallv", "alltoallx"), "line 6: collective \"alltoallx\" does not exist");
        let refused = wrong("seed 4294967295", "seed 4294967296");
        assert_eq!(refused, "line 2: seed \"4294967296\" is not a number that fits");
        assert_eq!(wrong("type 1 0 0 1 2 3", "type 1 0 0 1 2"), "line 7: no gap");
        assert_eq!(wrong("type 1 0 0 1 2 3", "type 1 0 0 1 2 3 4"), "line 7: \"4\" is one word too many");
        assert_eq!(wrong("type 1 0 0 1 2 3", "type 1 0 0 4 2 3"), "line 7: kind 4, must be at most 3");
        assert_eq!(wrong("* run 0", "* walk 0"), "line 12: verb \"walk\" does not exist");
    }

    #[test]
    fn what_is_not_legal_is_refused() {
        let wrong = |from: &str, to: &str| {
            let text = text().replacen(from, to, 1);
            Program::parse(&text).map_err(|wrong| (wrong.line, wrong.what)).unwrap_err()
        };
        for (from, to, what) in [
            ("* waitall 3", "0 wait 3", "call 3 is not persistent, or active"),
            ("* free 3\n* run 2\n* run 4\n", "* run 2\n", "rank 0 never completes call 3, or never frees it"),
            ("* run 2\n", "0 run 2\n", "rank 0 may wait for ever at step 11"),
            ("2 poll 1", "1 poll 1", "has no communicator 1 for call 1"),
            ("1 init 3\n0 wait 1\n0 init 3", "0 init 3\n0 wait 1\n1 run 3", "where another rank makes call 3"),
            ("* run 4\n", "* run 4\n2 start 1\n", "has no communicator 1 for call 1"),
            ("queue", "posted", "does not apply"),
            ("queue", "cico-binomial", "does not apply"),
            ("scan auto 0 1 affine 5 0 7", "scan auto 0 1 sum64 5 0 7", "elements of sum64 are of another length"),
            ("0 3 0 5\n", "0 3 0\n", "must have 4 counts"),
            ("call 1 1 alltoallv", "call 1 2 alltoallv", "is made by no call before"),
            ("call 1 1 alltoallv auto 0 0", "call 1 1 alltoallv auto 0 1", "must send each other as much"),
            ("type 1 0 0 1 2 3", "type 1 0 0 1 3 3", "a type that can't be"),
        ] {
            let found = wrong(from, to);
            assert!(found.0 == 0 && found.1.contains(what), "{found:?} for {what}");
        }
    }

    /// One rank waits for the first before it enters the second, the other one after: legal, as waits move all requests.
    #[test]
    fn communicators_may_be_interleaved_as_far_as_waits_move_all() {
        let calls = "ranks 2\nseed 0\ncall 0 0 dup auto 0 0 none 1 0 1\ncall 1 0 bcast auto 1 0 none 1 0 9\n\
                     call 2 1 barrier auto 0 0 none 1 0\n* run 0\n";
        let legal = |steps: &str| Program::parse(&format!("{calls}{steps}")).is_ok();
        let moved = "* start 1\n0 run 2\n0 wait 1\n1 wait 1\n1 run 2\n";
        assert!(legal(moved));
        assert!(!Program::parse(&format!("{calls}{moved}")).unwrap().ends_unmoved());
        let waits = "* start 1\n1 wait 1\n0 wait 1\n* run 2\n";
        assert!(Program::parse(&format!("{calls}{waits}")).unwrap().ends_unmoved());
        assert!(!legal("0 run 1\n0 run 2\n1 run 2\n1 run 1\n"));
        assert!(legal("0 start 1\n0 run 2\n1 run 2\n1 start 1\n* wait 1\n"));
    }
}
