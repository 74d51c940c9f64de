//! Streamed text: delivered to listeners in order, and without delaying the agent.

use abide_engine::deltas::{Deltas, Listener};
use abide_kernel::id::ExecId;

use crate::world::id;

fn heard(listener: &mut Listener) -> String {
    std::iter::from_fn(|| listener.take()).map(|delta| delta.text.clone()).collect()
}

fn say(deltas: &Deltas, agent: &str, text: &str) {
    deltas.publish(&id(agent), &ExecId::new("exec_1"), 1, text);
}

#[test]
fn who_listens_hears_what_is_said_from_then_on() {
    let deltas = Deltas::default();
    say(&deltas, "a", "before");
    let (mut one, mut same, mut all) =
        (deltas.listen(Some(&id("a"))), deltas.listen(Some(&id("a"))), deltas.listen(None));
    for (agent, text) in [("a", "one "), ("b", "two "), ("a", ""), ("a", "three")] {
        say(&deltas, agent, text);
    }
    let first = one.take().unwrap();
    assert_eq!((first.agent.as_str(), first.exec_id.as_str(), first.round), ("a", "exec_1", 1));
    assert_eq!((first.text.as_str(), heard(&mut one).as_str()), ("one ", "three"));
    assert_eq!(heard(&mut same), "one three");
    assert_eq!(heard(&mut all), "one two three");
    // One of two goes; the other hears on.
    drop(one);
    say(&deltas, "a", "on");
    assert_eq!((heard(&mut same), heard(&mut all)), ("on".to_owned(), "on".to_owned()));
    drop((same, all));
    say(&deltas, "a", "to nobody");
    assert_eq!(heard(&mut deltas.listen(Some(&id("a")))), "");
}

#[tokio::test]
async fn who_is_slow_loses_the_oldest_and_goes_on() {
    let deltas = Deltas::default();
    let mut slow = deltas.listen(Some(&id("a")));
    for number in 0..1_000 {
        say(&deltas, "a", &format!("{number} "));
    }
    let first = slow.next().await;
    let rest = heard(&mut slow);
    assert!(first.text != "0 " && rest.ends_with("998 999 "), "{first:?} {rest}");
    let numbers: Vec<u32> = rest.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "without a gap from there on");
    say(&deltas, "a", "again");
    assert_eq!(slow.next().await.text, "again");
}

#[test]
fn a_long_text_comes_in_pieces_cut_between_letters() {
    let deltas = Deltas::default();
    let mut listener = deltas.listen(None);
    let text = "ä€".repeat(20_000);
    say(&deltas, "a", &text);
    let pieces: Vec<String> = std::iter::from_fn(|| listener.take()).map(|delta| delta.text.clone()).collect();
    assert_eq!(pieces.concat(), text);
    assert!(pieces.len() > 10 && pieces.iter().all(|piece| piece.len() <= 8 << 10));
}
