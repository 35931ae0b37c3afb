//! From samples to cells and summaries.
//!
//! A configuration's time in a cell is the median of its rounds' p50. The best peer is the one with
//! the smallest time. The ratio is the median over rounds of ours ÷ the best peer's; so is the time ÷
//! floor. Each configuration of ours has such a ratio; a preload is compared with the underlying MPI, too.

use crate::configuration::{ALL, OURS, is_peer};
use crate::floor;
use crate::report::{COLLECTIVES, Floor, Sample, bytes, rooted};
use crate::stats::{geometric_mean, median, pairwise, spread};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One configuration's times in a cell.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Time {
    pub(crate) p50_ns: f64,
    /// The fastest of the rounds' p50.
    #[serde(default)]
    pub(crate) fastest_ns: f64,
    /// The median of the rounds' p99.
    pub(crate) p99_ns: f64,
    /// The largest of the rounds' max.
    pub(crate) max_ns: f64,
    /// (largest - smallest) ÷ median of the rounds' p50.
    pub(crate) spread: f64,
    pub(crate) rounds: usize,
}

/// A collective, a size, a definition of time, a number of ranks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Cell {
    pub(crate) collective: String,
    pub(crate) bytes: u64,
    pub(crate) method: String,
    pub(crate) root: String,
    pub(crate) ranks: u32,
    /// The times, by configuration.
    pub(crate) times: BTreeMap<String, Time>,
    pub(crate) best_peer: Option<String>,
    /// The median over rounds of ours ÷ the best peer's.
    pub(crate) ratios: Vec<f64>,
    pub(crate) ratio: Option<f64>,
    /// The same ratio of each configuration that runs the collective by Unisono.
    #[serde(default)]
    pub(crate) over_best: BTreeMap<String, f64>,
    pub(crate) floor_ns: Option<f64>,
    /// Ours ÷ the floor.
    pub(crate) over_floor: Option<f64>,
    /// By preloaded configuration, where both have rows and it runs the collective itself.
    #[serde(default)]
    pub(crate) over_underlying: BTreeMap<String, OverUnderlying>,
}

/// A preload against the underlying MPI.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct OverUnderlying {
    /// The configuration of the underlying MPI.
    pub(crate) underlying: String,
    /// The median over rounds of the time with the preload ÷ without.
    pub(crate) ratio: f64,
}

/// Cells that are shown together: a definition of time, and kinds of roots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    method: &'static str,
    roots: &'static [&'static str],
}

/// All views.
pub(crate) const VIEWS: [View; 5] = [
    View { name: "window, root fixed", method: "window", roots: &["fixed", "none"] },
    View { name: "window, root rotating", method: "window", roots: &["rotating"] },
    View { name: "rate, root rotating", method: "rate", roots: &["rotating", "none"] },
    View { name: "osu, root fixed", method: "osu", roots: &["fixed", "none"] },
    View { name: "imb, root rotating", method: "imb", roots: &["rotating", "none"] },
];

impl View {
    pub(crate) fn has(&self, cell: &Cell) -> bool {
        cell.method == self.method && self.roots.contains(&cell.root.as_str())
    }
}

/// A cell in which the best peer is faster.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Losing {
    pub(crate) collective: String,
    pub(crate) bytes: u64,
    pub(crate) ratio: f64,
    pub(crate) best_peer: String,
}

/// A configuration of ours in a view at a number of ranks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Summary {
    #[serde(default = "ours")]
    pub(crate) configuration: String,
    pub(crate) view: String,
    pub(crate) ranks: u32,
    /// Cells with a ratio.
    pub(crate) compared: usize,
    /// Geometric means of the ratios.
    #[serde(default)]
    pub(crate) all: Option<f64>,
    /// The same of the fastest rounds: ours ÷ the fastest of any peer. A machine whose cores are near in one minute and far
    /// in the next disturbs it less.
    #[serde(default)]
    pub(crate) fastest: Option<f64>,
    pub(crate) rooted: Option<f64>,
    pub(crate) all_to_all: Option<f64>,
    pub(crate) losing: Vec<Losing>,
}

fn ours() -> String {
    OURS.into()
}

/// A cell in which the underlying MPI is faster without the preload.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Slower {
    pub(crate) collective: String,
    pub(crate) bytes: u64,
    pub(crate) method: String,
    pub(crate) root: String,
    pub(crate) ratio: f64,
}

impl fmt::Display for Slower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = bytes(self.bytes);
        let words = [&self.collective, &size, &self.method, &self.root].into_iter();
        words.filter(|word| !word.is_empty() && *word != "none").try_for_each(|word| write!(f, "{word} "))?;
        write!(f, "{:.2}", self.ratio)
    }
}

