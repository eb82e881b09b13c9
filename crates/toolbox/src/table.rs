//! The table of applets.

use std::io::Write;

use crate::applets::{
    chmod, copy, date, dd, echo, grep, hog, httpd, identity, kill, lines, ls, names, printf, ps,
    remove, sleep, space, stat, tail, tar, test, text, wget,
};
use crate::outcome::Outcome;
use crate::sh;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Applet {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    /// One line that starts with a verb.
    pub(crate) purpose: &'static str,
    pub(crate) run: fn(&[Vec<u8>], &mut dyn Write) -> Outcome,
}

const fn applet(
    name: &'static str,
    usage: &'static str,
    purpose: &'static str,
    run: fn(&[Vec<u8>], &mut dyn Write) -> Outcome,
) -> Applet {
    Applet {
        name,
        usage,
        purpose,
        run,
    }
}

/// All applets, by name. The image has a link in `/bin` for each.
pub(crate) const APPLETS: &[Applet] = &[
    applet(
        "[",
        "[ EXPRESSION ]",
        "Evaluates a condition.",
        test::run_bracket,
    ),
    applet(
        "basename",
        "basename PATH [SUFFIX]",
        "Prints the last part of a path.",
        names::basename,
    ),
    applet("cat", "cat [-u] [FILE…]", "Prints files.", text::cat),
    applet(
        "chmod",
        "chmod [-R] MODE FILE…",
        "Changes permissions.",
        chmod::run,
    ),
    applet(
        "cp",
        "cp [-rRafp] SOURCE… TARGET",
        "Copies files and directories.",
        copy::cp,
    ),
    applet(
        "cut",
        "cut [-s] [-d C] -f LIST | -c LIST [FILE…]",
        "Prints parts of lines.",
        lines::cut,
    ),
    applet(
        "date",
        "date [-u] [+FORMAT]",
        "Prints the time, in UTC.",
        date::run,
    ),
    applet(
        "dd",
        "dd [if=FILE] [of=FILE] [bs=SIZE] [count=N] [skip=N] [seek=N] [conv=notrunc,fsync]",
        "Copies blocks.",
        dd::run,
    ),
    applet(
        "df",
        "df [-h] [-i] [PATH…]",
        "Prints how much space file systems have.",
        space::df,
    ),
    applet(
        "dirname",
        "dirname PATH",
        "Prints a path without its last part.",
        names::dirname,
    ),
    applet(
        "du",
        "du [-shka] [PATH…]",
        "Prints how much space files take.",
        space::du,
    ),
    applet("echo", "echo [-neE] [TEXT…]", "Prints text.", echo::run),
    applet(
        "env",
        "env [-i] [-u NAME] [NAME=VALUE…] [PROGRAM ARGUMENT…]",
        "Prints the environment, or runs a program in another.",
        names::env,
    ),
    applet("false", "false", "Fails.", |_, _| Ok(1)),
    applet(
        "grep",
        "grep [-EFvicnqlhHoxws] [-m N] [-e] PATTERN [FILE…]",
        "Prints lines that match a pattern.",
        grep::run,
    ),
    applet(
        "head",
        "head [-n N | -c N] [FILE…]",
        "Prints the first lines.",
        text::head,
    ),
    applet(
        "hog",
        "hog --rate SIZE [--limit SIZE] [--start SIZE] [--hold | --exit]",
        hog::PURPOSE,
        hog::run,
    ),
    applet(
        "hostname",
        "hostname",
        "Prints the name of the host.",
        identity::hostname,
    ),
    applet(
        "httpd",
        "httpd [-fv] [-p [ADDRESS:]PORT] [-h DIRECTORY]",
        "Serves the files of a directory over HTTP.",
        httpd::run,
    ),
    applet(
        "id",
        "id [-u | -g] [-n]",
        "Prints the user and the group.",
        identity::id,
    ),
    applet(
        "kill",
        "kill [-s SIGNAL | -SIGNAL] PROCESS… | -l",
        "Sends a signal to processes.",
        kill::run,
    ),
    applet("ln", "ln [-sfn] TARGET [LINK]", "Makes a link.", copy::ln),
    applet(
        "ls",
        "ls [-lahdnAF1] [PATH…]",
        "Lists directories.",
        ls::run,
    ),
    applet(
        "mkdir",
        "mkdir [-p] [-m MODE] DIRECTORY…",
        "Makes directories.",
        names::mkdir,
    ),
    applet(
        "mv",
        "mv [-f] SOURCE… TARGET",
        "Moves files and directories.",
        copy::mv,
    ),
    applet(
        "printf",
        "printf FORMAT [ARGUMENT…]",
        "Prints formatted text.",
        printf::run,
    ),
    applet("ps", "ps [-ef | aux]", "Lists the processes.", ps::run),
    applet("pwd", "pwd", "Prints the working directory.", names::pwd),
    applet(
        "readlink",
        "readlink [-f] PATH",
        "Prints what a link points to.",
        names::readlink,
    ),
    applet(
        "rm",
        "rm [-rRf] PATH…",
        "Removes files and directories.",
        remove::rm,
    ),
    applet(
        "rmdir",
        "rmdir DIRECTORY…",
        "Removes empty directories.",
        remove::rmdir,
    ),
    applet(
        "seq",
        "seq [FIRST [STEP]] LAST",
        "Prints numbers.",
        text::seq,
    ),
    applet(
        "sh",
        "sh [-aCefinsux] [-o OPTION] [-c COMMANDS | FILE] [ARGUMENT…]",
        "Executes commands.",
        sh::run,
    ),
    applet(
        "sleep",
        "sleep DURATION…",
        "Waits: seconds, with s, m, h or d, or infinity.",
        sleep::run,
    ),
    applet(
        "sort",
        "sort [-rnu] [FILE…]",
        "Prints lines in order.",
        lines::sort,
    ),
    applet(
        "stat",
        "stat [-c FORMAT] PATH…",
        "Prints what is known about files.",
        stat::run,
    ),
    applet(
        "tail",
        "tail [-f] [-n [+]N | -c [+]N] [FILE…]",
        "Prints the last lines.",
        tail::run,
    ),
    applet(
        "tar",
        "tar c|x|t [-vmopf FILE] [-C DIRECTORY] [--strip-components N] [PATH…]",
        "Packs and unpacks archives.",
        tar::run,
    ),
    applet(
        "tee",
        "tee [-a] [FILE…]",
        "Copies the input to the output and to files.",
        text::tee,
    ),
    applet(
        "test",
        "test EXPRESSION",
        "Evaluates a condition.",
        test::run,
    ),
    applet(
        "touch",
        "touch [-c] FILE…",
        "Sets the time of files, and makes missing ones.",
        names::touch,
    ),
    applet(
        "tr",
        "tr [-cds] SET [SET]",
        "Replaces or deletes characters.",
        lines::tr,
    ),
    applet("true", "true", "Succeeds.", |_, _| Ok(0)),
    applet(
        "uname",
        "uname [-asnrm]",
        "Prints the name of the system.",
        identity::uname,
    ),
    applet(
        "uniq",
        "uniq [-c] [FILE]",
        "Prints runs of equal lines once.",
        lines::uniq,
    ),
    applet(
        "wc",
        "wc [-lwc] [FILE…]",
        "Counts lines, words and bytes.",
        text::wc,
    ),
    applet(
        "wget",
        "wget [-q] [-O FILE] [-T SECONDS] [-S] [--spider] [--header LINE] URL…",
        "Fetches files over HTTP.",
        wget::run,
    ),
    applet(
        "whoami",
        "whoami",
        "Prints the name of the user.",
        identity::whoami,
    ),
    applet(
        "yes",
        "yes [TEXT…]",
        "Prints a line until it is stopped.",
        text::yes,
    ),
];

pub(crate) fn find(name: &[u8]) -> Option<&'static Applet> {
    APPLETS.iter().find(|applet| applet.name.as_bytes() == name)
}
