//! Pictures, in what is said to a model and in what its calls come to.

use abide_effects::model::remote::Protocol;
use abide_kernel::prompt::{CallResult, Item, Part, Prompt};

use super::anthropic::conversation;
use super::provider::*;

/// A request with a picture that a model can't look at is refused by its provider, all of it.
#[tokio::test]
async fn a_model_that_sees_nothing_is_told_of_all_of_them() {
    let only = CallResult { images: vec![image()], ..result(0, "") };
    let alone = Prompt {
        items: shared([Item::User { parts: vec![Part::Image(image())] }, Item::Results { results: vec![only] }]),
        ..hello()
    };
    for protocol in [Protocol::Anthropic, Protocol::Responses, Protocol::Chat] {
        let provider = Loopback::new(vec![Answer::stream("")]);
        let mut remote = provider.remote(protocol);
        for prompt in [conversation(), alone.clone()] {
            for (sees, shown, told) in [(true, 2, 0), (false, 0, 2)] {
                remote.card.images = sees;
                call(&remote, &prompt).await.unwrap_err();
                let body = provider.last_body().to_string();
                let count = |what: &str| body.matches(what).count();
                let words = "(a picture, image/png, which this model can't look at)";
                assert_eq!((count("aGk="), count(words)), (shown, told), "{protocol:?}: {body}");
            }
        }
    }
}
