//! What servers tell: which notice a notification is.

use tidegate_protocol::{Notification, Object, meta};
use tidegate_service::Notice;

/// A change notification.
pub(crate) fn notice_of(notification: &Notification) -> Option<Notice> {
    Some(match notification.method.as_str() {
        "notifications/tools/list_changed" => Notice::ToolsChanged,
        "notifications/prompts/list_changed" => Notice::PromptsChanged,
        "notifications/resources/list_changed" => Notice::ResourcesChanged,
        "notifications/resources/updated" => {
            Notice::ResourceUpdated(notification.params.str("uri")?.as_ref().into())
        }
        "notifications/tasks" => Notice::Task {
            id: notification.params.str("taskId")?.as_ref().into(),
            task: notification.params.without(&["_meta"]),
        },
        _ => return None,
    })
}

/// A notification that no revision defines, or none that anybody here has a use for, as it came.
///
/// Those that belong to a session or a request stay with us: to another one they would mean something else.
pub(crate) fn other_notice(notification: &Notification) -> Option<Notice> {
    let method = notification.method.as_str();
    let ours = matches!(
        method,
        "notifications/progress"
            | "notifications/message"
            | "notifications/cancelled"
            | "notifications/initialized"
            | "notifications/roots/list_changed"
            | "notifications/subscriptions/acknowledged"
    );
    if ours || method.starts_with("notifications/tasks") || notice_of(notification).is_some() {
        return None;
    }
    Some(Notice::Other { method: method.into(), params: as_it_came(notification) })
}

/// The parameters, without the name of our own subscription.
fn as_it_came(notification: &Notification) -> Option<tidegate_protocol::Json> {
    let params = notification.params.object();
    let tagged = notification.params.meta().filter(|own| own.has(meta::SUBSCRIPTION_ID));
    let params = match tagged {
        Some(own) => match own.without(&[meta::SUBSCRIPTION_ID]) {
            rest if rest.as_str() == "{}" => params.without(&["_meta"]),
            rest => params.with("_meta", &rest),
        },
        None => params.to_json(),
    };
    Object::of(&params).is_some_and(|params| !params.is_empty()).then_some(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_protocol::{Incoming, Limits, Message};

    fn other(text: &str) -> Option<(String, Option<String>)> {
        let Ok(Incoming::One(Message::Notification(told))) =
            Incoming::parse(text.to_owned().into(), &Limits::default())
        else {
            panic!("{text}")
        };
        match other_notice(&told)? {
            Notice::Other { method, params } => {
                Some((method.to_string(), params.map(|params| params.as_str().to_owned())))
            }
            notice => panic!("{notice:?}"),
        }
    }

    #[test]
    fn only_what_nobody_knows_is_passed_on_and_as_it_came() {
        for known in ["progress", "message", "cancelled", "tools/list_changed", "tasks/status", "tasks"] {
            assert_eq!(
                other(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/{known}","params":{{}}}}"#)),
                None
            );
        }
        let vendor =
            |params: &str| other(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/x"{params}}}"#));
        let name = || "notifications/x".to_owned();
        assert_eq!(vendor(""), Some((name(), None)));
        let odd = r#"{ "n" : 1.0, "_meta":{"k": 1} }"#;
        assert_eq!(vendor(&format!(r#","params":{odd}"#)), Some((name(), Some(odd.into()))));
        let tagged = r#","params":{"n": 1.0,"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}"#;
        assert_eq!(vendor(tagged), Some((name(), Some(r#"{"n": 1.0}"#.into()))));
    }
}