/// A preloaded configuration at a number of ranks, in all views.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Preloaded {
    pub(crate) configuration: String,
    /// The configuration with which it is compared.
    pub(crate) underlying: String,
    pub(crate) ranks: u32,
    pub(crate) compared: usize,
    /// The geometric mean of the ratios.
    pub(crate) mean: Option<f64>,
    pub(crate) slower: Vec<Slower>,
}

/// The cells of all samples, in the order of tables.
pub(crate) fn cells(samples: &[Sample], floors: &[Floor], cores: u32) -> Vec<Cell> {
    let place = |name: &str| COLLECTIVES.iter().position(|c| *c == name).unwrap_or(COLLECTIVES.len());
    let mut groups: BTreeMap<_, BTreeMap<&str, Vec<&Sample>>> = BTreeMap::new();
    for sample in samples {
        let row = &sample.row;
        let key = (row.ranks, &row.method, place(&row.collective), &row.collective, row.bytes, &row.root);
        groups.entry(key).or_default().entry(&sample.configuration).or_default().push(sample);
    }
    groups
        .into_iter()
        .map(|((ranks, method, _, collective, bytes, root), group)| {
            let p50s = |name: &str| group.get(name).map(|s| p50_by_round(s)).unwrap_or_default();
            let times: BTreeMap<String, Time> =
                group.iter().filter_map(|(name, samples)| Some(((*name).to_owned(), time(samples)?))).collect();
            let peers = times.iter().filter(|(name, _)| is_peer(name));
            let best_peer = peers.min_by(|a, b| a.1.p50_ns.total_cmp(&b.1.p50_ns)).map(|(name, _)| name.clone());
            let ours = p50s(OURS);
            let ratios = best_peer.as_ref().map(|peer| pairwise(&ours, &p50s(peer))).unwrap_or_default();
            let over_best = ALL.iter().filter(|c| c.is_ours()).filter_map(|c| {
                let ratio = median(pairwise(&p50s(c.name), &p50s(best_peer.as_ref()?)))?;
                Some((c.name.to_owned(), ratio))
            });
            let over_underlying = ALL.iter().filter_map(|above| {
                let underlying = above.preload?.underlying.iter().find(|name| group.contains_key(**name))?;
                let ratio = median(pairwise(&p50s(above.name), &p50s(underlying)))?;
                Some((above.name.to_owned(), OverUnderlying { underlying: (*underlying).to_owned(), ratio }))
            });
            let floors: BTreeMap<u32, f64> = floors
                .iter()
                .filter(|floor| floor.ranks == ranks)
                .filter_map(|f| Some((f.round, floor::of(collective, bytes, ranks, ranks > cores, &f.bcasts)?)))
                .collect();
            Cell {
                collective: collective.clone(),
                bytes,
                method: method.clone(),
                root: root.clone(),
                ranks,
                ratio: median(ratios.iter().copied()),
                ratios,
                over_best: over_best.collect(),
                floor_ns: median(floors.values().copied()),
                over_floor: median(pairwise(&ours, &floors)),
                over_underlying: over_underlying.collect(),
                times,
                best_peer,
            }
        })
        .collect()
}

fn p50_by_round(samples: &[&Sample]) -> BTreeMap<u32, f64> {
    samples.iter().map(|sample| (sample.round, sample.row.p50_ns)).collect()
}

fn time(samples: &[&Sample]) -> Option<Time> {
    let p50s: Vec<f64> = samples.iter().map(|sample| sample.row.p50_ns).collect();
    Some(Time {
        p50_ns: median(p50s.iter().copied())?,
        fastest_ns: p50s.iter().copied().fold(f64::INFINITY, f64::min),
        p99_ns: median(samples.iter().map(|sample| sample.row.p99_ns))?,
        max_ns: samples.iter().map(|sample| sample.row.max_ns).fold(0.0, f64::max),
        spread: spread(&p50s)?,
        rounds: samples.len(),
    })
}

