//! Homes that older versions wrote, read by today's rules.

use abide_engine::rows_of_stored;
use abide_engine::{PROGRAM, fold, fold_until};
use abide_kernel::AgentState;
use abide_kernel::id::AgentId;
use abide_ledger::{Ledger, Options};

use crate::fixture;

fn upgraded(version: &str) -> (tempfile::TempDir, Ledger) {
    let home = tempfile::tempdir().unwrap();
    fixture::unpack_home(version, home.path());
    let ledger = Ledger::open(home.path(), Options::default().by(PROGRAM)).unwrap();
    (home, ledger)
}

/// A snapshot of an older version is either not taken, because its fingerprint is another, or it is what today's rules
/// make of the facts. A state that changed without its fingerprint shows here.
#[test]
fn a_state_from_an_old_snapshot_is_what_the_facts_make() {
    for version in fixture::VERSIONS {
        let (_home, ledger) = upgraded(version);
        let mut agents = 0;
        for (stream, head) in ledger.streams(None, 999).unwrap() {
            let Some(name) = stream.agent_name() else { continue };
            let agent = AgentId::new(name).unwrap();
            let replayed = fold_until::<AgentState>(&ledger, &agent, head.seq).unwrap();
            assert_eq!(fold::<AgentState>(&ledger, &agent).unwrap().unwrap(), replayed, "{version}: {agent}");
            agents += 1;
        }
        assert!(agents > 10, "{version}: {agents}");
    }
}

#[test]
fn rows_of_every_older_version_are_rebuilt() {
    for version in fixture::OLDER_FORMATS {
        let (_home, ledger) = upgraded(version);
        let streams = ledger.stats().unwrap().streams;
        let rebuilt = ledger.rebuild_outdated_rows(&|| false).unwrap();
        assert_eq!((rebuilt.streams, rebuilt.unreadable), (streams, vec![]), "{version}");
        let report = ledger.verify(&rows_of_stored, &mut |_| {});
        assert!(report.is_intact() && report.outdated_rows == 0 && report.rows > 100, "{version}: {report:#?}");
    }
}
