use super::*;
use proptest::prelude::*;
use unisono_kernel::table::{Ask, BUILT_IN, Choice, Collective, Over, Site, Span, select};

const GOOD: &str = "# what tune found
unisono table 1
shm bcast bytes 113..8K ranks 2..4 use cico-binary   # the papers'
shm bcast bytes 8193.. ranks 2..4 use queue

shm barrier ranks 2 use central
shm allreduce bytes ..48 commutative no use exchange
msg allgather ranks 16 levels 1 use doubling
msg gatherv use linear
";

fn refused(text: &str) -> String {
    Table::read("file", &format!("{HEADER}\n{text}")).unwrap_err().to_string()
}

#[test]
fn a_good_file() {
    let table = Table::read("file", GOOD).unwrap();
    assert_eq!(table.rules().len(), 6);
    assert_eq!((table.rules()[0].bytes, table.rules()[0].ranks), (Span::new(113, 8192), Span::new(2, 4)));
    assert_eq!((table.rules()[2].bytes, table.rules()[2].ranks), (Span::<u64>::ANY, Span::new(2, 2)));
    assert_eq!((table.rules()[3].bytes, table.rules()[3].commutative), (Span::new(0, 48), Some(false)));
    assert_eq!(table.rules()[4].plan.over(), Over::Messages);
    let again = Table::read("again", &table.to_string()).unwrap();
    assert_eq!((&again, again.hash()), (&table, table.hash()));
    assert_ne!(Table::default().hash(), table.hash());
}

#[test]
fn the_built_in_rules_are_a_table() {
    let table = Table::new(BUILT_IN.to_vec()).unwrap();
    assert_eq!(Table::read("built in", &table.to_string()).unwrap().rules(), BUILT_IN);
}

#[test]
fn every_mistake_is_named_with_its_line() {
    let none = |text: &str| Table::read("f", text).unwrap_err().to_string();
    assert_eq!(none(""), "f:1: a table begins with \"unisono table 1\"");
    assert_eq!(none("# first\nshm bcast use queue"), "f:2: a table begins with \"unisono table 1\"");
    assert_eq!(none("unisono table 2"), "f:1: a table begins with \"unisono table 1\"");
    for (text, said) in [
        ("tcp bcast use queue", "file:2: no memory or messages (shm, msg) is called \"tcp\""),
        ("\nshm broadcast use queue", "file:3: no collective is called \"broadcast\""),
        ("shm bcast use fast", "file:2: no algorithm of this collective is called \"fast\""),
        ("shm bcast use auto", "file:2: no algorithm of this collective is called \"auto\""),
        ("shm bcast use slices", "file:2: no algorithm of this collective is called \"slices\""),
        ("msg bcast use queue", "file:2: no algorithm of this collective is called \"queue\""),
        (
            "shm bcast size 4 use queue",
            "file:2: no condition (bytes, ranks, levels, commutative, crowded, use) is called \"size\"",
        ),
        ("shm", "file:2: a collective is missing"),
        ("shm bcast bytes", "file:2: a range of bytes is missing"),
        ("shm bcast bytes 4", "file:2: use ALGORITHM is missing"),
        ("shm bcast use", "file:2: an algorithm is missing"),
        ("shm bcast use queue now", "file:2: \"now\" is one too many"),
        ("shm bcast ranks 2 ranks 3 use queue", "file:2: \"ranks\" is one too many"),
        ("shm bcast bytes 4-8 use queue", "file:2: \"4-8\" is not a number or range A..B"),
        ("shm bcast bytes .. use queue", "file:2: \"..\" is not a number or range A..B"),
        ("shm bcast bytes +4 use queue", "file:2: \"+4\" is not a number or range A..B"),
        (
            "shm bcast bytes 99999999999999999999 use queue",
            "file:2: \"99999999999999999999\" is not a number or range A..B",
        ),
        ("shm bcast bytes 8..4 use queue", "file:2: nothing is in the range \"8..4\": the rule is never reached"),
        ("shm bcast ranks 0 use queue", "file:2: nothing is in the range \"0\": the rule is never reached"),
        ("shm barrier bytes 8 use central", "file:2: barrier is not chosen by bytes: not all ranks know any"),
        ("shm gatherv bytes 8 use cico", "file:2: gatherv is not chosen by bytes: not all ranks know any"),
        ("shm bcast commutative yes use queue", "file:2: bcast has no operation that could commute"),
        ("shm allreduce commutative maybe use slices", "file:2: no answer (yes, no) is called \"maybe\""),
        ("shm bcast use posted", "file:2: posted carries 112 bytes at most"),
        ("shm allreduce bytes ..49 use posted", "file:2: posted carries 48 bytes at most"),
        ("msg allreduce use ring", "file:2: ring needs an operation that commutes"),
        ("msg allgather use doubling", "file:2: doubling needs a power of two of ranks"),
        ("msg allgather ranks 2..3 use doubling", "file:2: doubling needs a power of two of ranks"),
        ("msg scatterv use binomial", "file:2: binomial needs blocks of one length"),
        (
            "shm bcast bytes 200..300 use queue\nshm bcast bytes 300 ranks 3 use cico-flat",
            "file:3: line 2 has a rule for some of these calls",
        ),
    ] {
        assert_eq!(refused(text), said, "{text}");
    }
    let many: String = (0..9).map(|at| format!("shm bcast bytes {} use cico-flat\n", 1000 + 2 * at)).collect();
    assert_eq!(refused(&many), "file:10: bcast of 1 ranks has more than 16 ranges of bytes");
}

