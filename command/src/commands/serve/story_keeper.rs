//! [`StoryKeeper`]: what happened to the latest calls is kept while the gateway runs, and in a file if the configuration names one.

use std::sync::Arc;

use tidegate_config::StorySettings;
use tidegate_service::events::{self, Recorder};
use tidegate_telemetry::Stories;

/// Keeps stories of calls until it is ended.
pub(super) struct StoryKeeper {
    stories: Arc<Stories>,
    recorder: Arc<dyn Recorder>,
    has_bodies: bool,
}

impl StoryKeeper {
    /// Begins to keep stories; `None` if the configuration wants none. What the file has of earlier processes is known from now on.
    pub(super) fn start(settings: &StorySettings) -> Option<StoryKeeper> {
        if settings.room == 0 {
            return None;
        }
        let mut stories = Stories::new(settings.room).with_bodies(settings.bodies);
        if let Some(path) = &settings.file {
            let wrong;
            (stories, wrong) = stories.with_file(path.clone(), settings.room);
            if let Some(error) = wrong {
                tracing::warn!("Stories of earlier calls cannot be read from {}: {error}", path.display());
            }
        }
        let stories = Arc::new(stories);
        let recorder: Arc<dyn Recorder> = stories.clone();
        events::add(recorder.clone());
        Some(StoryKeeper { stories, recorder, has_bodies: settings.bodies.is_some() })
    }

    /// Whether they have the arguments and results of calls.
    pub(super) fn has_bodies(&self) -> bool {
        self.has_bodies
    }

    /// The stories.
    pub(super) fn stories(&self) -> &Arc<Stories> {
        &self.stories
    }

    /// Keeps no more stories, and waits until those that there are are in the file.
    pub(super) fn end(&self) {
        events::remove(&self.recorder);
        self.stories.close();
    }
}
