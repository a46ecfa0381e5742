//! The `tidegate` command. What it does is in the library beside it.

use std::process::ExitCode;

/// A tenth of what a call costs would otherwise be the finding and giving back of memory. Huge pages are off, because
/// the first of them alone would double what an idle gateway holds; child processes inherit that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tidegate_command::main(tidegate_command::builtins())
}
