mod layer;
mod state;
