//! How large.

use tidegate_config::LimitScopes;
use tidegate_protocol::{Revision, Symbol};

use super::*;

fn sizes(request: usize, response: usize) -> Option<LimitSet> {
    Some(LimitSet { request: Some(request), response: Some(response), ..LimitSet::default() })
}

#[tokio::test(start_paused = true)]
async fn parameters_and_results() {
    let rig =
        Rig::of(LimitScopes { tenant: sizes(100, 40), tool: sizes(1000, 30), ..LimitScopes::default() });
    let large =
        call_with("reef/ann", &format!(r#"{{"name":"x","arguments":{{"text":"{}"}}}}"#, "x".repeat(100)));
    let error = rig.refused(&large);
    assert_eq!((error.symbol(), error.is_unexecuted()), (Symbol::TooLarge, true));
    let size = large.params.as_str().len();
    assert_eq!(
        said(&error),
        format!(
            r#"The parameters have {size} bytes, more than the limit of 100 for calls for your organisation. Send less, for example in parts {{"symbol":"TOO_LARGE","limit":{{"scope":"tenant","request":100}},"remaining":0}}"#
        )
    );
    let answer = |bytes: usize| Reply::Complete(Json::string(&"x".repeat(bytes - 2)));
    rig.pass(&call("reef/ann")).answered(&answer(30)).unwrap();
    let error = rig.pass(&call("reef/ann")).answered(&answer(31)).unwrap_err();
    assert!(
        error.message().contains("31 bytes, more than the limit of 30 for calls of this tool"),
        "{error}"
    );
    assert!(!error.is_unexecuted(), "it was");
    assert_eq!(error.code(Revision::LATEST_MODERN), -32603);
    rig.pass(&call("reef/ann")).answered(&Reply::Error(Error::internal())).unwrap();
}
