//! [`Table`]: what came of it all.

use std::fmt::Write as _;

/// What came of a step of one client with one mount.
pub(crate) struct Cell {
    pub(crate) server: &'static str,
    pub(crate) mount: String,
    pub(crate) step: &'static str,
    /// What was got in place of what was expected.
    pub(crate) fault: Option<String>,
}

/// Steps that cannot work with a server, whoever the client is, and why.
pub(crate) struct Exception {
    pub(crate) server: &'static str,
    pub(crate) steps: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// Clients, and the cells of each.
pub(crate) struct Table {
    exceptions: &'static [Exception],
    /// What may be got in place of what was expected: a clear refusal.
    refusals: &'static [&'static str],
    rows: Vec<(String, Vec<Cell>)>,
}

impl Table {
    pub(crate) fn new(exceptions: &'static [Exception]) -> Table {
        Table { exceptions, refusals: &[], rows: Vec::new() }
    }

    /// The same, where a step may also come to one of these.
    pub(crate) fn or_refused(self, refusals: &'static [&'static str]) -> Table {
        Table { refusals, ..self }
    }

    pub(crate) fn add(&mut self, client: &str, cells: Vec<Cell>) {
        self.rows.push((client.to_owned(), cells));
    }

    fn exception(&self, cell: &Cell) -> Option<&Exception> {
        self.exceptions.iter().find(|e| e.server == cell.server && e.steps.contains(&cell.step))
    }

    /// Prints the table, and fails if anything is not as it has to be.
    pub(crate) fn verdict(&self) {
        let mut wrong = Vec::new();
        let mut text = String::new();
        for (client, cells) in &self.rows {
            let mut mounts: Vec<&str> = cells.iter().map(|cell| cell.mount.as_str()).collect();
            mounts.sort_unstable();
            mounts.dedup();
            let _ = writeln!(text, "{client}");
            for mount in mounts {
                let of_it: Vec<_> = cells.iter().filter(|cell| cell.mount == mount).collect();
                let words = of_it.iter().map(|cell| match (&cell.fault, self.exception(cell)) {
                    (None, None) => cell.step.to_owned(),
                    (Some(_), Some(_)) => format!("({})", cell.step),
                    (Some(fault), None) if self.refusals.iter().any(|one| fault.contains(one)) => {
                        format!("{} (refused)", cell.step)
                    }
                    (Some(fault), None) => {
                        wrong.push(format!("{client} with {mount}: {}: {fault}", cell.step));
                        format!("{}!", cell.step)
                    }
                    (None, Some(exception)) => {
                        wrong.push(format!(
                            "{client} with {mount}: {} works, but is listed as an exception: {}",
                            cell.step, exception.why
                        ));
                        format!("{}?", cell.step)
                    }
                });
                let _ = writeln!(text, "  {mount:<22} {}", words.collect::<Vec<_>>().join(" "));
            }
        }
        for Exception { server, steps, why } in self.exceptions {
            let _ = writeln!(text, "without {} at {server}: {why}", steps.join(", "));
        }
        eprintln!("{text}");
        let all: usize = self.rows.iter().map(|(_, cells)| cells.len()).sum();
        assert!(wrong.is_empty(), "{} of {all} cells are wrong\n{}", wrong.len(), wrong.join("\n"));
    }
}
