//! [`Reader`]: what a client has not read yet of its answers counts for its principal.

use std::pin::Pin;
use std::task::{Context, Poll};

use ::http::Response;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use pin_project_lite::pin_project;
use tidegate_service::Principal;
use tidegate_service::budget::{Budget, FREE, Share};

/// Who reads an answer, if there are shares and it has one.
pub(super) struct Reader(Option<Principal>);

impl Reader {
    pub(super) fn of(principal: &Principal) -> Reader {
        let has_share = principal.subject.is_some() && Budget::of_process().share().is_some();
        Reader(has_share.then(|| principal.clone()))
    }

    /// The same answer; what is large of it is counted until it is read. Small ones pass as they are.
    pub(super) fn counted(self, answer: Response<Body>) -> Response<Body> {
        match self.0 {
            Some(principal) if answer.body().size_hint().upper().is_none_or(|size| size > FREE as u64) => {
                let share = Budget::of_process().share_of(&principal);
                answer.map(|body| Body::new(Counted { body, share }))
            }
            _ => answer,
        }
    }
}

pin_project! {
    struct Counted {
        #[pin]
        body: Body,
        share: Share,
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.project();
        let frame = std::task::ready!(this.body.poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|data| this.share.keep(data)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
