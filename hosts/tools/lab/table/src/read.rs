//! From text to rules.

use crate::Fault;
use unisono_kernel::table::{Choice, Collective, Over, Rule, Span};

/// The lines that are not empty, numbered from 1, without comments.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bare = |line: &'_ str| line.split_once('#').map_or(line.len(), |(before, _)| before.len());
    let lines = text.lines().map(move |line| line.get(..bare(line)).unwrap_or(line).trim());
    (1..).zip(lines).filter(|(_, line)| !line.is_empty())
}

/// `OVER COLLECTIVE [bytes RANGE] [ranks RANGE] [levels RANGE] [commutative yes|no] [crowded yes|no] use ALGORITHM`.
pub(crate) fn rule(line: &str) -> Result<Rule, Fault> {
    let mut words = line.split_whitespace();
    let mut word = |what| words.next().ok_or(Fault::Missing(what));
    let unknown = |what, name: &str| Fault::Unknown { what, name: name.into() };
    let name = word("shm or msg")?;
    let over = Over::from_name(name).ok_or_else(|| unknown("memory or messages (shm, msg)", name))?;
    let name = word("a collective")?;
    let collective = Collective::from_name(name).ok_or_else(|| unknown("collective", name))?;
    let (mut bytes, mut ranks, mut levels, mut commutative, mut crowded) = (None, None, None, None, None);
    loop {
        let name = word("use ALGORITHM")?;
        let twice = match name {
            "bytes" if !collective.has_bytes() => return Err(Fault::Bytes(collective)),
            "commutative" if !collective.folds() => return Err(Fault::Operation(collective)),
            "bytes" => bytes.replace(span(word("a range of bytes")?, Span::<u64>::ANY)?).is_some(),
            "ranks" => ranks.replace(count(word("a range of ranks")?)?).is_some(),
            "levels" => levels.replace(count(word("a range of levels")?)?).is_some(),
            "commutative" | "crowded" => {
                let condition = if name == "crowded" { &mut crowded } else { &mut commutative };
                match word("yes or no")? {
                    "yes" => condition.replace(true).is_some(),
                    "no" => condition.replace(false).is_some(),
                    other => return Err(unknown("answer (yes, no)", other)),
                }
            }
            "use" => break,
            other => return Err(unknown("condition (bytes, ranks, levels, commutative, crowded, use)", other)),
        };
        if twice {
            return Err(Fault::Superfluous(name.into()));
        }
    }
    let name = word("an algorithm")?;
    let plan =
        Choice::from_name(over, collective, name).ok_or_else(|| unknown("algorithm of this collective", name))?;
    if let Some(more) = words.next() {
        return Err(Fault::Superfluous(more.into()));
    }
    let all = Rule::all(collective, plan);
    Ok(Rule {
        bytes: bytes.unwrap_or(all.bytes),
        ranks: ranks.unwrap_or(all.ranks),
        levels: levels.unwrap_or(all.levels),
        commutative,
        crowded,
        ..all
    })
}

/// A range `A..B`, `A..`, `..B` or `A`, cut to the possible values `any`.
fn span(text: &str, any: Span<u64>) -> Result<Span<u64>, Fault> {
    let number = |digits: &str| bytes(digits).ok_or_else(|| Fault::Range(text.into()));
    let span = match text.split_once("..") {
        None => number(text).map(|one| Span::new(one, one))?,
        Some(("", "")) => return Err(Fault::Range(text.into())),
        Some((least, most)) => Span::new(
            if least.is_empty() { any.least } else { number(least)? },
            if most.is_empty() { any.most } else { number(most)? },
        ),
    };
    if span.is_empty() || !any.has(span.least) || !any.has(span.most) {
        return Err(Fault::Unreachable(text.into()));
    }
    Ok(span)
}

/// A range of counts.
fn count(text: &str) -> Result<Span<u32>, Fault> {
    let any = Span::<u32>::ANY;
    let span = span(text, Span::new(any.least.into(), any.most.into()))?;
    let narrow = |value| u32::try_from(value).map_err(|_| Fault::Range(text.into()));
    Ok(Span::new(narrow(span.least)?, narrow(span.most)?))
}

/// A number, with or without the suffix K, M or G (of 1024).
pub fn bytes(text: &str) -> Option<u64> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'K' => (text.len() - 1, 1 << 10),
        b'M' => (text.len() - 1, 1 << 20),
        b'G' => (text.len() - 1, 1 << 30),
        _ => (text.len(), 1),
    };
    let digits = text.get(..digits)?;
    let only_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    only_digits.then(|| digits.parse::<u64>().ok()?.checked_mul(factor))?
}
