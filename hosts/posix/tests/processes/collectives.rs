//! Runs without failures.

use super::Scene;
use unisono_posix::binding;
use unisono_posix::launch::{Bind, Exit};

#[test]
fn every_collective_is_right_for_1_2_and_5_ranks() {
    for ranks in [1, 2, 5] {
        let scene = Scene::new(&format!("collectives-{ranks}"));
        let outcome = scene.run("collectives", "", ranks);
        assert!(outcome.success(), "{ranks} ranks: {outcome}");
        assert_eq!(outcome.exits, vec![Exit::Code(0); ranks as usize]);
        for rank in 0..ranks {
            println!(
                "{}; {}; {}",
                scene.said(rank, "placement"),
                scene.said(rank, "waiting"),
                scene.said(rank, "liveness")
            );
        }
    }
}

#[test]
fn a_root_that_ends_early_is_not_an_error() {
    let scene = Scene::new("eager");
    let outcome = scene.run("eager", "", 3);
    assert!(outcome.success(), "{outcome}");
}

#[test]
fn ranks_are_bound_round_robin() {
    let allowed = binding::affinity().unwrap();
    let scene = Scene::new("binding");
    let ranks = allowed.len() as u32 + 1;
    let outcome = scene.launch("binding", "", ranks, Bind::Core).run().unwrap();
    assert!(outcome.success(), "{outcome}");
    let pus: Vec<u32> = (0..ranks).map(|rank| scene.said(rank, "pus").parse().unwrap()).collect();
    let mut each: Vec<u32> = pus[..allowed.len()].to_vec();
    each.sort_unstable();
    assert_eq!(each, allowed.iter().collect::<Vec<_>>());
    assert_eq!(pus.first(), pus.last());
    // More ranks than PUs: all yield.
    assert!((0..ranks).all(|rank| scene.said(rank, "yields") == "true" && scene.said(rank, "crowded") == "true"));

    let scene = Scene::new("binding-numa");
    let outcome = scene.launch("binding", "", 2, Bind::Numa).run().unwrap();
    assert!(outcome.success(), "{outcome}");
    (0..2).for_each(|rank| println!("bound by node: {}", scene.said(rank, "placement")));
    let nodes = binding::nodes();
    let own = binding::PuSet::from_list(&scene.said(0, "pus")).unwrap();
    assert!(nodes.is_empty() || nodes.iter().any(|(_, pus)| own.is_subset(pus)));
}

#[test]
fn a_process_that_a_rank_starts_is_not_a_rank() {
    let scene = Scene::new("grandchild");
    let outcome = scene.run("grandchild", "", 1);
    assert!(outcome.success(), "{outcome}");
}

#[test]
fn the_environment_says_how_to_wait() {
    for (word, yields) in [("spin", "false"), ("yield", "true")] {
        let scene = Scene::new(word);
        let mut launch = scene.launch("binding", "", 2, Bind::None);
        launch.env.push(("UNISONO_WAIT".into(), word.into()));
        let outcome = launch.run().unwrap();
        assert!(outcome.success(), "{outcome}");
        assert!((0..2).all(|rank| scene.said(rank, "yields") == yields));
    }
    let scene = Scene::new("sleep");
    let mut launch = scene.launch("binding", "", 2, Bind::None);
    launch.env.push(("UNISONO_WAIT".into(), "sleep".into()));
    assert!(!launch.run().unwrap().success());
    for rank in 0..2 {
        let error = scene.said(rank, "error");
        assert!(error.ends_with("UNISONO_WAIT is \"sleep\", must be spin or yield"), "{error}");
    }
}
