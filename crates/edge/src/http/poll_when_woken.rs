//! A call is polled when something happens to it, and only then.
//!
//! hyper polls the service whenever anything wakes its connection, and it wakes the connection itself each time a piece
//! of a request body is taken. Without this, every call would go once more through all layers for nothing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use pin_project_lite::pin_project;

pin_project! {
    /// A future with a waker of its own.
    pub(super) struct PollWhenWoken<F> {
        #[pin]
        inner: F,
        own: Option<(Arc<Own>, Waker)>,
    }
}

struct Own {
    /// Whether the future has been woken since it was last polled.
    woken: AtomicBool,
    /// The task that it is a part of.
    task: Waker,
}

impl Wake for Own {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

impl<F> PollWhenWoken<F> {
    pub(super) fn new(inner: F) -> PollWhenWoken<F> {
        PollWhenWoken { inner, own: None }
    }
}

impl<F: Future> Future for PollWhenWoken<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let (own, waker) = match this.own {
            Some(own) if own.0.task.will_wake(cx.waker()) => own,
            // The first time, or in another task: nobody has been told yet whom to wake.
            own => {
                let new = Arc::new(Own { woken: AtomicBool::new(true), task: cx.waker().clone() });
                let waker = new.clone().into();
                own.insert((new, waker))
            }
        };
        if !own.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        this.inner.poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    /// Wakes nobody; two of them are two tasks.
    struct Task;

    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn polled_once_for_each_wake() {
        let (polls, waker) = (AtomicUsize::new(0), Mutex::new(None));
        let inner = poll_fn(|cx| {
            *waker.lock().unwrap() = Some(cx.waker().clone());
            match polls.fetch_add(1, Ordering::Relaxed) {
                2 => Poll::Ready("done"),
                _ => Poll::Pending,
            }
        });
        let mut future = std::pin::pin!(PollWhenWoken::new(inner));
        let task = Waker::from(Arc::new(Task));
        let mut cx = Context::from_waker(&task);
        for _ in 0..3 {
            assert!(future.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1, "nothing happened to it");
        let wake = || waker.lock().unwrap().take().unwrap().wake();
        wake();
        assert!(future.as_mut().poll(&mut cx).is_pending());
        wake();
        assert_eq!(future.as_mut().poll(&mut cx), Poll::Ready("done"));
    }

    #[test]
    fn another_task_polls_anew() {
        let polls = AtomicUsize::new(0);
        let inner = poll_fn(|_| -> Poll<()> {
            polls.fetch_add(1, Ordering::Relaxed);
            Poll::Pending
        });
        let mut future = std::pin::pin!(PollWhenWoken::new(inner));
        for _ in 0..2 {
            let task = Waker::from(Arc::new(Task));
            assert!(future.as_mut().poll(&mut Context::from_waker(&task)).is_pending());
        }
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }
}