/// The numbers of ranks, ascending.
pub(crate) fn ranks(cells: &[Cell]) -> Vec<u32> {
    let mut ranks: Vec<u32> = cells.iter().map(|cell| cell.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// One summary per preloaded configuration and number of ranks that has ratios.
pub(crate) fn preloads(cells: &[Cell]) -> Vec<Preloaded> {
    let names = ALL.iter().filter(|c| c.preload.is_some()).map(|c| c.name);
    let both = ranks(cells).into_iter().flat_map(|ranks| names.clone().map(move |name| (ranks, name)));
    both.filter_map(|(ranks, name)| {
        let cells = cells.iter().filter(|cell| cell.ranks == ranks);
        let compared: Vec<_> = cells.filter_map(|cell| Some((cell, cell.over_underlying.get(name)?))).collect();
        let slower = compared.iter().filter(|(_, over)| over.ratio > 1.0).map(|(cell, over)| Slower {
            collective: cell.collective.clone(),
            bytes: cell.bytes,
            method: cell.method.clone(),
            root: cell.root.clone(),
            ratio: over.ratio,
        });
        Some(Preloaded {
            configuration: name.into(),
            underlying: compared.first()?.1.underlying.clone(),
            ranks,
            compared: compared.len(),
            mean: geometric_mean(compared.iter().map(|(_, over)| over.ratio)),
            slower: slower.collect(),
        })
    })
    .collect()
}

/// One summary per configuration of ours, view and number of ranks that has ratios; of ours itself also without.
pub(crate) fn summaries(cells: &[Cell]) -> Vec<Summary> {
    let names = ALL.iter().filter(|c| c.is_ours()).map(|c| c.name);
    let each = ranks(cells).into_iter().flat_map(|ranks| VIEWS.map(|view| (view, ranks)));
    let each = each.flat_map(|(view, ranks)| names.clone().map(move |name| (view, ranks, name)));
    each.filter_map(|(view, ranks, name)| {
        let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.ranks == ranks && view.has(cell)).collect();
        let ratio = |cell: &Cell| cell.over_best.get(name).copied();
        let mean = |with_root: bool| {
            let kind = cells.iter().filter(|cell| rooted(&cell.collective) == with_root);
            geometric_mean(kind.filter_map(|cell| ratio(cell)))
        };
        let losing = |cell: &&Cell| {
            let (ratio, best_peer) = (ratio(cell).filter(|&ratio| ratio > 1.0)?, cell.best_peer.clone()?);
            Some(Losing { collective: cell.collective.clone(), bytes: cell.bytes, ratio, best_peer })
        };
        let compared = cells.iter().filter(|cell| ratio(cell).is_some()).count();
        (compared > 0 || name == OURS && !cells.is_empty()).then(|| Summary {
            configuration: name.into(),
            view: view.name.into(),
            ranks,
            compared,
            all: geometric_mean(cells.iter().filter_map(|cell| ratio(cell))),
            fastest: geometric_mean(cells.iter().filter(|cell| ratio(cell).is_some()).filter_map(|cell| {
                let peers = cell.times.iter().filter(|(name, _)| is_peer(name)).map(|(_, time)| time.fastest_ns);
                Some(cell.times.get(name)?.fastest_ns / peers.min_by(f64::total_cmp)?)
            })),
            rooted: mean(true),
            all_to_all: mean(false),
            losing: cells.iter().filter_map(losing).collect(),
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Row;

    fn sample(configuration: &str, round: u32, collective: &str, bytes: u64, p50_ns: f64) -> Sample {
        let root = if rooted(collective) { "fixed" } else { "none" };
        let (method, collective) = ("window".into(), collective.into());
        let (p99_ns, max_ns) = (2.0 * p50_ns, 3.0 * p50_ns);
        let row = Row {
            collective,
            bytes,
            method,
            root: root.into(),
            ranks: 2,
            iterations: 9,
            p50_ns,
            p99_ns,
            max_ns,
            line_ns: None,
        };
        Sample { configuration: configuration.into(), round, row }
    }

    #[test]
    fn a_ratio_is_the_median_of_the_rounds_own() {
        // Round 1 is disturbed alike for all: the ratio of medians would be 1.0.
        let samples: Vec<Sample> = [(0, 10.0, 20.0), (1, 100.0, 200.0), (2, 20.0, 20.0)]
            .iter()
            .flat_map(|&(round, ours, peer)| {
                let of = |name, t| sample(name, round, "bcast", 8, t);
                [of(OURS, ours), of("ompi", peer), of("mpich", 300.0)]
            })
            .collect();
        let floors = [Floor { ranks: 2, round: 0, bcasts: [(8, 5.0)].into() }];
        let cells = cells(&samples, &floors, 2);
        assert_eq!(cells.len(), 1);
        let cell = &cells[0];
        assert_eq!(cell.best_peer.as_deref(), Some("ompi"));
        assert_eq!((cell.ratio, &cell.ratios[..]), (Some(0.5), &[0.5, 0.5, 1.0][..]));
        assert_eq!((cell.floor_ns, cell.over_floor), (Some(5.0), Some(2.0)));
        let fastest = |summaries: &[Summary]| summaries[0].fastest.unwrap();
        assert!((fastest(&summaries(std::slice::from_ref(cell))) - 0.5).abs() < 1e-12, "10 ÷ 20");
        let ours = &cell.times[OURS];
        assert_eq!((ours.p50_ns, ours.p99_ns, ours.max_ns, ours.rounds), (20.0, 40.0, 300.0, 3));
        assert_eq!(ours.spread, 4.5);
    }

    #[test]
    fn summaries_name_losing_cells_and_leave_out_what_has_no_ratio() {
        let samples = [
            sample(OURS, 0, "bcast", 8, 1.0),
            sample("ompi", 0, "bcast", 8, 4.0),
            sample(OURS, 0, "barrier", 0, 3.0),
            sample("ompi", 0, "barrier", 0, 2.0),
            sample("ompi", 0, "scan", 8, 2.0),
        ];
        let summaries = summaries(&cells(&samples, &[], 2));
        assert_eq!(summaries.len(), 1);
        let summary = &summaries[0];
        assert_eq!((summary.view.as_str(), summary.compared), (VIEWS[0].name, 2));
        assert!((summary.rooted.unwrap() - 0.25).abs() < 1e-12);
        assert!((summary.all_to_all.unwrap() - 1.5).abs() < 1e-12);
        let losing: Vec<_> = summary.losing.iter().map(|l| (l.collective.as_str(), l.ratio)).collect();
        assert_eq!(losing, [("barrier", 1.5)]);
    }

    #[test]
    fn a_preload_is_compared_with_the_mpi_beneath_and_changes_nothing_else() {
        let plain = [
            sample(OURS, 0, "bcast", 8, 3.0),
            sample("ompi", 0, "bcast", 8, 4.0),
            sample("mpich", 0, "bcast", 8, 2.0),
            // Round 1 is disturbed alike for all.
            sample("ompi", 1, "bcast", 8, 40.0),
            sample("mpich", 1, "bcast", 8, 20.0),
            sample(OURS, 0, "barrier", 0, 1.0),
            sample("ompi", 0, "barrier", 0, 2.0),
        ];
        let mut samples = plain.to_vec();
        samples.extend([
            sample("ompi+unisono", 0, "bcast", 8, 1.0),
            sample("ompi+unisono", 1, "bcast", 8, 10.0),
            sample("ompi+unisono", 0, "barrier", 0, 8.0),
            sample("mpich+unisono", 0, "bcast", 8, 1.0),
            // The underlying MPI has no rows of these.
            sample("mpich+unisono", 0, "barrier", 0, 0.5),
            sample("ompi+unisono", 0, "scan", 8, 0.5),
        ]);
        let (without, with) = (cells(&plain, &[], 2), cells(&samples, &[], 2));
        let peers = |cells: &[Cell]| -> Vec<_> {
            let compared = cells.iter().filter(|cell| cell.ratio.is_some());
            compared.map(|cell| (cell.collective.clone(), cell.best_peer.clone(), cell.ratios.clone())).collect()
        };
        assert_eq!(peers(&with), peers(&without));
        assert_eq!(peers(&with).len(), 2);
        let scan = with.iter().find(|cell| cell.collective == "scan").unwrap();
        assert_eq!((&scan.best_peer, scan.over_underlying.len()), (&None, 0));
        let told = |cells: &[Cell]| {
            let ours = summaries(cells).into_iter().filter(|summary| summary.configuration == OURS);
            format!("{:?}", ours.collect::<Vec<_>>())
        };
        assert_eq!(told(&with), told(&without));
        let above = summaries(&with).into_iter().find(|summary| summary.configuration == "ompi+unisono").unwrap();
        assert_eq!((above.compared, above.losing.len()), (2, 1));
        assert!((above.all.unwrap() - 2f64.sqrt()).abs() < 1e-12, "of 1/2 and 4");

        assert!(preloads(&without).is_empty());
        let [ompi, mpich] = &preloads(&with)[..] else { panic!("two preloads") };
        assert_eq!((ompi.configuration.as_str(), ompi.underlying.as_str(), ompi.ranks), ("ompi+unisono", "ompi", 2));
        assert_eq!(ompi.compared, 2);
        assert!((ompi.mean.unwrap() - 1.0).abs() < 1e-12, "of 1/4 and 4");
        assert_eq!(ompi.slower.iter().map(Slower::to_string).collect::<Vec<_>>(), ["barrier window 4.00"]);
        assert_eq!((mpich.configuration.as_str(), mpich.underlying.as_str()), ("mpich+unisono", "mpich"));
        assert_eq!((mpich.compared, mpich.mean, mpich.slower.len()), (1, Some(0.5), 0));
    }

    #[test]
    fn where_ranks_outnumber_cores_the_yielding_mpich_is_underlying() {
        let samples = [sample("mpich-yield", 0, "bcast", 8, 2.0), sample("mpich+unisono", 0, "bcast", 8, 3.0)];
        let found = preloads(&cells(&samples, &[], 1));
        assert_eq!((found.len(), found[0].underlying.as_str()), (1, "mpich-yield"));
        assert_eq!(found[0].slower[0].to_string(), "bcast 8 B window fixed 1.50");
    }
}
