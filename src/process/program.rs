//! A program: found before it is needed, started as often as it is.

use std::{
    env,
    ffi::OsString,
    fmt, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::{Child, Command};

/// What a program inherits of the server's environment; everything else may hold secrets.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// A program that is wanted, as the configuration has it.
#[derive(Clone)]
pub struct Wanted {
    /// A name, which is looked up on the PATH, or a path.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables beside those that it inherits.
    pub env: Vec<(String, String)>,
    /// The folder it runs in.
    pub cwd: PathBuf,
}

/// Why a program cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The key of the configuration that names what is missing.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
}

/// A program that is there.
#[derive(Clone)]
pub struct Program {
    path: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    cwd: PathBuf,
}

impl Program {
    /// Finds the program and its folder.
    ///
    /// # Errors
    ///
    /// What does not exist.
    pub fn find(wanted: Wanted) -> Result<Self, Vec<Missing>> {
        match (find_program(&wanted), find_folder(&wanted.cwd)) {
            (Ok(path), Ok(cwd)) => Ok(Self { path, args: wanted.args, env: wanted.env, cwd }),
            (path, cwd) => {
                let path = path.err().map(|message| Missing { key: "command", message });
                let cwd = cwd.err().map(|message| Missing { key: "cwd", message });
                Err(path.into_iter().chain(cwd).collect())
            }
        }
    }

    /// For the log.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Starts it in a process group of its own, so that nothing it starts outlives it.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn start(&self) -> io::Result<Child> {
        let inherited =
            INHERITED.iter().filter_map(|name| env::var_os(name).map(|value| (name, value)));
        Command::new(&self.path)
            .args(&self.args)
            .env_clear()
            .envs(inherited)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.cwd)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

impl fmt::Debug for Wanted {
    /// Its arguments and its environment may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted").field("command", &self.command).finish_non_exhaustive()
    }
}

impl fmt::Debug for Program {
    /// Its arguments and its environment may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("path", &self.path).finish_non_exhaustive()
    }
}

fn find_program(wanted: &Wanted) -> Result<PathBuf, String> {
    let command = &wanted.command;
    if command.components().count() > 1 || command.is_absolute() {
        return at_path(command);
    }
    let own = wanted.env.iter().find(|(name, _)| name == "PATH");
    let path = own.map(|(_, value)| OsString::from(value)).or_else(|| env::var_os("PATH"));
    let path = path.unwrap_or_default();
    let found = env::split_paths(&path).find_map(|folder| at_path(&folder.join(command)).ok());
    found.ok_or_else(|| {
        format!(
            "the program `{}` is missing: it is not on the PATH and must be installed (the \
             container image holds neither Python nor Node; README.md shows how to add them)",
            command.display()
        )
    })
}

/// Absolute, since the program starts in another folder than this process.
fn at_path(path: &Path) -> Result<PathBuf, String> {
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    match std::fs::metadata(&path) {
        Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => Ok(path),
        Ok(_) => Err(format!("{} is not a file that can be executed", path.display())),
        Err(error) => Err(format!("the program {} is missing: {error}", path.display())),
    }
}

fn find_folder(path: &Path) -> Result<PathBuf, String> {
    let here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let path = std::path::absolute(here).map_err(|error| error.to_string())?;
    match path.is_dir() {
        true => Ok(path),
        false => Err(format!("there is no folder {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn wanted(command: impl Into<PathBuf>) -> Wanted {
        let cwd = PathBuf::new();
        Wanted { command: command.into(), args: Vec::new(), env: Vec::new(), cwd }
    }

    fn faults(wanted: Wanted) -> Vec<String> {
        let faults = Program::find(wanted).unwrap_err();
        faults.into_iter().map(|Missing { key, message }| format!("{key}: {message}")).collect()
    }

    #[test]
    fn a_program_that_is_not_there_is_said_to_be_missing_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = folder.path().join("nowhere");
        let missing = Wanted { cwd: nowhere.clone(), ..wanted("no-such-program") };
        assert_eq!(
            faults(missing),
            [
                "command: the program `no-such-program` is missing: it is not \
                 on the PATH and must be installed (the container image holds neither Python nor \
                 Node; README.md shows how to add them)"
                    .to_owned(),
                format!("cwd: there is no folder {}", nowhere.display()),
            ]
        );
        assert_eq!(
            faults(wanted(&nowhere)),
            [format!(
                "command: the program {} is missing: No such file or directory \
                 (os error 2)",
                nowhere.display()
            )]
        );
        fs::write(&nowhere, "text").unwrap();
        assert_eq!(
            faults(wanted(&nowhere)),
            [format!("command: {} is not a file that can be executed", nowhere.display())]
        );
    }

    #[test]
    fn a_name_is_looked_up_on_the_path_that_the_program_gets() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("mine");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("/nowhere:{}", folder.path().display());
        let env = vec![("PATH".to_owned(), path)];
        let found = Program::find(Wanted { env, ..wanted("mine") }).unwrap();
        assert_eq!(found.path, program);
        assert!(Program::find(wanted("mine")).is_err());
    }
}
