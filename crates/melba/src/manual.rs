//! Shell completions and man pages, made from the command line's own description.

use std::path::Path;

use clap::Command;

/// Writes the completions of a shell to standard output.
pub fn complete(shell: clap_complete::Shell, mut command: Command) {
    clap_complete::generate(shell, &mut command, "melba", &mut std::io::stdout());
}

/// Writes melba.1 and a page for each subcommand into a directory, which is created when it is missing.
pub fn write(directory: &Path, command: Command) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", directory.display());
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(command, directory).map_err(failed)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    #[test]
    fn every_subcommand_has_a_page() {
        let command = Cli::command();
        command.clone().debug_assert();
        let folder = tempfile::tempdir().expect("creates");
        let directory = folder.path().join("man1");
        write(&directory, command.clone()).expect("writes");
        for subcommand in command.get_subcommands() {
            let page = std::fs::read_to_string(directory.join(format!("melba-{}.1", subcommand.get_name()))).expect("is there");
            assert!(page.contains(".SH OPTIONS") || page.contains(".SH SYNOPSIS"), "{page}");
        }
        assert!(directory.join("melba.1").is_file());
    }
}