#[test]
fn what_needs_a_power_of_two_serves_powers_of_two() {
    for ranks in ["1..2", "4", "1024"] {
        assert!(Table::read_rules("v", &format!("msg allgather ranks {ranks} use doubling")).is_ok(), "{ranks}");
    }
    assert!(Table::read_rules("v", "msg allreduce commutative yes use ring").is_ok());
}

#[test]
fn a_variable_holds_rules_and_comes_before_the_file() {
    let variable =
        Table::read_rules("UNISONO_RULES", "shm bcast use queue; shm barrier ranks 2 use dissemination").unwrap();
    let table = variable.before(Table::read("file", GOOD).unwrap()).unwrap();
    assert_eq!(table.rules().len(), 8);
    let site = Site { papers: true, stages: true, ..Site::flat(2) };
    let of = |collective, bytes| {
        select(table.rules(), &Ask { over: Over::Segment, collective, bytes, commutative: true, site }).unwrap()
    };
    assert_eq!((of(Collective::Bcast, 200).rule, of(Collective::Bcast, 8).plan.to_string()), (Some(0), "queue".into()));
    assert_eq!(of(Collective::Barrier, 0).plan.to_string(), "dissemination");
    assert_eq!(of(Collective::Allreduce, 8).rule, None, "sums commute");
    let error = Table::read_rules("UNISONO_RULES", "shm bcast use queue; shm bcast use fast").unwrap_err();
    assert_eq!(error.to_string(), "UNISONO_RULES:2: no algorithm of this collective is called \"fast\"");
}

proptest! {
    /// A table that is written and read again is the same, for rules of any ranges.
    #[test]
    fn written_and_read(
        least in 0u64..5000, more in 0u64..5000, ranks in 1u32..100, extra in 0u32..100, open in any::<bool>(),
        commutative in proptest::option::of(any::<bool>()), crowded in proptest::option::of(any::<bool>()), which in 0usize..3,
    ) {
        let (collective, name) = [
            (Collective::Bcast, "queue"), (Collective::Allreduce, "slices"), (Collective::Allgather, "cico"),
        ][which];
        let plan = Choice::from_name(Over::Segment, collective, name).unwrap();
        let rule = Rule {
            bytes: Span::new(least, if open { u64::MAX } else { least + more }),
            ranks: Span::new(ranks, if open { u32::MAX } else { ranks + extra }),
            commutative: commutative.filter(|_| collective.folds()),
            crowded,
            ..Rule::all(collective, plan)
        };
        let table = Table::new(vec![rule]).unwrap();
        prop_assert_eq!(Table::read("t", &table.to_string()).unwrap(), table);
    }

    /// No text makes the reader panic.
    #[test]
    fn any_text(text in "(shm|msg|bcast|allreduce|bytes|ranks|use|queue|ring|[0-9]{1,3}|\\.\\.|[#; \n]){0,30}") {
        let _ = Table::read_rules("v", &text);
        let _ = Table::read("t", &format!("{HEADER}\n{text}"));
    }
}
