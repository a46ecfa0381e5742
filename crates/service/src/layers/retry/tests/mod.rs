mod layer;
mod policy;
