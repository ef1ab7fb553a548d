//! Completions, manual pages and the installation of both, in the shells themselves.
#![cfg(unix)]

use std::{env, fs, path::Path, process::Command};

use predicates::str::contains;

use crate::{
    asserts::{assert_contains, assert_exists},
    common::{gpuproc, program, works},
};

/// The output of `script` in `shell` in a folder of files; `None` if the shell is not installed.
fn in_shell(shell: &[&str], folder: &Path, script: &str) -> Option<Vec<String>> {
    let program = program();
    let bin = Path::new(&program).parent().unwrap();
    let path = format!("{}:{}", bin.display(), env::var("PATH").unwrap());
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(script).current_dir(folder).env("PATH", path);
    command.env("HOME", folder).env_remove("GPUPROC_DEVICE");
    let output = match command.output() {
        Ok(output) => output,
        Err(_) => {
            crate::harness::ignore("no such shell");
            return None;
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.trim_end().to_owned()).collect())
}

/// A folder with a picture and a folder in it.
pub fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    image::RgbImage::new(8, 6).save(folder.path().join("photo.png")).unwrap();
    fs::create_dir(folder.path().join("photos")).unwrap();
    folder
}

/// Command lines, and some completions of their last word.
const COMPLETED: [(&str, &[&str]); 9] = [
    ("gpuproc hist", &["histogram"]),
    ("gpuproc blur pho", &["photo.png", "photos/"]),
    ("gpuproc blur photo.png -o pho", &["photo.png", "photos/"]),
    ("gpuproc blur photo.png --edge mi", &["mirror"]),
    ("gpuproc mesh --dtype u1", &["u16"]),
    ("gpuproc sort --device c", &["cpu"]),
    ("gpuproc bench tr", &["transfer"]),
    ("gpuproc histogram --channels r,lu", &["r,luma"]),
    ("gpuproc scan --op pro", &["product"]),
];

fn assert_completed(shell: &str, complete: impl Fn(&str) -> Option<Vec<String>>) {
    for (line, expected) in COMPLETED {
        let Some(found) = complete(line) else { return };
        for word in expected {
            assert!(found.iter().any(|found| found == word), "{shell}: {line}: {found:?}");
        }
        assert!(found.len() < 6, "{shell}: {line}: {found:?}");
    }
}

