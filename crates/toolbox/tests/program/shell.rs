//! Scripts, what they print and how they end; beside the shell of this machine, if it has dash.

use std::path::Path;
use std::process::Command;

use crate::toolbox::{Toolbox, output, write};

/// A script, its output and its status. All of them mean the same in dash.
const SCRIPTS: &[(&str, &str, i32)] = &[
    // Words and quotes.
    ("echo a  b", "a b\n", 0),
    (r#"echo 'a  b' "c  d" e\ f"#, "a  b c  d e f\n", 0),
    (r#"echo "a'b" 'c"d' \"e"#, "a'b c\"d \"e\n", 0),
    (r#"x=1; echo "$x" '$x' \$x "\$x""#, "1 $x $x $x\n", 0),
    ("echo a\\\nb", "ab\n", 0),
    ("echo a # comment\necho b#c", "a\nb#c\n", 0),
    (
        r#"printf '[%s]' "" ''; printf '[%s]\n' a"" """#,
        "[][][a]\n[]\n",
        0,
    ),
    // Parameters.
    ("x=abc; echo ${x}d $x.d ${#x}", "abcd abc.d 3\n", 0),
    (
        "echo ${x:-d} ${x-e}; x=; echo ${x:-d} \"${x-e}\"",
        "d e\nd \n",
        0,
    ),
    ("echo ${x:=d} $x; echo ${x:+y}${z:+n}", "d d\ny\n", 0),
    (
        "x=a.b.c; echo ${x%.*} ${x%%.*} ${x#*.} ${x##*.}",
        "a.b a b.c c\n",
        0,
    ),
    (r#"x='a*b'; echo "${x%"*b"}" "${x#a}""#, "a *b\n", 0),
    (
        r#"echo "${x:-a b}" "${x:-"c  d"}" ${x:-'e  f'}"#,
        "a b c  d e  f\n",
        0,
    ),
    (
        "set -- a 'b c' d; echo $# $1 \"$2\" $3; shift; echo $*",
        "3 a b c d\nb c d\n",
        0,
    ),
    (
        r#"set -- a 'b c'; printf '<%s>' "$@" "$*" $*; echo"#,
        "<a><b c><a b c><a><b><c>\n",
        0,
    ),
    (
        r#"set --; printf '<%s>' x"$@"y "$@" "$*"; echo"#,
        "<xy><>\n",
        0,
    ),
    (
        r#"set -- a b; printf '<%s>' "x$@y"; echo; IFS=-; echo "$*""#,
        "<xa><by>\na-b\n",
        0,
    ),
    (
        "set -- 1 2 3 4 5 6 7 8 9 ten; echo $10 ${10}",
        "10 ten\n",
        0,
    ),
    ("false; echo $?; true; echo $?", "1\n0\n", 0),
    ("x='a b'; printf '<%s>' $x \"$x\"; echo", "<a><b><a b>\n", 0),
    (
        "x=a:b::c; IFS=:; printf '<%s>' $x; echo",
        "<a><b><><c>\n",
        0,
    ),
    ("unset x; : ${x?}; echo no", "", 2),
    ("set -u; echo $x; echo no", "", 2),
    ("set -u; echo ${x:-fine}", "fine\n", 0),
    ("readonly x=1; (x=2); echo $x", "1\n", 0),
    // Commands and arithmetic in words.
    (
        "echo $(echo a; echo b) \"$(printf 'c\\nd\\n\\n')\"",
        "a b c\nd\n",
        0,
    ),
    ("echo `echo a \\`echo b\\``", "a b\n", 0),
    (r#"echo "$(echo "a b" "$(echo 'c)')")""#, "a b c)\n", 0),
    ("x=$(false); echo $?; x=$(true)y; echo $? $x", "1\n0 y\n", 0),
    ("echo $(case a in a) echo b;; esac)", "b\n", 0),
    (
        "x=3; echo $((x * (2 + 1))) $(( $x << 2 )) $((1 ? 5 : 6))",
        "9 12 5\n",
        0,
    ),
    (
        "i=0; while [ $i -lt 3 ]; do i=$((i + 1)); done; echo $i",
        "3\n",
        0,
    ),
    (
        "echo $((x = 4)) $x; echo $((-7 / 2)) $((-7 % 2)) $((0x10)) $((010))",
        "4 4\n-3 -1 16 8\n",
        0,
    ),
    ("echo $(((1 + 2) * 3)) $( (echo sub) )", "9 sub\n", 0),
    // Lists and pipelines.
    (
        "true && echo a || echo b; false && echo c || echo d",
        "a\nd\n",
        0,
    ),
    ("! true; echo $?; ! false; echo $?", "1\n0\n", 0),
    (
        "echo a | cat | cat; false | true; echo $?; true | false; echo $?",
        "a\n0\n1\n",
        0,
    ),
    ("echo a |\ncat &&\necho b", "a\nb\n", 0),
    (
        "printf '3\\n1\\n2\\n' | while read x; do echo \"<$x>\"; done",
        "<3>\n<1>\n<2>\n",
        0,
    ),
    ("x=1; echo a | { read x; echo $x; }; echo $x", "a\n1\n", 0),
    (
        "sleep 0.01 & wait $!; echo $?; (exit 7) & wait $!; echo $?; wait; echo $?",
        "0\n7\n0\n",
        0,
    ),
    ("yes | head -n 1", "y\n", 0),
    (
        "seq 100000 | tail -n 1; seq 100000 | head -n 1",
        "100000\n1\n",
        0,
    ),
    // Compound commands.
    (
        "if false; then echo a; elif true; then echo b; else echo c; fi",
        "b\n",
        0,
    ),
    ("if false; then echo a; fi; echo $?", "0\n", 0),
    (
        "for x in a 'b c'; do echo $x; done; for x in; do echo no; done",
        "a\nb c\n",
        0,
    ),
    (
        "set -- p q; for x; do echo $x; done; for x\ndo echo $x$x; done",
        "p\nq\npp\nqq\n",
        0,
    ),
    (
        "for x in 1 2 3 4; do [ $x = 2 ] && continue; [ $x = 4 ] && break; echo $x; done",
        "1\n3\n",
        0,
    ),
    (
        "for x in 1 2; do for y in a b; do [ $y = b ] && continue 2; echo $x$y; done; done",
        "1a\n2a\n",
        0,
    ),
    (
        "while :; do while :; do break 2; done; done; echo out",
        "out\n",
        0,
    ),
    ("until false || true; do echo no; done; echo $?", "0\n", 0),
    (
        "case abc in x|a*) echo 1;; *) echo 2;; esac; case a in b) ;; esac; echo $?",
        "1\n0\n",
        0,
    ),
    (
        "case '*' in \\*) echo star;; esac; case x in '*') echo no;; (?) echo one;; esac",
        "star\none\n",
        0,
    ),
    (
        "x='[a]'; case '[a]' in \"$x\") echo quoted;; esac; case a in $x) echo set;; esac",
        "quoted\nset\n",
        0,
    ),
    (
        "{ echo a; echo b; } | cat; (x=2; echo $x); echo ${x:-none}",
        "a\nb\n2\nnone\n",
        0,
    ),
    (
        "(exit 3); echo $?; (cd /; pwd); (echo a)|cat",
        "3\n/\na\n",
        0,
    ),
    // Functions.
    (
        "f() { echo $1 $#; return 3; echo no; }; f a b; echo $?",
        "a 2\n3\n",
        0,
    ),
    ("f() (x=1; exit 4); f; echo $? ${x:-none}", "4 none\n", 0),
    (
        "x=1; f() { local x; x=2; g; }; g() { echo $x; }; f; echo $x",
        "2\n1\n",
        0,
    ),
    (
        "f() { [ $1 -gt 0 ] || return; echo $1; f $(($1 - 1)); }; f 3",
        "3\n2\n1\n",
        1,
    ),
    (
        "f() { echo out; echo err >&2; } 2>/dev/null; f; set -- z; f() { echo $1; }; f y; echo $1",
        "out\ny\nz\n",
        0,
    ),
    (
        "echo() { printf 'mine\\n'; }; echo x; command echo y; unset -f echo; echo z",
        "mine\ny\nz\n",
        0,
    ),
    // Redirects and here-documents.
    (
        "echo a > f; echo b >> f; cat < f; cat f - < /dev/null | wc -l",
        "a\nb\n2\n",
        0,
    ),
    (
        "echo err >&2 2>/dev/null; echo x 2>&1 >/dev/null; { echo out; echo err >&2; } 2>&1 | cat",
        "out\nerr\n",
        0,
    ),
    (
        "exec 3> f; echo three >&3; exec 3>&-; cat f; exec 4< f; cat <&4",
        "three\nthree\n",
        0,
    ),
    (
        "cat <<E\na $((1 + 1)) $(echo b) \\$x `echo c`\nE\necho d",
        "a 2 b $x c\nd\n",
        0,
    ),
    (
        "cat <<'E' | cat\n$x `y`\nE\ncat <<-E\n\t\ttabs\n\tE",
        "$x `y`\ntabs\n",
        0,
    ),
    ("cat <<A; cat <<B\na\nA\nb\nB", "a\nb\n", 0),
    ("x=$(cat <<E\nin\nE\n); echo $x", "in\n", 0),
    ("if true; then cat <<E; fi\n\"q\" 'r'\nE", "\"q\" 'r'\n", 0),
    (
        "seq 20000 > f; x=$(cat f); cat <<E | tail -n 1\n$x\nE",
        "20000\n",
        0,
    ),
    ("cat < /no/such/file; echo $?", "2\n", 0),
    ("echo a > /no/such/file || echo failed", "failed\n", 0),
    ("while read x; do echo $x; done <<E\n1\n2\nE", "1\n2\n", 0),
    (
        "set -C; echo a > f; echo b > f; echo $?; echo c >| f; cat f",
        "2\nc\n",
        0,
    ),
    // Pathnames.
    (
        "touch a1 a2 b1 .h; echo a* ?1 [!a]* *x .h*",
        "a1 a2 a1 b1 b1 *x .h\n",
        0,
    ),
    (
        "mkdir -p d/e; touch d/e/f; echo d/*/f */e '*' \"*\"",
        "d/e/f d/e * *\n",
        0,
    ),
    (
        "touch a; set -f; echo *; set +f; echo *; x='*'; echo $x \"$x\"",
        "*\na\na *\n",
        0,
    ),
    (
        "HOME=/h; echo ~ ~/x '~' x~; y=~/z; echo $y",
        "/h /h/x ~ x~\n/h/z\n",
        0,
    ),
    // Settings.
    (
        "set -e; false || true; if false; then :; fi; ! true; echo on; false; echo no",
        "on\n",
        1,
    ),
    (
        "set -e; f() { false; echo in; }; f && echo x; f; echo no",
        "in\nx\n",
        1,
    ),
    ("set -e; (false); echo no", "", 1),
    ("set -e; x=$(false); echo no", "", 1),
    (
        "set -e; while false; do :; done; true | false; echo no",
        "",
        1,
    ),
    ("set -ex; set +ex; echo $-", "\n", 0),
    (
        "exec 2>&1; set -x; echo a 'b c' >/dev/null; x=1",
        "+ echo a b c\n+ x=1\n",
        0,
    ),
    // Builtins.
    ("exit 300; echo no", "", 44),
    ("f() { exit 5; }; f; echo no", "", 5),
    ("eval 'x=1;' echo '$x'; eval; echo $?", "1\n0\n", 0),
    ("echo 'y=2; return 6' > s; . ./s; echo $? $y", "6 2\n", 0),
    (
        "command -v cd; command -v no-such; echo $?; type cd | cat",
        "cd\n127\ncd is a shell builtin\n",
        0,
    ),
    (
        "no-such 2>/dev/null; echo $?; : > f; ./f 2>/dev/null; echo $?",
        "127\n126\n",
        0,
    ),
    (
        "echo 'echo script $1' > s; chmod +x s; ./s a",
        "script a\n",
        0,
    ),
    (
        "cd /; cd tmp; pwd; cd ..; pwd; cd -; echo $OLDPWD $PWD",
        "/tmp\n/\n/tmp\n/ /tmp\n",
        0,
    ),
    ("cd /no/such 2>/dev/null; echo $?", "2\n", 0),
    (
        "x=1 sh -c 'echo ${x:-none}'; echo ${x:-none}; export x=2; sh -c 'echo $x'",
        "1\nnone\n2\n",
        0,
    ),
    (
        "x=1; x=2 true; echo $x; x=3 :; echo $x; x=4; unset x; echo ${x-unset}",
        "1\n3\nunset\n",
        0,
    ),
    (
        "export A=1; export -p | grep -F 'export A='; readonly B=2; unset B 2>/dev/null || echo kept",
        "export A='1'\n",
        2,
    ),
    (
        "echo 'a b  c ' | { read x y; echo \"<$x><$y>\"; }; printf '%s\\n' 'a\\b' | { read -r x; printf '%s\\n' \"$x\"; }",
        "<a><b  c>\na\\b\n",
        0,
    ),
    (
        "echo a:b:c | { IFS=: read x y; echo $x $y; }; printf 'no end' | { read x; echo $? $x; }",
        "a b:c\n1 no end\n",
        0,
    ),
    (
        "umask 022; umask; umask 077; touch f; stat -c %a f",
        "0022\n600\n",
        0,
    ),
    (
        "set -- -a -b val -- rest; while getopts ab: o; do echo $o $OPTARG; done; shift $((OPTIND - 1)); echo $1",
        "a\nb val\nrest\n",
        0,
    ),
    (
        "while getopts :a: o -x -a; do echo $o $OPTARG; done",
        "? x\n: a\n",
        0,
    ),
    (
        "[ a = a ] && [ ! a = b ] && [ 2 -gt 1 -a -d / ] && [ -z '' ] && [ -n x ] && test ! -e /no && echo ok",
        "ok\n",
        0,
    ),
    (
        "[ ]; echo $?; [ -f ]; echo $?; [ '(' = '(' ]; echo $?; [ ! ]; echo $?",
        "1\n0\n0\n0\n",
        0,
    ),
    ("[ 1 -eq x ] 2>/dev/null; echo $?", "2\n", 0),
    (
        "printf '%s-%d-%05d|%-4s|%4s|%x|%o|%c|%%\\n' a 12 34 b c 255 8 xyz",
        "a-12-00034|b   |   c|ff|10|x|%\n",
        0,
    ),
    (
        "printf '%s,' a b c; printf '\\101\\n'; printf '%b\\n' 'x\\ty'; printf '%.2s|%3d|%+d\\n' abc 7 7",
        "a,b,c,A\nx\ty\nab|  7|+7\n",
        0,
    ),
    // Signals.
    ("trap 'echo bye' EXIT; echo a; exit 3", "a\nbye\n", 3),
    (
        "trap 'echo got' TERM; kill -TERM $$; echo after",
        "got\nafter\n",
        0,
    ),
    (
        "trap 'echo int; exit 9' INT; kill -s INT $$; echo no",
        "int\n",
        9,
    ),
    (
        "trap '' TERM; kill $$; echo alive; trap - TERM; kill $$; echo no",
        "alive\n",
        -15,
    ),
    ("trap 'echo x' EXIT; (echo sub); trap - EXIT", "sub\n", 0),
    (
        "trap 'echo term; exit 3' TERM; sleep 60 >/dev/null 2>&1 & (sleep 0.2; kill $$) & wait; echo no",
        "term\n",
        3,
    ),
    ("sleep 60 & kill $!; wait $!; echo $?", "143\n", 0),
    ("sh -c 'kill -9 $$' 2>/dev/null; echo $?", "137\n", 0),
    // The process itself.
    ("exec echo replaced; echo no", "replaced\n", 0),
    (
        "x=$(sh -c 'echo $$; exec sh -c \"echo \\$\\$\"'); set -- $x; [ $1 = $2 ] && echo same",
        "same\n",
        0,
    ),
    (
        "(echo $$) | { read x; [ $x = $$ ] && echo same; }",
        "same\n",
        0,
    ),
    // Errors in the script.
    ("echo a\nif", "a\n", 2),
    ("echo a\necho )", "a\n", 2),
    ("echo \"a", "", 2),
    ("echo $((1 / 0)); echo no", "", 2),
    ("echo ${x!}; echo no", "", 2),
];

fn dash() -> Option<&'static Path> {
    let shell = Path::new("/bin/sh");
    let target = std::fs::canonicalize(shell).ok()?;
    target.ends_with("dash").then_some(shell)
}

#[test]
fn scripts_behave_as_in_dash() {
    let mut failures = Vec::new();
    for (script, expected, status) in SCRIPTS {
        let toolbox = Toolbox::new();
        let mut shells = vec![(toolbox.bin().join("sh"), "own")];
        shells.extend(dash().map(|shell| (shell.to_owned(), "dash")));
        for (shell, name) in shells {
            let work = toolbox.work();
            std::fs::remove_dir_all(&work).unwrap();
            std::fs::create_dir(&work).unwrap();
            let mut command = Command::new(shell);
            command.args(["-c", script]).current_dir(&work).env_clear();
            let output = output(command.env("PATH", toolbox.bin()), b"");
            let printed = String::from_utf8_lossy(&output.stdout);
            let ended = ended(output.status);
            if printed != *expected || ended != *status {
                let errors = String::from_utf8_lossy(&output.stderr);
                failures.push(format!("{name}: {script}\n  expected {status} {expected:?}\n  was {ended} {printed:?}\n  {errors}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The status, or the negative number of the signal.
fn ended(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .unwrap_or_else(|| -status.signal().unwrap_or(0))
}

/// What dash does not have, or does in another way.
#[test]
fn scripts_may_use_extensions_of_later_shells() {
    let toolbox = Toolbox::new();
    for (script, expected, status) in [
        ("set -o pipefail; false | true; echo $?", "1\n", 0),
        ("i=1; echo $((i++)) $((++i)) $i", "1 3 3\n", 0),
        (
            "x=\u{e4}\u{f6}; echo ${#x}; case \u{fc} in ?) echo one;; esac",
            "2\none\n",
            0,
        ),
        ("echo -e 'a\\tb'; echo 'a\\tb'", "a\tb\na\\tb\n", 0),
        ("f() { f; }; f 2>/dev/null; echo no", "", 2),
        ("eval 'x() { eval x; }'; x", "", 2),
    ] {
        let output = toolbox.sh(script);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            expected,
            "{script}"
        );
        assert_eq!(output.status.code(), Some(status), "{script}");
    }
}

#[test]
fn files_are_executed_with_their_arguments() {
    let toolbox = Toolbox::new();
    write(&toolbox.work().join("s"), "echo $0 $1\nexit 4\n");
    let output = toolbox.run(&["sh", "s", "x"]);
    assert_eq!(
        (output.stdout.as_slice(), output.status.code()),
        (b"s x\n".as_slice(), Some(4))
    );
    assert_eq!(toolbox.run(&["sh", "none"]).status.code(), Some(127));
    let output = toolbox.run(&["sh", "-ec", "echo $0 $1; false; echo no", "name", "x"]);
    assert_eq!(
        (output.stdout.as_slice(), output.status.code()),
        (b"name x\n".as_slice(), Some(1))
    );
}
