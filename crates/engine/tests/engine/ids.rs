//! Lists are sorted by id, so ids that are made one after the other sort in that order.

use abide_kernel::fact::Fact;
use abide_ledger::Ledger;

use crate::world::{all_asleep, create, facts, host, say};

#[tokio::test(start_paused = true)]
async fn ids_of_one_millisecond_sort_in_the_order_they_were_made() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    let mut messages = Vec::new();
    for text in 0..20 {
        messages.push(say(&host, "a", &text.to_string()).await.unwrap());
    }
    assert!(messages.is_sorted(), "{messages:?}");

    all_asleep(&host).await;
    let briefs = facts(&ledger, "a").into_iter().filter_map(|fact| match fact {
        Fact::BriefRecorded(brief) => Some(brief.brief_id),
        _ => None,
    });
    let briefs: Vec<_> = briefs.collect();
    assert!(briefs.len() >= 20 && briefs.is_sorted(), "{briefs:?}");
}