#[test]
fn bash_completes_commands_flags_values_and_files() {
    let folder = files();
    assert_completed("bash", |line| {
        // The variables that bash sets before it calls the completion function.
        let script = format!(
            "source <(gpuproc completions bash); COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             COMP_TYPE=9; _clap_complete_gpuproc gpuproc \"${{COMP_WORDS[COMP_CWORD]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        in_shell(&["bash", "--norc", "-c"], folder.path(), &script)
    });
}

#[test]
fn fish_completes_commands_flags_values_and_files() {
    let folder = files();
    assert_completed("fish", |line| {
        let script =
            format!("gpuproc completions fish | source; complete --do-complete '{line}' | cut -f1");
        in_shell(&["fish", "--no-config", "-c"], folder.path(), &script)
    });
}

#[test]
fn zsh_completes_commands_flags_values_and_files() {
    let folder = files();
    assert_completed("zsh", |line| {
        // Call the function that the script defines, and print its list.
        let script = format!(
            "compdef() {{ : }}; _describe() {{ local -a all; all=(\"${{(@P)3}}\"); \
             [[ $3 == dirs ]] && all=(\"${{all[@]/%//}}\"); print -rl -- \"${{(@)all%%:*}}\" }}; \
             source <(gpuproc completions zsh); words=({line}); CURRENT=${{#words}}; \
             _clap_dynamic_completer_gpuproc"
        );
        in_shell(&["zsh", "--no-rcs", "-c"], folder.path(), &script)
    });
}

#[test]
fn powershell_completes_values() {
    let output = gpuproc().args(["completions", "powershell"]).assert().success();
    let script = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(script.contains("Register-ArgumentCompleter -Native -CommandName gpuproc"), "{script}");
    gpuproc()
        .env("GPUPROC_COMPLETE", "powershell")
        .args(["--", "gpuproc", "blur", "--edge", "mi"])
        .assert()
        .success()
        .stdout("mirror\n");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    gpuproc().arg("man").assert().success().stdout(contains(".TH gpuproc 1"));
    works(folder.path(), "man pages");
    let page = |name: &str| fs::read_to_string(folder.path().join("pages").join(name)).unwrap();
    assert_contains(&page("man1/gpuproc.1"), "Exit codes");
    for (name, flag) in [("blur", "sigma"), ("mesh", "iso"), ("man", "device")] {
        let page = page(&format!("man1/gpuproc-{name}.1"));
        assert!(page.contains(&format!("\\fB\\-\\-{flag}\\fR")), "{page}");
        // Examples keep their lines.
        assert!(page.contains(".SH EXAMPLES\n.PP\n.RS 4\n.nf\n  gpuproc "), "{page}");
    }
    // The guide: the chapter of a command ends its page, and other chapters are pages of their own.
    assert_contains(&page("man1/gpuproc-mesh.1"), ".SS \"Labels\"");
    assert!(page("man7/gpuproc-volumes.7").starts_with(".TH gpuproc\\-volumes 7\n"));
    assert_contains(&page("man1/gpuproc.1"), ".BR gpuproc\\-volumes (7)");
    for entry in ['1', '7']
        .iter()
        .flat_map(|n| fs::read_dir(folder.path().join(format!("pages/man{n}"))).unwrap())
    {
        let path = entry.unwrap().path();
        let mut troff = Command::new("groff");
        let Ok(output) = troff.args(["-k", "-man", "-ww", "-Tutf8", "-z"]).arg(&path).output()
        else {
            return crate::harness::ignore("no groff");
        };
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(complaints.is_empty(), "{}: {complaints}", path.display());
    }
}

#[test]
fn man_finds_commands_and_chapters_in_the_installed_pages() {
    let folder = tempfile::tempdir().unwrap();
    works(folder.path(), "man share/man");
    for (page, line) in [
        ("gpuproc-blur", "gpuproc blur photo.jpg -o soft.jpg --sigma 8"),
        ("gpuproc-volumes", "NIfTI"),
    ] {
        let mut man = Command::new("man");
        man.args(["-M", "share/man", page]).current_dir(folder.path()).env("MANWIDTH", "120");
        let Ok(output) = man.env("MANROFFOPT", "-c").output() else {
            return crate::harness::ignore("no man");
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.contains("unminimize") {
            return crate::harness::ignore("man is a stub");
        }
        assert!(text.lines().any(|found| found.contains(line)), "{page}: {text}");
    }
}

#[test]
fn completions_are_installed_where_shells_look() {
    let home = tempfile::tempdir().unwrap();
    for (shell, file) in [
        ("bash", ".local/share/bash-completion/completions/gpuproc"),
        ("zsh", ".local/share/zsh/site-functions/_gpuproc"),
        ("fish", ".config/fish/completions/gpuproc.fish"),
    ] {
        let file = home.path().join(file);
        let install = |variable: &str, value: &Path| {
            let mut command = gpuproc();
            command.env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
            command.env(variable, value).args(["completions", shell, "--install"]).assert()
        };
        install("HOME", home.path()).success().stdout(format!("{}\n", file.display()));
        let printed = gpuproc().args(["completions", shell]).assert().success();
        assert_eq!(fs::read(&file).unwrap(), printed.get_output().stdout, "{shell}");
    }
    gpuproc().args(["completions", "elvish", "--install"]).assert().code(2);
    let data = home.path().join("data");
    gpuproc()
        .env("XDG_DATA_HOME", &data)
        .args(["completions", "bash", "--install"])
        .assert()
        .success();
    assert_exists(data.join("bash-completion/completions/gpuproc"));
}

#[test]
fn zsh_completes_at_the_first_tab_after_an_installation() {
    let folder = files();
    works(folder.path(), "completions zsh");
    // An autoloaded function is the script itself; the first call must complete.
    let script = "mkdir f; gpuproc completions zsh > f/_gpuproc; fpath=($PWD/f $fpath); \
                  autoload -Uz _gpuproc; compdef() { : }; \
                  _describe() { local -a all; all=(\"${(@P)3}\"); print -rl -- \"${(@)all%%:*}\" }; \
                  words=(gpuproc hist); CURRENT=2; _gpuproc";
    let Some(found) = in_shell(&["zsh", "--no-rcs", "-c"], folder.path(), script) else { return };
    assert!(found.iter().any(|word| word == "histogram"), "{found:?}");
}
