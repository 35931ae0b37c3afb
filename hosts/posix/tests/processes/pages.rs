//! Huge pages and memory policies on request. The test does not know whether the machine has huge pages: both outcomes
//! are right, if the report agrees with the kernel (the body reads smaps itself) and a fallback is explained once.

use super::Scene;
use super::communicators::complaints;
use unisono_posix::launch::Bind;

/// The log that the ranks, which have ended, wrote about a topic, if they wrote one.
fn log(scene: &Scene, topic: &str) -> Option<String> {
    std::fs::read_to_string(scene.directory.join(format!("{topic}-0"))).ok()
}

#[test]
fn what_came_of_huge_pages_is_what_smaps_says() {
    for ranks in [1, 3] {
        let scene = Scene::new(&format!("pages-{ranks}"));
        let outcome = scene.run("pages", "", ranks);
        assert!(outcome.success(), "{outcome}\n{}", complaints(&scene, ranks));
        let said: Vec<_> = (0..ranks).map(|rank| scene.said(rank, "pages")).collect();
        println!("{}", said[0]);
        assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
        let log_of_pages = log(&scene, "log");
        assert_eq!(log_of_pages.is_some(), said[0].starts_with("true "), "{said:?}");
        if let Some(line) = log_of_pages {
            assert!(
                line.starts_with("huge pages were asked for, the segment has ")
                    && line.contains(": no huge pages of the pool: "),
                "{line}"
            );
        }
        let bound = (0..ranks).all(|rank| scene.said(rank, "bound") == "true");
        assert_eq!(log(&scene, "unbound").is_none(), bound);
    }
}

#[test]
fn the_environment_overrides_and_is_checked() {
    let launch = |name: &str, variable: &str, value: &str| {
        let scene = Scene::new(name);
        let mut launch = scene.launch("pages", "", 2, Bind::None);
        launch.env.push((variable.into(), value.into()));
        assert!(!launch.run().unwrap().success());
        (0..2).map(|rank| super::death::error(&scene, rank).1).collect::<Vec<_>>()
    };
    let errors = launch("pages-word", "UNISONO_PAGES", "large");
    assert!(errors.iter().any(|error| error == "UNISONO_PAGES is \"large\", must be default or huge"), "{errors:?}");
    let errors = launch("policy-word", "UNISONO_MBIND", "interleave");
    assert!(errors.iter().any(|error| error.starts_with("UNISONO_MBIND is \"interleave\"")), "{errors:?}");
}

#[test]
fn a_rank_that_asks_for_other_pages_is_named() {
    let scene = Scene::new("other-pages");
    assert!(!scene.run("other-pages", "", 3).success());
    for rank in 0..3 {
        let (_, error) = super::death::error(&scene, rank);
        assert_eq!(error, "rank 1: asks for other pages than rank 0 (UNISONO_PAGES)");
    }
}
