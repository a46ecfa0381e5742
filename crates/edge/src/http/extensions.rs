//! What the edge and the layers around it tell each other in the extensions of requests and responses.

/// Marks a response whose body is a stream that belongs to no single request: the standalone stream of a legacy session, that
/// of the HTTP+SSE transport, or a modern `subscriptions/listen`. It is open for as long as the client likes, so whoever
/// knows until when the client may be served has to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenEnded;

/// The scopes that a request would have needed, beside a response with status 403: for a layer that knows where tokens for
/// them are to be had, and says so in a [`Challenge`](super::Challenge).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredScopes(pub Vec<String>);
